"""The cross-fit verdict as an asset check: status and reason, never the figures behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from checks.verdicts import VERDICT
from synth_platform.trials.cross_fit import NOT_REGISTERED, PASSING, explain_cross_fit

CLAIM = (
    "Trained on all institutions but those of one fold, the generator keeps at least 95 % of every endpoint on that "
    "fold, over all folds together."
)
_ELSEWHERE = "The cohort registers utility_design: holdout; the utility gate judges it"


def cross_fit_check(judged: Mapping[str, Any], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes when the status does not stand in the way of a release, or another design is registered."""
    status, reasons = str(judged["status"]), explain_cross_fit(judged)
    passed = status in PASSING
    said = f"{status}: {'; '.join(reasons)}" if reasons else status
    sentence = _ELSEWHERE if status == NOT_REGISTERED else "A release needs PASS_CONFIRMED or PASS_POINT"
    return dg.AssetCheckResult(
        check_name=VERDICT,
        asset_key=asset,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{said}. {sentence}.",
        metadata={"status": status, "claim": CLAIM},
    )
