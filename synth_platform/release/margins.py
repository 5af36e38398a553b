"""The decision on synthetic tables made of margins, under one of two policies that promise different things.

`sdc`: the margins were coarsened by the registered rule and nothing finer can be inferred of them than the disclosure
audit allows. That is statistical disclosure control, not differential privacy: nothing bounds what is learned about a
person by somebody who knows enough others. `dp`: the margins carry noise that the ledger paid for, and the promise is
(ε, δ). Under both, the tables are a function of these margins and public constants alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import polars as pl

from synth_platform.contract.census_spec import REPLICATE, CensusSpec, DpPlan, SdcPlan
from synth_platform.contract.cohort_spec import RELEASABLE_DUA_TAG
from synth_platform.margins import violations as contract
from synth_platform.margins.fitting.fitted import FitReport
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.noise.noisy import NoisyMargins
from synth_platform.privacy.formal import FORMAL_REASONS, formal_status
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.release.publish import Policy

Document = Mapping[str, Any]
MarginsStage = Literal["margins", "dp_margins"]
SDC_STAGE: MarginsStage = "margins"
DP_STAGE: MarginsStage = "dp_margins"
SDC_POLICY = "sdc"
MARGINS_STAGES = (SDC_STAGE, DP_STAGE)
ELIGIBLE: Mapping[MarginsStage, str] = {SDC_STAGE: "ELIGIBLE_SDC", DP_STAGE: "ELIGIBLE_FORMAL"}
ASSURANCE: Mapping[MarginsStage, str] = {SDC_STAGE: "SDC", DP_STAGE: "DP"}
MOST_MISSED = 0.1  # of the people of a margin; a model that misses more is not released


def stage_of(plan: SdcPlan | DpPlan) -> MarginsStage:
    """The stage that a plan is run in."""
    return DP_STAGE if isinstance(plan, DpPlan) else SDC_STAGE


def release_name(cohort: str, stage: MarginsStage, plan: str) -> str:
    """What the package of a plan is called."""
    return f"{cohort}-{stage}-{plan}"


def decide_coarsened(
    *, spec: CensusSpec, plan: str, disclosure: Document, fit: FitReport, violations: int, utility: Document
) -> dict[str, Any]:
    """The decision document of a plan of policy `sdc`; every value is JSON.

    disclosure, utility: the stored documents of the plan. violations: of all its synthetic tables. ELIGIBLE_SDC or
    BLOCKED with every reason.
    """
    failed = disclosure["status"] != "PASS"
    judged = {name: disclosure[name] for name in ("status", "reasons", "limit")}
    return _decided(spec, plan, SDC_STAGE, ["DISCLOSURE_FAIL"] if failed else [], fit, violations, utility) | {
        "disclosure": judged
    }


def decide_noisy(
    *,
    spec: CensusSpec,
    plan: str,
    measured: NoisyMargins,
    fit: FitReport,
    violations: int,
    utility: Document,
    ledger: Ledger,
    store: StatisticStore,
) -> dict[str, Any]:
    """The decision document of a plan of policy `dp`; ELIGIBLE_FORMAL or BLOCKED with every reason."""
    if spec.privacy is None:
        raise ValueError(f"census {spec.name!r} has no privacy section, which a plan of policy dp needs")
    registered, privacy = spec.plan(plan), spec.privacy
    if not isinstance(registered, DpPlan):
        raise ValueError(f"plan {plan!r} is of policy {registered.policy}, not dp")
    formal = formal_status(
        entries=measured.entries,
        unledgered=measured.unledgered,
        seeded=measured.seeded,
        ledger=ledger,
        store=store,
        domain=privacy.domain,
        epsilon=registered.epsilon,
        delta=privacy.budget.delta,
    )
    reasons = ["SEEDED_NOISE"] if measured.seeded else []
    reasons += [] if formal.status == "OK" else [FORMAL_REASONS[formal.status]]
    reasons += [] if formal.entries else ["LEDGER_ABSENT"]
    return _decided(spec, plan, DP_STAGE, list(dict.fromkeys(reasons)), fit, violations, utility) | {
        "ledger": formal.as_dict(),
        "epsilon": registered.epsilon,
        "delta": privacy.budget.delta,
        "mu": formal.mu,
    }


def _decided(
    spec: CensusSpec,
    plan: str,
    stage: MarginsStage,
    reasons: list[str],
    fit: FitReport,
    violations: int,
    utility: Document,
) -> dict[str, Any]:
    """What decisions of both policies say. A fit that misses its margins by little is told, not blocked."""
    own = [] if spec.dua_tag == RELEASABLE_DUA_TAG else ["DUA_NOT_REVIEWED"]
    reasons = [*own, *reasons, *(["SCHEMA_VIOLATION"] if violations else [])]
    reasons += ["FIT_FAIL"] if fit.largest_residual > MOST_MISSED else []
    return {
        "cohort": spec.name,
        "generator": stage,
        "plan": plan,
        "policy": spec.plan(plan).policy,
        "assurance": ASSURANCE[stage],
        "options": spec.plan(plan).model_dump(mode="json"),
        "registration": spec.registration_of(plan),
        "disclosure": None,
        "fit": {"engine": fit.engine, "status": fit.status, "largest_residual": fit.largest_residual},
        "schema": {"violations": violations},
        "utility": {"status": utility["status"]},
        "ledger": None,
        "epsilon": None,
        "delta": None,
        "mu": None,
        "decision": "BLOCKED" if reasons else ELIGIBLE[stage],
        "reasons": reasons,
        "notes": [] if fit.status == "matched" else ["MARGINS_NOT_MATCHED"],
    }


def published_margins_decision(decision: Document, publication: Policy) -> dict[str, Any]:
    """The part of a decision document that goes out: `utility` is null unless publication is "aggregates".

    The status of utility was read off the private rows, and beside the protected counts and the tables one word of it
    can settle a small cell. Everything else follows from protected margins and public constants.
    """
    return {**decision, "utility": decision["utility"] if publication == "aggregates" else None}


def protected_margins(protected: MarginSet | NoisyMargins) -> MarginSet:
    """The margins that a plan is fitted to, coarsened or noisy."""
    return protected if isinstance(protected, MarginSet) else protected.margins


def violations_of(tables: pl.DataFrame, margins: MarginSet, plan: SdcPlan | DpPlan) -> int:
    """What of a plan's tables is not as registered: cells, structural zeros, number and size of the tables."""
    sizes = tables[REPLICATE].value_counts().sort(REPLICATE)
    wrong = sizes[REPLICATE].to_list() != list(range(1, plan.replicates + 1)) or sizes["count"].n_unique() != 1
    wrong |= plan.rows is not None and sizes["count"].to_list() != [plan.rows] * plan.replicates
    return contract.violations(tables.drop(REPLICATE), margins.domain, margins.zeros) + wrong
