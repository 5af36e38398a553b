"""Gate verdicts as asset checks: status and reason, never the figures behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from checks.known_verdicts import CONTROL_IN_WORDS
from synth_platform.evaluation.gates import Gate
from synth_platform.margins.planned import NOT_ASSESSED

VERDICT = "verdict"
ELIGIBLE = "eligible"


# What a reason or a note of a decision means, for readers who do not know the codes.
IN_WORDS: Mapping[str, str] = {
    "DUA_NOT_REVIEWED": "the data use agreement was not reviewed for release",
    "CONTROL_GENERATOR": "a control is never released",
    "UNKNOWN_GENERATOR": "the generator is not a registered mechanism",
    "SEEDED_NOISE": "noise came from a seeded source, which is for tests",
    "SCHEMA_VIOLATION": "the synthetic table breaks the cohort's contract",
    "UTILITY_FAIL": "an endpoint is not preserved",
    "UTILITY_HOLD": "an endpoint cannot be judged on these real rows",
    "CLOSEST_RECORD_FAIL": "the table is nearer to training rows than chance allows",
    "MEMBERSHIP_FAIL": "an attack tells training rows from fresh ones",
    "MEMBERSHIP_NOT_CONFIRMED": "no attack succeeds, but there are too few rows to confirm it",
    "LEDGER_ABSENT": "private rows were read without a ledger entry",
    "BUDGET_EXCEEDED": "the privacy budget does not cover it",
    "DP_AUDIT_CONTRADICTION": "an audit measured more leakage than the ledger allows",
    "INFERENCE_FAIL": "attributes of training rows are guessed, or training rows singled out, more often than chance",
    "NO_PRIVATE_LIFT": "public rows alone would serve as well on every endpoint",
    "LOOSENED_MEMBERSHIP_LIMIT": "the cohort registers a looser membership limit than the platform's default",
    "LOW_POWER_UTILITY": "a fresh draw of the truth would keep utility less often than the registered floor",
    "LOW_POWER_CLOSEST_RECORD": "a fresh draw of the truth would pass closest record less often than the floor",
    "LOW_POWER_MEMBERSHIP": "a harmless table would be confirmed less often than the registered floor",
}


# The same of decisions on margins, beside the codes they share with tables.
MARGINS_IN_WORDS: Mapping[str, str] = {
    "DISCLOSURE_FAIL": "what the limit hides can be inferred from the margins",
    "FIT_FAIL": "the model misses more than a tenth of the people of a margin",
    "MARGINS_NOT_MATCHED": "the model does not have all margins exactly; the card names those it misses",
}


# What `gates/power` calls that which a gate judges.
POWER_OF: Mapping[str, tuple[str, ...]] = {
    "utility_gate": ("c_index", "macro_f1", "auroc", "spearman", "utility_gate"),
    "closest_record_gate": ("closest_record",),
    "membership_gate": ("membership",),
    "inference_gate": (),  # it tells itself what its rows could detect
}


def verdict_check(
    judged: Mapping[str, Any],
    gate: Gate,
    code: str,
    power: Mapping[str, Any],
    instead: str | None,
    asset: dg.AssetKey,
) -> dg.AssetCheckResult:
    """Passes when the status does not stand in the way of a release; says in words what does, and what it is worth.

    power: the cohort's `gates/power`. instead: the verdict that counts in the place of this one, by registration.
    """
    status, reasons = str(judged["status"]), gate.explain(judged)
    passed = status in gate.passing
    sentences = [f"{status}: {'; '.join(reasons)}" if reasons else status, _needed(gate, instead)]
    if low := [name for name in power["summary"]["low"] if name in POWER_OF[gate.name]]:
        sentences.append(
            f"Low power for {', '.join(low)}: a fresh draw of the truth would pass less often than the registered floor"
        )
    elif POWER_OF[gate.name]:
        sentences.append("A fresh draw of the truth passes at least as often as the registered floor")
    if code in CONTROL_IN_WORDS:
        sentences.append(f"{code} is a control: {CONTROL_IN_WORDS[code]}")
    return dg.AssetCheckResult(
        check_name=VERDICT,
        asset_key=asset,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=". ".join(sentences) + ".",
        metadata={"status": status, "claim": gate.claim},
    )


def decision_check(decision: Mapping[str, Any], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes when the release rule says ELIGIBLE_*; otherwise the reasons stand in the description."""
    grade, reasons, notes = str(decision["decision"]), list(decision["reasons"]), list(decision["notes"])
    sentences = [f"{grade}: {'; '.join(map(_in_words, reasons))}" if reasons else grade]
    sentences += [f"Note: {_in_words(note)}" for note in notes]
    return dg.AssetCheckResult(
        check_name=ELIGIBLE,
        asset_key=asset,
        passed=grade.startswith("ELIGIBLE_"),
        severity=dg.AssetCheckSeverity.WARN,
        description=". ".join(sentences) + ".",
        metadata={"decision": grade, "reasons": reasons, "notes": notes},
    )


# What a reason of the disclosure gate means.
DISCLOSED: Mapping[str, str] = {
    "small_cell_recoverable": "a count below the limit can be told from the released ones",
    "attribute_disclosed": "everybody of a group is known to be in one category",
    "zero_inferred": "a released cell that may by itself have people is found to be empty",
    "differencing": "two tables differ by fewer people than the limit",
    "margins_contradict": "no one table of people fits all margins, so each was bounded by itself",
}


def disclosure_check(judged: Mapping[str, Any], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes when nothing that the limit hides can be inferred; says in words what can."""
    status, reasons = str(judged["status"]), list(judged["reasons"])
    found = "; ".join(f"{DISCLOSED[reason]} ({reason})" for reason in reasons)
    return dg.AssetCheckResult(
        check_name=VERDICT,
        asset_key=asset,
        passed=status == "PASS",
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{status}: {found}." if found else f"{status} at limit {judged['limit']}, by {judged['method']}.",
        metadata={"status": status, "reasons": reasons},
    )


def margins_utility_check(judged: Mapping[str, Any], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes unless a table that a margin holds is poorly kept; no release waits for it."""
    status = str(judged["status"])
    words = {
        "good": "every table that a margin holds is well kept (S_pMSE below 3)",
        "acceptable": "every table that a margin holds is acceptably kept (S_pMSE below 10)",
        "poor": "a table that a margin holds is poorly kept (S_pMSE of 10 or more)",
        NOT_ASSESSED: "there are published tables alone, and no rows to compare with",
    }
    return dg.AssetCheckResult(
        check_name=VERDICT,
        asset_key=asset,
        passed=status != "poor",
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{status}: {words[status]}.",
        metadata={"status": status},
    )


def _in_words(code: str) -> str:
    words = {**IN_WORDS, **MARGINS_IN_WORDS}
    return f"{words[code]} ({code})"


def _needed(gate: Gate, instead: str | None) -> str:
    if instead is None:
        return f"A release needs {_either(gate.passing)}"
    also = "; a FAIL here blocks as well" if gate.name == "membership_gate" else ""
    return f"This cohort registers another design: {instead} counts{also}"


def _either(statuses: frozenset[str]) -> str:
    return " or ".join(sorted(statuses))
