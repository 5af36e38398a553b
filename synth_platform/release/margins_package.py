"""The package of synthetic tables made of margins: tables, the margins they were drawn from, card, decision, README."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from synth_platform.contract.census_spec import REPLICATE, CensusSpec
from synth_platform.contract.cohort_spec import RELEASABLE_DUA_TAG
from synth_platform.margins.domain import Domain
from synth_platform.margins.fitting.fitted import FitReport
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.reading.published import write_tables
from synth_platform.margins.reading.stated_files import STATED_FILES, read_stated, write_stated
from synth_platform.margins.replicates import replicate
from synth_platform.margins.violations import violations
from synth_platform.release.folder import PackageError, parquet_bytes, write_folder, write_json
from synth_platform.release.margins import DP_STAGE, ELIGIBLE, SDC_STAGE, MarginsStage, published_margins_decision
from synth_platform.release.margins_card import margins_card
from synth_platform.release.margins_readme import render_margins_readme
from synth_platform.release.publish import ledger_document

Document = Mapping[str, Any]
MARGIN = "margin_"
_PLAIN = re.compile(r"[^A-Za-z0-9._]+")
DICTIONARY = {"column": pl.String, "kind": pl.String, "missing_value_of": pl.String, "categories": pl.String}


def table_sha256(synthetic: pl.DataFrame) -> str:
    """SHA-256 of the first of `stacked` replicates as the package's table.parquet."""
    return hashlib.sha256(parquet_bytes(replicate(synthetic))).hexdigest()


def write_margins_package(
    root: Path,
    *,
    name: str,
    spec: CensusSpec,
    stage: MarginsStage,
    protected: MarginSet,
    fit: FitReport,
    synthetic: pl.DataFrame,
    disclosure: Document | None,
    utility: Document,
    decision: Document,
    ledger_table: Sequence[Document] = (),
) -> Path:
    """Write root/name: tables, margins, domain, card, decision, data dictionary, README, checksums.

    Besides them disclosure.json under policy `sdc` and ledger.json under `dp`. decision: the stored document, of which
    `published_margins_decision` is written. synthetic: `stacked` replicates, written as table.parquet and table.csv,
    table_2.parquet and so on. protected: the margins that they were drawn from, written as margin_01_age_sex.csv beside
    domain.json, provenance.json and structural_zeros.json. disclosure: None under `dp`. Releases are
    immutable, as in `write_folder`. Raises PackageError NOT_ELIGIBLE besides its errors.
    """
    tables = [replicate(synthetic, number) for number in sorted(synthetic[REPLICATE].unique())]
    _require_eligible(name, spec, stage, protected, tables, disclosure, decision)
    card = margins_card(
        spec=spec,
        protected=protected,
        fit=fit,
        rows=len(tables[0]),
        disclosure=disclosure,
        utility=utility,
        decision=decision,
    )
    documents: dict[str, Document] = {
        "card.json": card,
        "decision.json": published_margins_decision(decision, spec.publication),
    }
    if stage == SDC_STAGE and disclosure is not None:
        documents["disclosure.json"] = disclosure
    if stage == DP_STAGE and spec.privacy is not None:
        domain, unit = spec.privacy.domain, spec.privacy.unit
        documents["ledger.json"] = ledger_document(decision, ledger_table, domain=domain, unit=unit)

    def fill(folder: Path) -> None:
        for number, table in enumerate(tables, start=1):
            file = "table" if number == 1 else f"table_{number}"
            (folder / f"{file}.parquet").write_bytes(parquet_bytes(table))
        tables[0].write_csv(folder / "table.csv")
        _write_margins(protected, folder)
        data_dictionary(protected.domain).write_csv(folder / "data_dictionary.csv")
        for file, document in documents.items():
            write_json(folder / file, document)
        files = _described(stage, len(tables), bool(protected.zeros))
        (folder / "README.md").write_text(render_margins_readme(card, files), encoding="utf-8")

    return write_folder(root, name, fill)


def released_margins(package: Path, folder: Path) -> None:
    """Copy the margins of a package, and what is stated beside them, into `folder`, where `read_tables` reads them."""
    for file in package.iterdir():
        if file.name.startswith(MARGIN) or file.name in STATED_FILES:
            (folder / file.name).write_bytes(file.read_bytes())


def data_dictionary(domain: Domain) -> pl.DataFrame:
    """The columns of `DICTIONARY` for each variable; categories are separated by "|", the missing one is told apart."""
    return pl.DataFrame(
        [
            {
                "column": each.name,
                "kind": each.kind,
                "missing_value_of": each.missing,
                "categories": "|".join(label for label in each.categories if label != each.missing),
            }
            for each in domain.variables
        ],
        schema=DICTIONARY,
    )


def _require_eligible(
    name: str,
    spec: CensusSpec,
    stage: MarginsStage,
    protected: MarginSet,
    tables: Sequence[pl.DataFrame],
    disclosure: Document | None,
    decision: Document,
) -> None:
    """What the grade rests on holds once more: a document that only says ELIGIBLE is not enough."""
    held = {
        "decision": decision["decision"] == ELIGIBLE[stage] and decision["generator"] == stage,
        "cohort": decision["cohort"] == spec.name,
        "dua": spec.dua_tag == RELEASABLE_DUA_TAG,
        "disclosure": stage == DP_STAGE or (disclosure is not None and disclosure["status"] == "PASS"),
        "schema": len(tables) == spec.plan(decision["plan"]).replicates
        and not any(violations(table, protected.domain, protected.zeros) for table in tables),
    }
    faults = [*decision["reasons"], *(f"{what} does not hold" for what, holds in held.items() if not holds)]
    if faults:
        raise PackageError(f"NOT_ELIGIBLE: {name} is {decision['decision']} ({', '.join(faults)}); nothing was written")


def _write_margins(protected: MarginSet, folder: Path) -> None:
    """The files of `write_tables`, by names that a list of checksums takes."""
    with TemporaryDirectory() as scratch:
        source = Path(scratch)
        write_tables(protected, source)
        names = {
            file.name: file.name if file.name in STATED_FILES else f"{MARGIN}{_PLAIN.sub('-', file.name)}"
            for file in source.iterdir()
        }
        for old, new in names.items():
            (folder / new).write_bytes((source / old).read_bytes())
    _, provenance = read_stated(folder, "provenance") or ("", {})
    write_stated(folder, "provenance", {names[file]: steps for file, steps in provenance.items()})


def _described(stage: MarginsStage, replicates: int, zeros: bool) -> list[tuple[list[str], str]]:
    """What each file is, for the README."""
    more = [f"table_{number}.parquet" for number in range(2, replicates + 1)]
    files = [
        (["table.parquet", "table.csv"], "the synthetic table; an empty CSV field is a missing value"),
        (more if len(more) < 3 else [f"table_2.parquet … {more[-1]}"], "further replicates, drawn of the same fit"),
        (["data_dictionary.csv"], "every column: kind, categories, what stands for a missing value in the margins"),
        ([f"{MARGIN}*.csv"], "the protected margins; `synth margins --tables` reads this folder"),
        (["domain.json", "provenance.json"], "categories of the margins, and what was done to their counts"),
        (["structural_zeros.json"] if zeros else [], "combinations that were declared impossible"),
        (["card.json"], "all that this README says, in full"),
        (["decision.json"], "the release decision"),
        (["disclosure.json"] if stage == SDC_STAGE else [], "the audit of the margins, table by table"),
        (["ledger.json"] if stage == DP_STAGE else [], "every access to private rows this rests on, and its cost"),
        (["SHA256SUMS"], "checksums of all files"),
    ]
    return [(names, what) for names, what in files if names]
