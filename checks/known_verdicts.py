"""Controls have a right verdict: the gates are judged by whether they find it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from synth_platform.evaluation.controls import misjudged

KNOWN_VERDICT = "known_verdict"
CONTROL_IN_WORDS: Mapping[str, str] = {
    "S_ORACLE": "fresh rows of the true world, so every gate should pass and only the ledger be ABSENT",
    "S_COPY": "training rows themselves, so both privacy gates must fail",
    "S_MIX": "training rows among fresh-looking ones, so the closest-record gate must fail",
    "S_MARGINAL": "every column drawn by itself, so the utility gate must fail",
    "S_PUBLIC": "public rows drawn again, so the privacy gates should pass at no cost",
}


def known_verdict_check(decision: Mapping[str, Any], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes when the control was judged as it must be; otherwise the description says what went wrong."""
    faults = misjudged(decision)
    return dg.AssetCheckResult(
        check_name=KNOWN_VERDICT,
        asset_key=asset,
        passed=not faults,
        severity=dg.AssetCheckSeverity.ERROR,
        description="; ".join(faults) or "Judged as it must be.",
        metadata={"decision": decision["decision"], "reasons": list(decision["reasons"])},
    )
