"""Gate verdicts as asset checks: status and reason, never the figures behind them."""

from __future__ import annotations

from typing import Any

import dagster as dg

from synth_platform.evaluation.gates import Gate

VERDICT = "verdict"
ELIGIBLE = "eligible"


def verdict_check(status: str, gate: Gate, asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes when the status does not stand in the way of a release."""
    passed = status in gate.passing
    return dg.AssetCheckResult(
        check_name=VERDICT,
        asset_key=asset,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{status}. A release needs {' or '.join(sorted(gate.passing))}.",
        metadata={"status": status, "claim": gate.claim},
    )


def decision_check(decision: dict[str, Any], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes when the release rule says ELIGIBLE_*; otherwise the reasons stand in the description."""
    eligible = str(decision["decision"]).startswith("ELIGIBLE_")
    reasons = [*decision["reasons"]]
    return dg.AssetCheckResult(
        check_name=ELIGIBLE,
        asset_key=asset,
        passed=eligible,
        severity=dg.AssetCheckSeverity.WARN,
        description=decision["decision"] + (": " + ", ".join(reasons) if reasons else ""),
        metadata={"decision": decision["decision"], "reasons": reasons, "notes": list(decision["notes"])},
    )
