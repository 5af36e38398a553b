"""The power of the gates as an asset check: which of them these rows are too few for, never by how much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

POWER = "power"
CLAIM = (
    "A fresh draw of the truth passes every endpoint and every gate at least as often as the registered floor, so that "
    "a verdict says more about the table than about the rows."
)


def power_check(judged: Mapping[str, Any], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes when nothing is below the floor. It warns: a gate of low power still refuses what it refuses."""
    low = list(judged["summary"]["low"])
    return dg.AssetCheckResult(
        check_name=POWER,
        asset_key=asset,
        passed=not low,
        severity=dg.AssetCheckSeverity.WARN,
        description=(
            f"These rows are too few for {', '.join(low)}: a fresh draw of the truth would pass less often than the "
            "registered floor, so a verdict that does not pass says little about the table."
            if low
            else "A fresh draw of the truth passes everything at least as often as the registered floor."
        ),
        metadata={"status": str(judged["status"])},
    )
