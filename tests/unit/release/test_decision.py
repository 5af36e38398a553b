"""Preconditions outside the rule, the lift note, and the published shape of a decision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import CONTROLS
from synth_platform.contract.options import GateOptions
from synth_platform.privacy.formal import FormalVerdict
from synth_platform.release.decision import Decision, decide_release


def endpoint(lift: float | None) -> dict[str, Any]:
    return {"tstr": 0.9, "trtr": 0.9, "preservation": 1.0, "skill": 1.0, "lift": lift, "status": "PASS_CONFIRMED"}


def utility(*lifts: float | None) -> dict[str, Any]:
    names = ("c_index", "macro_f1", "auroc", "spearman")
    endpoints = dict(zip(names, map(endpoint, lifts), strict=True))
    return {"status": "PASS_CONFIRMED", "design": "holdout", "endpoints": endpoints}


def power(**powers: float) -> dict[str, Any]:
    return {name: {"power": value} for name, value in ({"utility_gate": 0.9, "closest_record": 0.9} | powers).items()}


def decision(**changes: Any) -> Decision:
    attack = {"auroc": 0.5, "upper": 0.53, "tpr_at_1pct_fpr": 0.01}
    arguments: dict[str, Any] = {
        "cohort": "virtual",
        "generator": "G0A",
        "plan_key": "eps1",
        "plan": Plan(epsilon=1.0, delta=1e-5),
        "dua_tag": "RELEASE_REVIEWED",
        "seeded": False,
        "schema_violations": 0,
        "utility": utility(0.1, 0.0, -0.1, None),
        "closest_record": {
            "duplicates": 0,
            "train_closer": 0.5,
            "train_closer_upper": 0.53,
            "excess": 0.05,
            "excess_upper": 0.06,
            "status": "PASS",
        },
        "membership": {
            "attacks": {"A1": attack, "A2": attack},
            "status": "PASS_CONFIRMED",
            "power": 0.9,
            "design": "direct",
        },
        "inference": {"status": "PASS"},
        "power": power(),
        "gates": GateOptions(),
        "registration": "e5" * 32,
        "formal": FormalVerdict("OK", 0.99, 0.98, 0.27, 0.73, ("entry",), ()),
    }
    return decide_release(**{**arguments, **changes})


def test_a_clean_table_is_eligible() -> None:
    found = decision()
    assert (found.decision, found.reasons, found.notes) == ("ELIGIBLE_CONFIRMED", (), ())
    assert found.eligible


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dua_tag": "OPEN"}, "DUA_NOT_REVIEWED"),
        ({"dua_tag": ""}, "DUA_NOT_REVIEWED"),
        ({"seeded": True}, "SEEDED_NOISE"),
        ({"inference": {"status": "FAIL"}}, "INFERENCE_FAIL"),
        ({"generator": "G99"}, "UNKNOWN_GENERATOR"),
        *[({"generator": code, "plan": None, "plan_key": None}, "CONTROL_GENERATOR") for code in CONTROLS],
    ],
)
def test_a_precondition_blocks_whatever_the_gates_say(changes: dict[str, Any], reason: str) -> None:
    found = decision(**changes)
    assert found.decision == "BLOCKED"
    assert found.reasons == (reason,)
    assert not found.eligible


def test_all_reasons_are_collected() -> None:
    found = decision(
        seeded=True,
        schema_violations=2,
        formal=FormalVerdict("ABSENT", None, None, None, None, (), ("SEEDED_NOISE",)),
    )
    assert found.reasons == ("SEEDED_NOISE", "SCHEMA_VIOLATION", "LEDGER_ABSENT")


@pytest.mark.parametrize(
    ("lifts", "noted"),
    [
        ((0.0, -0.1, -0.2, 0.0), True),
        ((None, None, None, None), True),
        ((-0.1, -0.1, 0.000001, -0.1), False),
    ],
)
def test_a_generator_that_beats_public_rows_nowhere_is_noted_not_blocked(
    lifts: tuple[float | None, ...], noted: bool
) -> None:
    found = decision(utility=utility(*lifts))
    assert found.notes == (("NO_PRIVATE_LIFT",) if noted else ())
    assert found.decision == "ELIGIBLE_CONFIRMED"


def test_controls_carry_no_lift_note() -> None:
    assert decision(generator="S_PUBLIC", utility=utility(0.0, 0.0, 0.0, 0.0)).notes == ()


def test_the_document_has_the_published_keys_and_is_json() -> None:
    infinite = FormalVerdict("OK", float("inf"), 0.98, None, 0.73, ("entry",), ())
    document = json.loads(json.dumps(decision(formal=infinite).as_dict(), allow_nan=False))
    assert {
        "cohort", "generator", "epsilon", "delta", "mu", "endpoints", "closest_record", "membership", "ledger",
        "schema", "decision", "reasons",
    } <= set(document)  # fmt: skip
    assert {"status", "epsilon_rdp", "epsilon_pld", "mu", "auroc_bound", "entries"} <= set(document["ledger"])
    assert document["ledger"]["epsilon_rdp"] is None
    assert document["schema"] == {"violations": 0}
    assert document["endpoints"]["spearman"]["lift"] is None


@pytest.mark.parametrize(
    ("generator", "limit", "noted"),
    [("G0A", 0.55, False), ("G0A", 0.5, False), ("G0A", 0.550001, True), ("G0A", 0.9, True), ("S_PUBLIC", 0.9, False)],
)
def test_a_loosened_membership_limit_is_noted(generator: str, limit: float, noted: bool) -> None:
    """Claim: a limit above 8-1's is said in the decision, with every limit and the registration it belongs to."""
    gates = GateOptions.model_construct(
        membership_limit=limit, train_closer_tolerance=0.4, excess_tolerance=0.2, power_floor=0.8
    )
    found = decision(generator=generator, gates=gates)
    assert ("LOOSENED_MEMBERSHIP_LIMIT" in found.notes) is noted
    document = found.as_dict()
    assert document["limits"] == {"membership_limit": limit, "train_closer_tolerance": 0.4, "excess_tolerance": 0.2}
    assert document["registration"] == "e5" * 32


@pytest.mark.parametrize(
    ("changes", "notes"),
    [
        ({"power": power(utility_gate=0.8)}, ()),
        ({"power": power(utility_gate=0.79)}, ("LOW_POWER_UTILITY",)),
        ({"power": power(closest_record=0.79)}, ("LOW_POWER_CLOSEST_RECORD",)),
        ({"membership": {"status": "PASS_CONFIRMED", "power": 0.1, "design": "direct"}}, ("LOW_POWER_MEMBERSHIP",)),
        ({"inference": {"status": "UNDECIDED"}}, ()),
    ],
)
def test_a_gate_without_power_says_so_instead_of_passing_quietly(
    changes: dict[str, Any], notes: tuple[str, ...]
) -> None:
    """Claim: below the registered floor the decision carries a note; it blocks nothing by itself."""
    found = decision(**changes)
    assert found.notes == notes
    assert found.decision == "ELIGIBLE_CONFIRMED"
