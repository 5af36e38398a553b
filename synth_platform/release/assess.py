"""From artefacts to a decision: schema violations, the ledger's word, the attacks held against it, the rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

CONFIDENCE = 0.95
Document = Mapping[str, Any]


class StaleVerdictError(ValueError):
    """Verdicts were made under another cohort.yaml than the one that stands now."""


def assess(
    *,
    spec: CohortSpec,
    code: GeneratorCode,
    plan_key: str | None,
    tables: pl.DataFrame,
    state: GeneratorState,
    utility: Document,
    closest_record: Document,
    membership: Document,
    ledger: Ledger,
    store: StatisticStore,
) -> Decision:
    """The decision on one generator's tables; the gate documents are those of `evaluation.gates`.

    Raises StaleVerdictError where a gate judged under another registration than `spec`: with other seeds or limits it
    would be a verdict on another table.
    """
    for gate in (utility, closest_record, membership):
        if gate["registration"] != spec.registration:
            raise StaleVerdictError(
                f"cohort {spec.name!r}: cohort.yaml changed since {code} was judged; materialise its gates again"
            )
    plan = spec.plan(plan_key) if plan_key else None
    return decide_release(
        cohort=spec.name,
        generator=code,
        plan_key=plan_key,
        plan=plan,
        dua_tag=spec.dua_tag,
        seeded=state.seeded,
        schema_violations=schema_violations(tables, spec),
        utility=utility["summary"],
        closest_record=closest_record["summary"],
        membership=membership["summary"],
        gates=spec.gates,
        registration=spec.registration,
        formal=formal_verdict(spec, plan_key, state, membership, ledger, store),
    )


def formal_verdict(
    spec: CohortSpec,
    plan_key: str | None,
    state: GeneratorState,
    membership: Document,
    ledger: Ledger,
    store: StatisticStore,
) -> FormalVerdict:
    """The ledger's word on a generator state, with the membership attacks held against it. A control promises 0."""
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
        epsilon_lower_bound=attack_bound(membership, delta) if plan else None,
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
