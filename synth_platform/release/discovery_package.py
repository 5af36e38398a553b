"""The package of a list of discoveries: the list, its picture, the ledger behind it, the decision, a README."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from synth_platform.contract.cohort_spec import RELEASABLE_DUA_TAG
from synth_platform.contract.registered import Contrasted
from synth_platform.discovery.plot import discoveries_png
from synth_platform.release.discovery import DISCOVERY_STAGE, ELIGIBLE, GWAS_STAGE
from synth_platform.release.discovery_readme import render_list_readme
from synth_platform.release.folder import PackageError, parquet_bytes, write_folder, write_json
from synth_platform.release.publish import ledger_document

Document = Mapping[str, Any]
UNITS = {DISCOVERY_STAGE: "patient", GWAS_STAGE: "sample"}
SCHEMA = {"rank": pl.Int64, "feature": pl.String, "log_e": pl.Float64, "discovered": pl.Boolean}


def list_frame(discoveries: Document) -> pl.DataFrame:
    """The list as a table: rank, feature, private log e-value, whether it is a discovery."""
    return pl.DataFrame(discoveries["list"], schema=SCHEMA)


def list_sha256(discoveries: Document) -> str:
    """SHA-256 of the list as the package's table.parquet."""
    return hashlib.sha256(parquet_bytes(list_frame(discoveries))).hexdigest()


def write_list(
    root: Path,
    *,
    name: str,
    spec: Contrasted,
    e_values: Document,
    discoveries: Document,
    decision: Document,
    ledger_table: Sequence[Document],
) -> Path:
    """Write root/name: table.parquet, table.csv, discoveries.png, ledger.json, decision.json, README.md, checksums.

    Releases are immutable, as in `write_folder`. Raises PackageError NOT_ELIGIBLE besides its errors.
    """
    if decision["decision"] != ELIGIBLE or decision["reasons"] or spec.dua_tag != RELEASABLE_DUA_TAG:
        raise PackageError(
            f"NOT_ELIGIBLE: {name} is {decision['decision']} ({', '.join(decision['reasons']) or 'not reviewed'}); "
            "nothing was written"
        )
    domain, unit = spec.privacy.domain, UNITS[decision["generator"]]
    ledger = ledger_document(decision, ledger_table, domain=domain, unit=unit)
    frame = list_frame(discoveries)

    def fill(folder: Path) -> None:
        (folder / "table.parquet").write_bytes(parquet_bytes(frame))
        frame.write_csv(folder / "table.csv")
        (folder / "discoveries.png").write_bytes(discoveries_png(discoveries, f"{spec.title}: {decision['plan']}"))
        write_json(folder / "ledger.json", ledger)
        write_json(folder / "decision.json", dict(decision))
        readme = render_list_readme(
            title=spec.title,
            decision=decision,
            e_values=e_values,
            discoveries=discoveries,
            ledger=ledger["entries"],
            sizes=spec.sizes_of(decision["contrast"]),
        )
        (folder / "README.md").write_text(readme, encoding="utf-8")

    return write_folder(root, name, fill)
