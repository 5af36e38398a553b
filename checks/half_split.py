"""The half-split audit as an asset check: status and words, never a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from checks.verdicts import VERDICT
from synth_platform.trials.half_split_gate import CLAIM, PASSING, explain_half_split


def half_split_check(judged: Mapping[str, Any], power_floor: float, asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes when the audit confirms, or is not registered; says in words what stands in the way, power included."""
    status = str(judged["status"])
    if status == "NOT_REGISTERED":
        sentence = "NOT_REGISTERED: this cohort is judged on the released table alone (gates.membership_design)."
    else:
        sentence = ": ".join([status, "; ".join(explain_half_split(judged, power_floor)) or CLAIM])
        sentence = f"{sentence.rstrip('.')}. A release needs PASS_CONFIRMED."
    return dg.AssetCheckResult(
        check_name=VERDICT,
        asset_key=asset,
        passed=status in PASSING,
        severity=dg.AssetCheckSeverity.ERROR,
        description=sentence,
        metadata={"status": status, "claim": CLAIM},
    )
