"""Synthetic tables once more from the steward's files and what the ledger paid for: nothing stored is believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from synth_platform.contract.census_spec import CensusSpec, DpPlan, SdcPlan
from synth_platform.margins.domain import Domain
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.noise.adaptive import choose_and_measure
from synth_platform.margins.noise.declared import declared_domain, in_declared
from synth_platform.margins.noise.noisy import NoisyMargins, measure_declared
from synth_platform.margins.planned import compare, judge, model, protect, tables
from synth_platform.margins.reading.census import Microdata, read_census
from synth_platform.margins.reading.curate import margin_names
from synth_platform.margins.replicates import coded, replicate, stacked
from synth_platform.margins.rows import Rows, count_margins
from synth_platform.margins.store import content_digest, fitted_files, margin_set_files
from synth_platform.margins.structural_zeros import StructuralZero
from synth_platform.privacy.accounting import gaussian_mu
from synth_platform.privacy.fingerprint import FingerprintKey, canonical_json
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.replay import NotPaidError, Replay
from synth_platform.privacy.statistic_store import StatisticStore, StoredReleaseError
from synth_platform.privacy.statistics import Query, StatisticRelease
from synth_platform.release.margins import (
    DP_STAGE,
    MarginsStage,
    decide_coarsened,
    decide_noisy,
    violations_of,
)
from synth_platform.release.rederive import NotRederivedError

Ask = Callable[[Query[Rows]], StatisticRelease]


def counted(spec: CensusSpec, rows: PrivateTable[Rows] | Rows | MarginSet) -> MarginSet:
    """The registered margins, counted without noise: for coarsening, and for the evidence of the restricted zone."""
    if isinstance(rows, MarginSet):
        return rows
    held = rows.open_for_gate("counting margins") if isinstance(rows, PrivateTable) else rows
    zeros = tuple(StructuralZero.of(zero) for zero in spec.recipe.structural_zeros)
    return count_margins(held, margin_names(spec.recipe, held.domain), str(spec.source.microdata), zeros)


def real_rows(rows: PrivateTable[Rows] | MarginSet, domain: Domain, purpose: str) -> Rows | None:
    """Private rows as rows of `domain`, for a comparison; None where tables were published without any."""
    if isinstance(rows, MarginSet):
        return None
    held = rows.open_for_gate(purpose)
    return held if held.domain == domain else in_declared(held, domain)


def bought(spec: CensusSpec, plan: DpPlan, ask: Ask) -> tuple[MarginSet, tuple[StatisticRelease, ...]]:
    """The noisy margins of a plan, from what `ask` answers."""
    if spec.privacy is None:
        raise ValueError(f"census {spec.name!r} has no privacy section, which a plan of policy dp needs")
    domain, delta = declared_domain(spec.recipe), spec.privacy.budget.delta
    zeros = tuple(StructuralZero.of(zero) for zero in spec.recipe.structural_zeros)
    names, mu = margin_names(spec.recipe, domain), gaussian_mu(plan.epsilon, delta)
    measure = choose_and_measure if plan.margins == "adaptive" else measure_declared
    return measure(ask, domain, names, zeros, mu)


def require_tables_rederived(
    *,
    spec: CensusSpec,
    folder: Path,
    stage: MarginsStage,
    plan: str,
    stored: Mapping[str, Any],
    ledger: Ledger,
    store: StatisticStore,
    key: FingerprintKey,
) -> None:
    """Derive margins, model, tables and decision again and require that what is stored is equal, to the last bit.

    stored: artefacts of the plan by name. Raises NotRederivedError naming what differs, SourceError or ValueError where
    the files cannot be read any more.
    """
    registered = spec.plan(plan)
    with quiet_errors("reading the census again", readable=(ValueError,)):
        census = read_census(spec, folder)
    derived: dict[str, Any] = {}
    disclosure: Mapping[str, Any] = {}
    measured = None
    if isinstance(registered, SdcPlan):
        true = counted(spec, _rows(census))
        margins, disclosure = protect(true, registered, spec.counted_by), judge(true, registered, spec.source.totals)
        derived |= {"coarsened": margins, "disclosure_gate": disclosure}
    else:
        measured = _paid(spec, registered, census, ledger, store, key)
        margins = measured.margins
        derived["measured"] = measured
    fitted = model(margins, registered)
    synthetic = stacked(tables(fitted, registered))
    real = in_declared(census.curated.rows, margins.domain) if isinstance(census, Microdata) else None
    utility = compare(real, coded(replicate(synthetic), margins.domain), margins, registered)
    broken = violations_of(synthetic, margins, registered)
    if measured is None:
        decision = decide_coarsened(
            spec=spec, plan=plan, disclosure=disclosure, fit=fitted.report, violations=broken, utility=utility
        )
    else:
        decision = decide_noisy(
            spec=spec, plan=plan, measured=measured, fit=fitted.report, violations=broken, utility=utility,
            ledger=ledger, store=store,
        )  # fmt: skip
    derived |= {"model": fitted, "synthetic": synthetic, "utility_gate": utility, "decision": decision}
    for name, value in derived.items():
        if not _same(value, stored[name]):
            raise NotRederivedError(
                f"{stage}/{name} does not follow from the steward's files as they are now; run the plan again"
            )


def _rows(census: Microdata | MarginSet) -> Rows | MarginSet:
    return census if isinstance(census, MarginSet) else census.curated.rows


def _paid(
    spec: CensusSpec,
    plan: DpPlan,
    census: Microdata | MarginSet,
    ledger: Ledger,
    store: StatisticStore,
    key: FingerprintKey,
) -> NoisyMargins:
    """The noisy margins that the ledger paid for. Raises NotRederivedError where it paid for others."""
    if spec.privacy is None or isinstance(census, MarginSet):
        raise ValueError(f"census {spec.name!r}: a plan of policy dp needs microdata and a privacy section")
    replay = Replay(ledger, store, spec.privacy.domain, spec.name, key.name(content_digest(census.curated.rows)))
    try:
        margins, releases = bought(spec, plan, replay.ask)
    except (NotPaidError, StoredReleaseError) as error:
        raise NotRederivedError(f"{DP_STAGE}/measured: {error}; run the plan again") from error
    entries = tuple(release.entry_id for release in releases)
    return NoisyMargins(margins, entries, seeded=False, unledgered=(), rows=replay.input_fingerprint)


def _same(value: Any, other: Any) -> bool:
    """Whether two artefacts are equal, to the last bit."""
    if isinstance(value, pl.DataFrame):
        return isinstance(other, pl.DataFrame) and value.schema == other.schema and value.equals(other)
    return _content(value) == _content(other)


def _content(value: Any) -> bytes:
    if isinstance(value, NoisyMargins):
        own = {"entries": value.entries, "seeded": value.seeded, "unledgered": value.unledgered, "rows": value.rows}
        return canonical_json(own) + _content(value.margins)
    if isinstance(value, MarginSet):
        return _joined(margin_set_files(value))
    return canonical_json(value) if isinstance(value, Mapping) else _joined(fitted_files(value))


def _joined(files: Mapping[str, bytes]) -> bytes:
    return b"".join(name.encode() + b"\0" + files[name] for name in sorted(files))
