"""All 192 combinations against a truth table written apart from the rule."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from synth_platform.release.rule import decide

COMBINATIONS = list(
    product(
        (0, 3),
        ("PASS_CONFIRMED", "PASS_POINT", "HOLD", "FAIL"),
        ("PASS", "FAIL"),
        ("PASS_CONFIRMED", "PASS_POINT", "FAIL"),
        ("OK", "ABSENT", "BUDGET_EXCEEDED", "CONTRADICTION"),
    )
)
ELIGIBLE = {
    (0, "PASS_CONFIRMED", "PASS", "PASS_CONFIRMED", "OK"): "ELIGIBLE_CONFIRMED",
    (0, "PASS_POINT", "PASS", "PASS_CONFIRMED", "OK"): "ELIGIBLE_POINT",
}


def graded(combination: tuple[Any, ...]) -> tuple[str, set[str]]:
    schema, utility, closest_record, membership, formal = combination
    verdict = decide(
        schema_violations=schema,
        utility=utility,
        closest_record=closest_record,
        membership=membership,
        formal=formal,
    )
    assert len(verdict.reasons) == len(set(verdict.reasons))
    return verdict.decision, set(verdict.reasons)


def expected_reasons(combination: tuple[Any, ...]) -> set[str]:
    schema, utility, closest_record, membership, formal = combination
    text = f"schema={schema} utility={utility} closest={closest_record} membership={membership} formal={formal}"
    table = {
        "schema=3": "SCHEMA_VIOLATION",
        "utility=HOLD": "UTILITY_HOLD",
        "utility=FAIL": "UTILITY_FAIL",
        "closest=FAIL": "CLOSEST_RECORD_FAIL",
        "membership=PASS_POINT": "MEMBERSHIP_NOT_CONFIRMED",
        "membership=FAIL": "MEMBERSHIP_FAIL",
        "formal=ABSENT": "LEDGER_ABSENT",
        "formal=BUDGET_EXCEEDED": "BUDGET_EXCEEDED",
        "formal=CONTRADICTION": "DP_AUDIT_CONTRADICTION",
    }
    return {reason for condition, reason in table.items() if condition in text.split()}


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_every_combination(combination: tuple[Any, ...]) -> None:
    decision, reasons = graded(combination)
    assert decision == ELIGIBLE.get(combination, "BLOCKED")
    assert reasons == expected_reasons(combination)
    assert bool(reasons) == (decision == "BLOCKED")


def test_192_combinations_of_which_two_are_eligible() -> None:
    assert len(set(COMBINATIONS)) == 192
    assert sum(graded(combination)[0] == "BLOCKED" for combination in COMBINATIONS) == 190


@pytest.mark.parametrize("gate", ["utility", "closest_record", "membership", "formal"])
def test_an_unknown_status_is_an_error_never_a_release(gate: str) -> None:
    statuses: dict[str, Any] = {
        "utility": "PASS_CONFIRMED",
        "closest_record": "PASS",
        "membership": "PASS_CONFIRMED",
        "formal": "OK",
    }
    for wrong in ("pass", "", "PASSED", None):
        with pytest.raises(ValueError, match=f"{gate} status"):
            decide(schema_violations=0, **{**statuses, gate: wrong})
    with pytest.raises(ValueError, match="negative"):
        decide(schema_violations=-1, **statuses)
