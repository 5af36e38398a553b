"""From artefacts to a decision: schema violations, the ledger's word, the attacks held against it, the rule."""

from __future__ import annotations

import numpy as np
import polars as pl

from synth_platform.contract.cohort_spec import CohortSpec, GeneratorCode
from synth_platform.contract.tables import from_wide
from synth_platform.contract.validate import validate
from synth_platform.evaluation.audit_bound import epsilon_lower_bound
from synth_platform.generators.protocol import GeneratorState
from synth_platform.normalize.replicates import native_table
from synth_platform.privacy.formal import FormalVerdict, formal_status
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.release.decision import Decision, decide_release
from synth_platform.release.verdicts import (
    INFERENCE_GATE,
    MECHANISM,
    POWER,
    Document,
    Verdicts,
    membership_summary,
    require_current,
    utility_summary,
)

CONFIDENCE = 0.95


def assess(
    *,
    spec: CohortSpec,
    code: GeneratorCode,
    plan_key: str | None,
    tables: pl.DataFrame,
    state: GeneratorState,
    verdicts: Verdicts,
    power: Document,
    ledger: Ledger,
    store: StatisticStore,
) -> Decision:
    """The decision on one generator's tables.

    verdicts: the documents of `verdicts.verdict_names`, by name. power: the cohort's `gates/power`.
    Raises StaleVerdictError where one of them was made under another registration than `spec`.
    """
    require_current(spec, code, {**verdicts, POWER: power})
    plan = spec.plan(plan_key) if plan_key else None
    return decide_release(
        cohort=spec.name,
        generator=code,
        plan_key=plan_key,
        plan=plan,
        dua_tag=spec.dua_tag,
        seeded=state.seeded,
        schema_violations=schema_violations(tables, spec),
        utility=utility_summary(spec, code, verdicts),
        closest_record=verdicts["closest_record_gate"]["summary"],
        membership=membership_summary(spec, code, verdicts),
        inference=verdicts[INFERENCE_GATE]["summary"],
        power=power["summary"],
        gates=spec.gates,
        registration=spec.registration,
        formal=formal_verdict(spec, plan_key, state, verdicts, ledger, store),
    )


def formal_verdict(
    spec: CohortSpec,
    plan_key: str | None,
    state: GeneratorState,
    verdicts: Verdicts,
    ledger: Ledger,
    store: StatisticStore,
) -> FormalVerdict:
    """The ledger's word on a generator state, with attacks and the mechanism audit held against it.

    A control promises 0, and no audit is held against that.
    """
    plan = spec.plan(plan_key) if plan_key else None
    delta = plan.delta if plan else spec.privacy.budget.delta
    return formal_status(
        entries=state.entries,
        unledgered=state.unledgered,
        seeded=state.seeded,
        ledger=ledger,
        store=store,
        domain=spec.privacy.domain,
        epsilon=plan.epsilon if plan else 0.0,
        delta=delta,
        epsilon_lower_bound=attack_bound(verdicts["membership_gate"], delta) if plan else None,
        mechanism_contradicted=plan is not None and verdicts[MECHANISM]["status"] == "CONTRADICTION",
    )


def attack_bound(membership: Document, delta: float) -> float:
    """The largest epsilon that any attack proves, at 95 % over all attacks together (8-1 §3.4)."""
    scores = membership["evidence"]["scores"]
    each = 1 - (1 - CONFIDENCE) / len(scores)
    return max(
        epsilon_lower_bound(np.asarray(s["members"]), np.asarray(s["nonmembers"]), delta, each) for s in scores.values()
    )


def schema_violations(tables: pl.DataFrame, spec: CohortSpec) -> int:
    """Violations of the contract over the tables of all sampling seeds."""
    return sum(validate(from_wide(native_table(tables, s), spec), spec).violations for s in spec.synthetic.seeds)
