"""Everything that was judged about one generator's tables, and which of several designs counts.

The gates judge the released table on the test split. A cohort too small for that registers, before any table is seen, a
cross-fitted utility or a half-split membership audit (8-1 §3.3, §3.4). The direct attack on the released table is never
dropped: only it sees that very table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synth_platform.contract.cohort_spec import DP_GENERATORS, CohortSpec, GeneratorCode
from synth_platform.privacy.fingerprint import canonical_json, sha256_hex

Document = Mapping[str, Any]
Verdicts = Mapping[str, Document]

RULE_GATES = ("utility_gate", "closest_record_gate", "membership_gate")
INFERENCE_GATE = "inference_gate"
HALF_SPLIT = "half_split_audit"
CROSS_FIT_UTILITY = "cross_fit_utility"
MECHANISM = "mechanism_audit"
POWER = "gates/power"


class StaleVerdictError(ValueError):
    """Verdicts were made under another cohort.yaml than the one that stands now."""


def verdict_names(code: GeneratorCode) -> tuple[str, ...]:
    """The documents a decision on `code` rests on, as the assets that hold them are called under the generator."""
    gates = (*RULE_GATES, INFERENCE_GATE)
    return (*gates, HALF_SPLIT, CROSS_FIT_UTILITY, MECHANISM) if code in DP_GENERATORS else gates


def judged_instead(spec: CohortSpec, code: GeneratorCode) -> dict[str, str]:
    """Gates whose place another verdict takes by the registered design, and which."""
    if code not in DP_GENERATORS:
        return {}
    designs = {
        "utility_gate": (spec.gates.utility_design == "cross_fit", CROSS_FIT_UTILITY),
        "membership_gate": (spec.gates.membership_design == "half_split", HALF_SPLIT),
    }
    return {gate: other for gate, (registered, other) in designs.items() if registered}


def require_current(spec: CohortSpec, code: GeneratorCode, verdicts: Verdicts) -> None:
    """Raise StaleVerdictError where a verdict was made under another registration than `spec`.

    With other seeds, limits or designs it would be a verdict on another table, or by another rule.
    """
    stale = [name for name, verdict in verdicts.items() if verdict["registration"] != spec.registration]
    if stale:
        raise StaleVerdictError(
            f"cohort {spec.name!r}: cohort.yaml changed since {code} was judged ({', '.join(stale)}); "
            "materialise its gates again"
        )


def unaudited(documents: Verdicts, report: Document) -> list[str]:
    """Which documents, named as assets are, the audit's report is not about: it has the hash of each one's content."""
    return [
        name
        for name, document in documents.items()
        if report["documents"].get(name) != sha256_hex(canonical_json(document))
    ]


def utility_summary(spec: CohortSpec, code: GeneratorCode, verdicts: Verdicts) -> dict[str, Any]:
    """The utility verdict that counts, with its `design`."""
    if "utility_gate" in judged_instead(spec, code):
        return {**verdicts[CROSS_FIT_UTILITY]["summary"], "design": "cross_fit"}
    return {**verdicts["utility_gate"]["summary"], "design": "holdout"}


def membership_summary(spec: CohortSpec, code: GeneratorCode, verdicts: Verdicts) -> dict[str, Any]:
    """The membership verdict that counts, with its `design`.

    Half splits say how the generator treats these patients; the released table itself must not fail either, and
    `direct` is the status of that.
    """
    direct = verdicts["membership_gate"]["summary"]
    if "membership_gate" in judged_instead(spec, code):
        audit = verdicts[HALF_SPLIT]["summary"]
        status = "FAIL" if direct["status"] == "FAIL" else audit["status"]
        return {**audit, "status": status, "design": "half_split", "direct": direct["status"]}
    return {**direct, "design": "direct"}
