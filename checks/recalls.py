"""Checks of governance: recalled releases, looks that could not be finished, budgets that are nearly spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from resources.watch import LEVELS
from synth_platform.release.findings import in_words

NO_RECALL = "no_recall"
LOOKED_AT = "looked_at"
BUDGET_LEFT = "budget_left"


def recall_check(recalled: Mapping[str, Sequence[str]], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Fails while a recalled release (name -> reason codes) is still in the released zone, or was recalled just now."""
    named = [f"{name} is RECALLED: {'; '.join(map(in_words, reasons))}" for name, reasons in recalled.items()]
    advice = "Take the package out of the released zone and tell whoever has it"
    return dg.AssetCheckResult(
        check_name=NO_RECALL,
        asset_key=asset,
        passed=not named,
        severity=dg.AssetCheckSeverity.ERROR,
        description=". ".join([*named, advice]) + "." if named else "No release in the released zone is recalled.",
        metadata={"recalled": sorted(recalled)},
    )


def looked_at_check(hindered: Mapping[str, Sequence[str]], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Fails for a release (name -> hindrance codes) whose look stays open until something can be read again."""
    named = [f"{name}: {'; '.join(map(in_words, codes))}" for name, codes in hindered.items()]
    return dg.AssetCheckResult(
        check_name=LOOKED_AT,
        asset_key=asset,
        passed=not named,
        severity=dg.AssetCheckSeverity.ERROR,
        description=". ".join([*named, "The next re-audit continues these looks"]) + "."
        if named
        else "Every published release was looked at to the end.",
        metadata={"open": sorted(hindered)},
    )


def budget_check(budgets: Sequence[Mapping[str, Any]], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Warns about every domain that has reached the first of `LEVELS`."""
    named = [
        f"{budget['domain']} has spent {budget['level']} % of its cap or more" for budget in budgets if budget["level"]
    ]
    return dg.AssetCheckResult(
        check_name=BUDGET_LEFT,
        asset_key=asset,
        passed=not named,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(named) + "." if named else f"Every domain has spent less than {LEVELS[0]} % of its cap.",
    )
