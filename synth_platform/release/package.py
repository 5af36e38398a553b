"""The release package: the one folder that leaves the building, written whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from synth_platform.contract.cohort_spec import DP_GENERATORS, RELEASABLE_DUA_TAG, CohortSpec
from synth_platform.contract.tables import OPAQUE_KEY, SYNTHETIC_PREFIX
from synth_platform.release.dictionary import data_dictionary
from synth_platform.release.folder import Document, PackageError, parquet_bytes, write_folder, write_json
from synth_platform.release.publish import ledger_document, published_decision
from synth_platform.release.readme import render_readme
from synth_platform.release.rule import decide


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

    Raises PackageError NOT_ELIGIBLE or ORIGIN_KEY besides those of `write_folder`.
    """
    _require_eligible(spec, decision)
    _require_generated(table)
    return write_folder(
        root,
        name,
        lambda folder: _fill(folder, spec=spec, table=table, decision=decision, ledger_table=ledger_table),
    )


def table_sha256(table: pl.DataFrame) -> str:
    """SHA-256 of a table as the package's table.parquet."""
    return hashlib.sha256(parquet_bytes(table)).hexdigest()


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
    ledger = ledger_document(decision, ledger_table, domain=spec.privacy.domain, unit=spec.privacy.unit)
    (folder / "table.parquet").write_bytes(parquet_bytes(table))
    table.write_csv(folder / "table.csv")
    data_dictionary(spec, table.columns).write_csv(folder / "data_dictionary.csv")
    write_json(folder / "ledger.json", ledger)
    write_json(folder / "decision.json", public_decision)
    readme = render_readme(
        title=spec.title,
        rows=table.height,
        columns=table.width,
        decision=public_decision,
        ledger=ledger["entries"],
        aggregates=spec.publication == "aggregates",
    )
    (folder / "README.md").write_text(readme, encoding="utf-8")
