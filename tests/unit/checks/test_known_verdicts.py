"""Verdicts as checks: pass exactly where a release may follow, in words, without the figures."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import dagster as dg
import pytest

from checks.known_verdicts import known_verdict_check
from checks.verdicts import decision_check
from synth_platform.evaluation.gates import GATES
from synth_platform.evaluation.membership import MembershipStatus
from synth_platform.evaluation.preservation import UtilityStatus
from synth_platform.release.rule import decide

DECISION = dg.AssetKey(["G0A", "decision"])
STATUSES = {
    "utility_gate": get_args(UtilityStatus),
    "closest_record_gate": ("PASS", "FAIL"),
    "membership_gate": get_args(MembershipStatus),
}
CLEAN = {
    "schema_violations": 0,
    "utility": "PASS_CONFIRMED",
    "closest_record": "PASS",
    "membership": "PASS_CONFIRMED",
    "formal": "OK",
}


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_a_gate_passes_where_the_rule_lets_it(gate: Any) -> None:
    """Claim: the statuses a gate calls passing are those with which the release rule finds nothing to block."""
    name = gate.name.removesuffix("_gate")
    passing = {s for s in STATUSES[gate.name] if decide(**(CLEAN | {name: s})).decision != "BLOCKED"}
    assert gate.passing == passing


def document(code: str, **statuses: str) -> dict[str, Any]:
    names = ("utility", "closest_record", "membership", "ledger")
    return {
        "generator": code,
        "decision": statuses.pop("decision", "BLOCKED"),
        "reasons": ["CONTROL_GENERATOR"],
        **{name: {"status": statuses[name]} for name in names},
    }


ORACLE = {"utility": "PASS_POINT", "closest_record": "PASS", "membership": "PASS_POINT", "ledger": "ABSENT"}


def test_a_control_judged_as_it_must_be_passes() -> None:
    """Claim: the oracle with utility kept, no leak found and no ledger entry is what the gates must say."""
    assert known_verdict_check(document("S_ORACLE", **ORACLE), DECISION).passed


@pytest.mark.parametrize(
    "wrong",
    [
        {"utility": "FAIL"},
        {"closest_record": "FAIL"},
        {"membership": "FAIL"},
        {"ledger": "OK"},
        {"decision": "ELIGIBLE_POINT"},
    ],
)
def test_a_control_judged_wrongly_fails_loudly(wrong: dict[str, str]) -> None:
    """Claim: each single wrong verdict on the oracle fails the check with an error, its rule in the description."""
    result = known_verdict_check(document("S_ORACLE", **(ORACLE | wrong)), DECISION)
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.ERROR
    assert result.description


def test_checks_show_no_figures() -> None:
    """Claim: what a check says of a decision holds no number, though the document is full of them."""
    decision = document("S_ORACLE", **ORACLE) | {
        "membership": {"status": "FAIL", "attacks": {"A1": {"auroc": 0.912345}}}
    }
    for result in (known_verdict_check(decision, DECISION), decision_check(decision | {"notes": []}, DECISION)):
        said = json.dumps([result.description, *(str(value) for value in result.metadata.values())])
        assert not re.findall(r"\d\.\d", said)
