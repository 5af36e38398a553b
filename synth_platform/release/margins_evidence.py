"""The evidence behind a release of margins: what the independent audit needs to recompute it, and no row.

It stays in the restricted zone: under policy `sdc` it holds the true counts of the margins, and where private rows were
compared with, those of every two-way table. Tables are flat lists in the order of their variables' categories, the last
variable fastest.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from synth_platform.contract.census_spec import CensusSpec
from synth_platform.margins.fitting.fitted import Fitted
from synth_platform.margins.margin import Counts, MarginSet
from synth_platform.margins.noise.noisy import NoisyMargins
from synth_platform.margins.replicates import coded
from synth_platform.margins.rows import Rows
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.statistic_store import StatisticStore, StoredReleaseError
from synth_platform.release.evidence import ledger_evidence, package_evidence, sealed
from synth_platform.release.margins import MarginsStage

FORMAT = "synth-margins-evidence-1"
DOCUMENTS = ("disclosure_gate", "utility_gate", "decision")
MOST_CELLS = (
    300_000  # of two-way tables that are no margins; those beyond are not in the evidence, which the audit tells
)
MOST_THREE_WAY = 20
MOST_THREE_WAY_CELLS = 10_000
DETAILED = 5  # replicates of which all tables are held; of those after them, tables of one variable

Document = Mapping[str, Any]
Names = tuple[str, ...]


def write_margins_evidence(
    *,
    spec: CensusSpec,
    stage: MarginsStage,
    plan: str,
    counted: MarginSet | None,
    real: Rows | None,
    protected: MarginSet,
    disclosure: Document | None,
    fitted: Fitted,
    synthetic: Sequence[Rows],
    utility: Document,
    decision: Document,
    measured: NoisyMargins | None,
    ledger: Ledger | None,
    store: StatisticStore | None,
    package: Path | None,
) -> dict[str, Any]:
    """The sealed evidence of one plan.

    counted: the true margins, None under policy `dp`. real: the rows that utility was compared with, None where it was
    not. protected: the coarsened or the noisy margins that were fitted. disclosure: the gate's document, None under
    `dp`. measured, ledger, store: what paid for noisy margins, None under `sdc`. package: folder of the published
    package, None without one.
    """
    tables = audited_tables(protected)
    documents = {"utility_gate": utility, "decision": decision}
    documents |= {} if disclosure is None else {"disclosure_gate": disclosure}
    domain = None if spec.privacy is None else spec.privacy.domain
    return sealed(
        {
            "format": FORMAT,
            "scope": {"cohort": spec.name, "stage": stage, "plan": plan, "domain": domain},
            "registered": _registered(spec, plan),
            "variables": [asdict(variable) for variable in protected.domain.variables],
            "zeros": [{name: list(labels) for name, labels in zero.categories} for zero in protected.zeros],
            "tables": [list(names) for names in tables],
            "counted": None if counted is None else _margins(counted),
            "people": None if real is None else _table_counts(real, tables),
            "protected": _margins(protected),
            "model": _model(fitted, protected, tables),
            "synthetic": [_replicate(rows, tables if at < DETAILED else None) for at, rows in enumerate(synthetic)],
            "documents": {name: dict(document) for name, document in documents.items()},
            **_paid(measured, domain, ledger, store),
            "package": None if package is None else _package(package, protected),
        }
    )


def audited_tables(protected: MarginSet) -> tuple[Names, ...]:
    """Variables of the tables that the evidence holds: margins, declared zeros, pairs, and some tables of three.

    Tables of three are spread evenly over all of at most MOST_THREE_WAY_CELLS cells. Nothing is drawn.
    """
    domain = protected.domain
    names: dict[frozenset[str], Names] = {frozenset(margin.names): margin.names for margin in protected}
    names |= {frozenset(zero.names): zero.names for zero in protected.zeros if frozenset(zero.names) not in names}
    room = MOST_CELLS
    for pair in combinations(domain.names, 2):
        if frozenset(pair) not in names and room >= (cells := domain.project(pair).cells):
            names[frozenset(pair)] = pair
            room -= cells
    shapes = dict(zip(domain.names, domain.shape, strict=True))
    three = [
        table
        for table in combinations(domain.names, 3)
        if frozenset(table) not in names and math.prod(shapes[name] for name in table) <= MOST_THREE_WAY_CELLS
    ]
    return (*names.values(), *three[:: max(1, -(-len(three) // MOST_THREE_WAY))])


def _registered(spec: CensusSpec, plan: str) -> dict[str, Any]:
    """The public constants that the release is held to; their digest is the registration."""
    privacy = spec.privacy
    return {
        "cohort": spec.name,
        "domain": None if privacy is None else privacy.domain,
        "unit": None if privacy is None else privacy.unit,
        "budget": None if privacy is None else privacy.budget.model_dump(),
        "source": "tables" if spec.source.microdata is None else "microdata",
        "totals": spec.source.totals,
        "dua_tag": spec.dua_tag,
        "publication": spec.publication,
        "plan": spec.plan(plan).model_dump(mode="json"),
        "margins": spec.recipe.model_dump(mode="json")["margins"],
        "structural_zeros": spec.recipe.model_dump(mode="json")["structural_zeros"],
        "registration": spec.registration_of(plan),
    }


def _margins(margins: MarginSet) -> list[dict[str, Any]]:
    return [{"names": list(m.names), "counts": _plain(m.counts), "provenance": list(m.provenance)} for m in margins]


def _table_counts(rows: Rows, tables: Iterable[Names]) -> dict[str, Any]:
    return {"rows": len(rows), "tables": [_plain(rows.count(names)) for names in tables]}


def _model(fitted: Fitted, protected: MarginSet, tables: Iterable[Names]) -> dict[str, Any]:
    """How the fit ended, and its probabilities of the tables of up to two variables and of all margins."""
    report, margins = fitted.report, {margin.names for margin in protected}
    return {
        "engine": report.engine,
        "status": report.status,
        "cycles": report.cycles,
        "tolerance": report.tolerance,
        "residuals": [report.residuals[margin.title] for margin in protected],
        "totals": [report.totals[margin.title] for margin in protected],
        "total": report.total,
        "largest_residual": report.largest_residual,
        "tables": [
            fitted.probabilities(names).ravel().tolist() if len(names) <= 2 or names in margins else None
            for names in tables
        ],
    }


def _replicate(rows: Rows, tables: Iterable[Names] | None) -> dict[str, Any]:
    """Counts of one synthetic table, and the name of its rows."""
    return {
        "rows": len(rows),
        "sha256": _name(rows),
        "one_way": [_plain(rows.count((name,))) for name in rows.domain.names],
        "tables": None if tables is None else [_plain(rows.count(names)) for names in tables],
    }


def _name(rows: Rows) -> str:
    """SHA-256 that the order of rows does not change."""
    weights = np.random.default_rng(0).integers(2**63, size=rows.codes.shape[1], dtype=np.uint64)
    each = np.sort(rows.codes.astype(np.uint64) @ weights)  # modulo 2^64: two rows with one number do not happen
    return hashlib.sha256(each.tobytes()).hexdigest()


def _plain(counts: Counts) -> list[float]:
    """A table as a flat list, whole numbers as such."""
    return [int(value) if value.is_integer() else value for value in counts.ravel().tolist()]


def _paid(
    measured: NoisyMargins | None, domain: str | None, ledger: Ledger | None, store: StatisticStore | None
) -> dict[str, Any]:
    """What paid for noisy margins, and the stored answers in order; an unreadable one is left out, and then missed."""
    if measured is None or domain is None or ledger is None or store is None:
        return {"measured": None, "answers": [], "ledger": None}
    held = {entry.entry_id: entry for entry in ledger.entries(domain)} if ledger.verify().ok else {}
    answers = []
    for entry_id in measured.entries:
        try:
            release = store.load(held[entry_id])
        except (KeyError, StoredReleaseError):
            continue
        answer = {key: getattr(release, key) for key in ("entry_id", "code", "sensitivity", "granularity", "source")}
        answers.append(answer | {"values": release.values.tolist(), "scale": release.sigma})
    return {
        "measured": {
            "entries": list(measured.entries),
            "unledgered": list(measured.unledgered),
            "seeded": measured.seeded,
            "rows": measured.rows,
        },
        "answers": answers,
        "ledger": ledger_evidence(domain, ledger, store),
    }


def _package(folder: Path, protected: MarginSet) -> dict[str, Any]:
    """What of a published package is a document, its checksums, the cells of its margins as text, names of its rows."""
    card = _json(folder / "card.json")
    card = card if isinstance(card, Mapping) else {}
    promised = card.get("assurance")
    promised = promised if isinstance(promised, Mapping) else {}
    statement = json.dumps(promised.get("statement"))
    readme = folder / "README.md"
    said = (
        re.findall(r"^## Assurance: (\w+)", readme.read_text("utf-8", "replace"), re.MULTILINE)
        if readme.is_file()
        else []
    )
    return {
        **package_evidence(folder),
        "disclosure": _json(folder / "disclosure.json"),
        "card": {
            "kind": promised.get("kind"),
            "epsilon": promised.get("epsilon"),
            "not_private": "not differential privacy" in statement,
            "registration": card.get("registration"),
            "utility": card.get("utility"),
            "fields": sorted(card),
            "readme": said,
        },
        "margins": [_lines(file) for file in sorted(folder.glob("margin_*.csv"))],
        "tables": [_rows_name(file, protected) for file in _tables(folder)],
    }


def _tables(folder: Path) -> list[Path]:
    """table.parquet, table_2.parquet and so on, as far as there are any."""
    found: list[Path] = []
    while (file := folder / f"table{f'_{len(found) + 1}' if found else ''}.parquet").is_file():
        found.append(file)
    return found


def _lines(file: Path) -> list[list[str]]:
    """A CSV file as text, cell by cell."""
    with file.open(encoding="utf-8", errors="replace", newline="") as lines:
        return list(csv.reader(lines))


def _rows_name(file: Path, protected: MarginSet) -> str | None:
    """The name of a published table's rows, None where it cannot be read or is no table of these variables."""
    try:
        return _name(coded(pl.read_parquet(file), protected.domain))
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return None


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
