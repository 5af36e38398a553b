"""The mechanism audit's verdict as an asset check: a contradiction is an error in the build, whatever table it made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

NOT_CONTRADICTED = "not_contradicted"
IN_WORDS: Mapping[str, str] = {
    "OK": "The attack on worst rows proves no more leakage than the ledger charges.",
    "CONTRADICTION": (
        "CONTRADICTION: an attack on worst rows proves more leakage than the ledger charges. The code that clips, adds "
        "noise or accounts is wrong: release nothing made by this build (docs/mechanism_audit.md)."
    ),
}


def not_contradicted(document: Mapping[str, Any], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes when the status is OK."""
    status = str(document["status"])
    return dg.AssetCheckResult(
        check_name=NOT_CONTRADICTED,
        asset_key=asset,
        passed=status == "OK",
        severity=dg.AssetCheckSeverity.ERROR,
        description=IN_WORDS[status],
        metadata={"status": status},
    )
