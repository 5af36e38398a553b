"""One release decision: the preconditions, the rule, and every figure governance reads beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS, RELEASABLE_DUA_TAG
from synth_platform.contract.options import GateOptions
from synth_platform.privacy.formal import FormalVerdict
from synth_platform.release.rule import ReleaseGrade, decide

LIMITS = ("membership_limit", "train_closer_tolerance", "excess_tolerance")
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Decision:
    """A decision with the gate summaries it rests on; restricted, because gate figures are functions of private rows.

    plan: the plan's key, None for a control; epsilon, delta: what it promised. utility, closest_record, membership,
    inference: the gates' summaries, each by the design that counts. power: how often a fresh draw of the truth passes
    them. limits: what the gates were registered to hold. registration: the digest of everything registered.
    ledger: what was spent. reasons: why it is BLOCKED. notes: what governance should know although it blocks nothing.
    """

    cohort: str
    generator: str
    plan: str | None
    epsilon: float | None
    delta: float | None
    utility: Document
    closest_record: Document
    membership: Document
    inference: Document
    power: Document
    limits: Mapping[str, float]
    registration: str
    ledger: FormalVerdict
    schema_violations: int
    decision: ReleaseGrade
    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def eligible(self) -> bool:
        """Whether the table may be released."""
        return self.decision != "BLOCKED"

    def as_dict(self) -> dict[str, Any]:
        """One object of `synth decisions --json`; every value is JSON, what is not finite is null."""
        document = {
            "cohort": self.cohort,
            "generator": self.generator,
            "plan": self.plan,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mu": self.ledger.mu,
            "utility": {"status": self.utility["status"], "design": self.utility["design"]},
            "endpoints": self.utility["endpoints"],
            "closest_record": self.closest_record,
            "membership": self.membership,
            "inference": self.inference,
            "power": self.power,
            "limits": dict(self.limits),
            "registration": self.registration,
            "ledger": self.ledger.as_dict(),
            "schema": {"violations": self.schema_violations},
            "decision": self.decision,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
        }
        return {key: _json_safe(value) for key, value in document.items()}


def decide_release(
    *,
    cohort: str,
    generator: str,
    plan_key: str | None,
    plan: Plan | None,
    dua_tag: str,
    seeded: bool,
    schema_violations: int,
    utility: Document,
    closest_record: Document,
    membership: Document,
    inference: Document,
    power: Document,
    gates: GateOptions,
    registration: str,
    formal: FormalVerdict,
) -> Decision:
    """Decide over one generator's table: preconditions first, then the 192-row rule; all reasons are collected.

    utility, closest_record, membership, inference, power: summaries of the verdicts. Preconditions: the cohort's data
    use agreement was reviewed for release, the generator is not a control, no noise came from a seeded source, the
    inference check did not fail. gates, registration: the limits the verdicts were made under, and the digest of the
    whole registration.
    """
    preconditions = []
    if dua_tag != RELEASABLE_DUA_TAG:
        preconditions.append("DUA_NOT_REVIEWED")
    if generator in CONTROLS:
        preconditions.append("CONTROL_GENERATOR")
    elif generator not in DP_GENERATORS:
        preconditions.append("UNKNOWN_GENERATOR")
    if seeded:
        preconditions.append("SEEDED_NOISE")
    if inference["status"] == "FAIL":
        preconditions.append("INFERENCE_FAIL")
    rule = decide(
        schema_violations=schema_violations,
        utility=utility["status"],
        closest_record=closest_record["status"],
        membership=membership["status"],
        formal=formal.status,
    )
    return Decision(
        cohort=cohort,
        generator=generator,
        plan=plan_key,
        epsilon=plan.epsilon if plan else formal.epsilon_pld,
        delta=plan.delta if plan else None,
        utility=utility,
        closest_record=closest_record,
        membership=membership,
        inference=inference,
        power=power,
        limits={name: getattr(gates, name) for name in LIMITS},
        registration=registration,
        ledger=formal,
        schema_violations=schema_violations,
        decision="BLOCKED" if preconditions else rule.decision,
        reasons=(*preconditions, *rule.reasons),
        notes=tuple(_notes(utility, membership, power, gates)) if generator in DP_GENERATORS else (),
    )


def _notes(utility: Document, membership: Document, power: Document, gates: GateOptions) -> Iterator[str]:
    """What would otherwise pass quietly: nothing gained, a limit loosened afterwards, a gate that hardly judges."""
    if not _has_lift(utility):
        yield "NO_PRIVATE_LIFT"
    if gates.membership_limit > GateOptions().membership_limit:
        yield "LOOSENED_MEMBERSHIP_LIMIT"
    weak = {"UTILITY": power["utility_gate"], "CLOSEST_RECORD": power["closest_record"], "MEMBERSHIP": membership}
    for gate, figures in weak.items():
        if figures["power"] < gates.power_floor:
            yield f"LOW_POWER_{gate}"


def _has_lift(utility: Document) -> bool:
    """Whether any endpoint beats public rows alone; without a measured lift nothing was shown to be gained."""
    lifts = [endpoint["lift"] for endpoint in utility["endpoints"].values()]
    return any(lift is not None and lift > 0 for lift in lifts)


def _json_safe(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _json_safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_safe(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
