"""The release package: the one folder that leaves the building, written whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from synth_platform.contract.cohort_spec import DP_GENERATORS, RELEASABLE_DUA_TAG, CohortSpec
from synth_platform.contract.tables import OPAQUE_KEY, SYNTHETIC_PREFIX
from synth_platform.release.dictionary import data_dictionary
from synth_platform.release.publish import published_decision, published_ledger
from synth_platform.release.readme import render_readme
from synth_platform.release.rule import decide

CHECKSUMS = "SHA256SUMS"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_CHECKSUM_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]*)")

Document = Mapping[str, Any]


class PackageError(RuntimeError):
    """A package cannot be written or is not what was written; the message begins with a code."""


def write_package(
    root: Path,
    *,
    name: str,
    spec: CohortSpec,
    table: pl.DataFrame,
    decision: Document,
    ledger_table: Sequence[Document],
) -> Path:
    """Write root/name with the table (Parquet, CSV), data dictionary, ledger, decision, README and checksums.

    table: wide synthetic rows in native units. decision: `Decision.as_dict()`. ledger_table: rows of the ledger;
    those behind this release go out, without fingerprints, and with the hash of the last of them: a ledger that loses
    it no longer verifies against its releases.

    Releases are immutable: writing the same package again returns the existing one. Raises PackageError NOT_ELIGIBLE,
    ORIGIN_KEY, NAME, or EXISTS where root/name holds something else.
    """
    if not _NAME.fullmatch(name):
        raise PackageError(f"NAME: {name!r} is not a package name; use letters, digits, '.', '_' and '-'")
    _require_eligible(spec, decision)
    _require_generated(table)
    root.mkdir(parents=True, exist_ok=True)
    target = root / name
    with TemporaryDirectory(dir=root, prefix=f".{name}.") as scratch:
        draft = Path(scratch) / name
        draft.mkdir()
        _fill(draft, spec=spec, table=table, decision=decision, ledger_table=ledger_table)
        verify_package(draft)
        if not target.exists():
            draft.rename(target)
        elif _checksums(target) != _checksums(draft):
            raise PackageError(
                f"EXISTS: {target} holds another package; a release is never overwritten, use a new name"
            )
    verify_package(target)
    return target


def table_sha256(table: pl.DataFrame) -> str:
    """SHA-256 of a table as the package's table.parquet."""
    return hashlib.sha256(_parquet(table)).hexdigest()


def verify_package(path: Path) -> None:
    """Compare every file of a package with its checksum.

    Raises PackageError naming each fault: CHECKSUMS_MISSING, CHECKSUMS_UNREADABLE, FILE_MISSING, FILE_ALTERED,
    FILE_UNLISTED.
    """
    listed = _checksums(path)
    present = {file.name for file in path.iterdir()} - {CHECKSUMS}
    faults = [f"FILE_MISSING: {file}" for file in sorted(listed.keys() - present)]
    faults += [f"FILE_UNLISTED: {file}" for file in sorted(present - listed.keys())]
    faults += [
        f"FILE_ALTERED: {file}"
        for file in sorted(present & listed.keys())
        if not (path / file).is_file() or _digest(path / file) != listed[file]
    ]
    if faults:
        raise PackageError(f"{'; '.join(faults)} (in {path})")


def _require_eligible(spec: CohortSpec, decision: Document) -> None:
    """The grade must follow from the statuses once more: a document that only says ELIGIBLE is not enough."""
    again = decide(
        schema_violations=decision["schema"]["violations"],
        utility=decision["utility"]["status"],
        closest_record=decision["closest_record"]["status"],
        membership=decision["membership"]["status"],
        formal=decision["ledger"]["status"],
    )
    if (
        again.decision == "BLOCKED"
        or again.decision != decision["decision"]
        or decision["reasons"]
        or decision["cohort"] != spec.name
        or decision["generator"] not in DP_GENERATORS
        or spec.dua_tag != RELEASABLE_DUA_TAG
    ):
        raise PackageError(
            f"NOT_ELIGIBLE: {decision['cohort']}/{decision['generator']} is {decision['decision']} "
            f"({', '.join([*decision['reasons'], *again.reasons]) or 'preconditions do not hold'}); nothing was written"
        )


def _require_generated(table: pl.DataFrame) -> None:
    keys = table["row_key"]
    generated = keys.str.starts_with(SYNTHETIC_PREFIX) & keys.str.contains(OPAQUE_KEY)
    if not generated.fill_null(False).all() or not keys.is_unique().all():
        raise PackageError(
            "ORIGIN_KEY: row_key must hold the keys of generated rows, each once; no other row may leave"
        )


def _fill(
    folder: Path, *, spec: CohortSpec, table: pl.DataFrame, decision: Document, ledger_table: Sequence[Document]
) -> None:
    public_decision = published_decision(decision, spec.publication)
    entries, head_hash = published_ledger(ledger_table, decision["ledger"]["entries"])
    (folder / "table.parquet").write_bytes(_parquet(table))
    table.write_csv(folder / "table.csv")
    data_dictionary(spec, table.columns).write_csv(folder / "data_dictionary.csv")
    costs = {key: public_decision["ledger"][key] for key in ("epsilon_rdp", "epsilon_pld", "mu", "auroc_bound")}
    promise = {"domain": spec.privacy.domain, "unit": spec.privacy.unit, "delta": decision["delta"]}
    _write_json(folder / "ledger.json", {**promise, "cost": costs, "entries": entries, "head_hash": head_hash})
    _write_json(folder / "decision.json", public_decision)
    readme = render_readme(
        title=spec.title,
        rows=table.height,
        columns=table.width,
        decision=public_decision,
        ledger=entries,
        aggregates=spec.publication == "aggregates",
    )
    (folder / "README.md").write_text(readme, encoding="utf-8")
    lines = [f"{_digest(file)}  {file.name}\n" for file in sorted(folder.iterdir())]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def _parquet(table: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    table.write_parquet(stream)
    return stream.getvalue()


def _write_json(path: Path, document: Document) -> None:
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _checksums(path: Path) -> dict[str, str]:
    file = path / CHECKSUMS
    if not file.is_file():
        raise PackageError(f"CHECKSUMS_MISSING: {path} has no {CHECKSUMS}; it is not a whole release package")
    matches = [_CHECKSUM_LINE.fullmatch(line) for line in file.read_text(encoding="utf-8").splitlines()]
    if not matches or None in matches:
        raise PackageError(f"CHECKSUMS_UNREADABLE: {file} is not a list of SHA-256 sums and file names")
    return {match[2]: match[1] for match in matches if match}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
