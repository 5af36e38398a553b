"""What a governance officer reads on a check: the code, and what the code means."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, get_args

import dagster as dg
import pytest

from checks.known_verdicts import CONTROL_IN_WORDS
from checks.verdicts import POWER_OF, decision_check, verdict_check
from synth_platform.contract.cohort_spec import CONTROLS
from synth_platform.evaluation.closest_record import ClosestRecordStatus
from synth_platform.evaluation.gates import GATES, INFERENCE_GATE, Gate
from synth_platform.evaluation.membership import MembershipStatus
from synth_platform.evaluation.preservation import UtilityStatus
from synth_platform.privacy.formal import FormalStatus
from synth_platform.release.rule import decide

ASSET = dg.AssetKey(["G0", "decision"])
PRECONDITIONS = ["DUA_NOT_REVIEWED", "CONTROL_GENERATOR", "UNKNOWN_GENERATOR", "SEEDED_NOISE", "INFERENCE_FAIL"]
NOTES = (
    "NO_PRIVATE_LIFT",
    "LOOSENED_MEMBERSHIP_LIMIT",
    "LOW_POWER_UTILITY",
    "LOW_POWER_CLOSEST_RECORD",
    "LOW_POWER_MEMBERSHIP",
)
FAILED_COPY: dict[str, Any] = {
    "status": "FAIL",
    "summary": {"duplicates": 7, "train_closer_upper": 0.5, "excess_upper": 0.05},
    "evidence": {"train_closer_tolerance": 0.1, "excess_tolerance": 0.1},
}


def test_every_reason_of_the_rule_is_told_in_words() -> None:
    """A reason code without words would raise: the whole rule is walked."""
    statuses = product(*map(get_args, (UtilityStatus, ClosestRecordStatus, MembershipStatus, FormalStatus)))
    for utility, closest, membership, formal in statuses:
        for violations in (0, 1):
            rule = decide(
                schema_violations=violations,
                utility=utility,
                closest_record=closest,
                membership=membership,
                formal=formal,
            )
            document = {"decision": rule.decision, "reasons": [*PRECONDITIONS, *rule.reasons], "notes": []}
            result = decision_check(document, ASSET)
            assert result.passed == (rule.decision != "BLOCKED")
            assert all(f"({code})" in str(result.description) for code in document["reasons"])


@pytest.mark.parametrize("note", NOTES)
def test_a_note_does_not_fail_the_decision_but_is_told(note: str) -> None:
    result = decision_check({"decision": "ELIGIBLE_POINT", "reasons": [], "notes": [note]}, ASSET)
    assert result.passed
    assert f"({note})" in str(result.description)


def power(*low: str) -> dict[str, Any]:
    return {"summary": {"low": list(low)}}


@pytest.mark.parametrize("gate", [*GATES, INFERENCE_GATE], ids=lambda gate: gate.name)
def test_a_gate_says_what_its_verdict_is_worth(gate: Gate) -> None:
    """Claim: low power of what this gate judges is said beside its verdict, that of another gate is not."""
    document = {"status": min(gate.passing)}
    gate = replace(gate, explain=lambda judged: ())
    everything = [name for names in POWER_OF.values() for name in names]
    said = str(verdict_check(document, gate, "G0A", power(*everything), None, ASSET).description)
    others = [name for name in everything if name not in POWER_OF[gate.name]]
    silent = str(verdict_check(document, gate, "G0A", power(*others), None, ASSET).description)
    assert ("Low power for" in said) == bool(POWER_OF[gate.name])
    assert "Low power" not in silent


def test_a_failed_gate_says_why_and_whether_it_had_to_fail() -> None:
    gate = next(gate for gate in GATES if gate.name == "closest_record_gate")
    of_control = verdict_check(FAILED_COPY, gate, "S_COPY", power(), None, ASSET)
    of_mechanism = verdict_check(FAILED_COPY, gate, "G0A", power(), None, ASSET)
    for result in (of_control, of_mechanism):
        assert not result.passed
        assert str(result.description).startswith("FAIL: it holds copies of training rows. A release needs PASS.")
        assert "7" not in str(result)  # how many copies is a figure of private rows
    assert "S_COPY is a control" in str(of_control.description)
    assert "control" not in str(of_mechanism.description)


@pytest.mark.parametrize("code", CONTROLS)
def test_every_control_says_what_its_right_verdict_is(code: str) -> None:
    assert CONTROL_IN_WORDS[code]


@pytest.mark.parametrize(
    ("name", "said"),
    [("membership_gate", "half_split_audit counts; a FAIL here blocks as well."), ("utility_gate", "counts.")],
)
def test_a_gate_that_does_not_count_says_which_verdict_does(name: str, said: str) -> None:
    """Claim: under another registered design a gate does not say what a release needs of it."""
    gate = replace(next(gate for gate in GATES if gate.name == name), explain=lambda judged: ())
    result = verdict_check({"status": "PASS_POINT"}, gate, "G0A", power(), "half_split_audit", ASSET)
    assert said in str(result.description)
    assert "A release needs" not in str(result.description)
