"""The right verdicts of the controls (8-1 §3.7), as rules over a decision document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Document = Mapping[str, Any]
Rule = tuple[str, Callable[[Document], bool]]


def _utility_passes(d: Document) -> bool:
    return bool(d["utility"]["status"] in ("PASS_CONFIRMED", "PASS_POINT", "HOLD"))


def _ledger_is(status: str) -> Rule:
    return f"the ledger status must be {status}", lambda d: bool(d["ledger"]["status"] == status)


BLOCKED: Rule = ("a control must be BLOCKED", lambda d: bool(d["decision"] == "BLOCKED"))
PRIVACY_FAILS: Rule = (
    "copied rows must fail the closest-record gate",
    lambda d: bool(d["closest_record"]["status"] == "FAIL"),
)
NO_LEAK: Rule = (
    "a generator that copies nothing must pass the closest-record gate and not fail membership",
    lambda d: bool(d["closest_record"]["status"] == "PASS" and d["membership"]["status"] != "FAIL"),
)

RULES: Mapping[str, tuple[Rule, ...]] = {
    "S_ORACLE": (BLOCKED, ("a fresh draw must keep utility", _utility_passes), NO_LEAK, _ledger_is("ABSENT")),
    "S_COPY": (
        BLOCKED,
        PRIVACY_FAILS,
        ("copies must fail membership", lambda d: bool(d["membership"]["status"] == "FAIL")),
        _ledger_is("ABSENT"),
    ),
    "S_MIX": (
        BLOCKED,
        PRIVACY_FAILS,
        ("copies must not be confirmed by membership", lambda d: bool(d["membership"]["status"] != "PASS_CONFIRMED")),
        _ledger_is("ABSENT"),
    ),
    "S_MARGINAL": (
        BLOCKED,
        ("independent columns must fail utility", lambda d: bool(d["utility"]["status"] == "FAIL")),
        _ledger_is("ABSENT"),
    ),
    "S_PUBLIC": (BLOCKED, NO_LEAK, _ledger_is("OK")),
}


def misjudged(decision: Document) -> tuple[str, ...]:
    """What is wrong with a control's decision document; empty if it was judged as it must be."""
    return tuple(claim for claim, holds in RULES[decision["generator"]] if not holds(decision))
