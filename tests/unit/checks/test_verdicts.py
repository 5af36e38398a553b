"""What a governance officer reads on a check: the code, and what the code means."""

from __future__ import annotations

from itertools import product
from typing import get_args

import dagster as dg
import pytest

from checks.known_verdicts import CONTROL_IN_WORDS
from checks.verdicts import decision_check, verdict_check
from synth_platform.contract.cohort_spec import CONTROLS
from synth_platform.evaluation.closest_record import ClosestRecordStatus
from synth_platform.evaluation.gates import GATES
from synth_platform.evaluation.membership import MembershipStatus
from synth_platform.evaluation.preservation import UtilityStatus
from synth_platform.privacy.formal import FormalStatus
from synth_platform.release.rule import decide

ASSET = dg.AssetKey(["G0", "decision"])
PRECONDITIONS = ["DUA_NOT_REVIEWED", "CONTROL_GENERATOR", "UNKNOWN_GENERATOR", "SEEDED_NOISE"]
FAILED_COPY = {
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


def test_a_note_does_not_fail_the_decision_but_is_told() -> None:
    result = decision_check({"decision": "ELIGIBLE_POINT", "reasons": [], "notes": ["NO_PRIVATE_LIFT"]}, ASSET)
    assert result.passed
    assert "public rows alone would serve as well" in str(result.description)


def test_a_failed_gate_says_why_and_whether_it_had_to_fail() -> None:
    gate = next(gate for gate in GATES if gate.name == "closest_record_gate")
    of_control = verdict_check(FAILED_COPY, gate, "S_COPY", ASSET)
    of_mechanism = verdict_check(FAILED_COPY, gate, "G0A", ASSET)
    for result in (of_control, of_mechanism):
        assert not result.passed
        assert str(result.description).startswith("FAIL: it holds copies of training rows. A release needs PASS.")
        assert "7" not in str(result)  # how many copies is a figure of private rows
    assert "S_COPY is a control" in str(of_control.description)
    assert "control" not in str(of_mechanism.description)


@pytest.mark.parametrize("code", CONTROLS)
def test_every_control_says_what_its_right_verdict_is(code: str) -> None:
    assert CONTROL_IN_WORDS[code]
