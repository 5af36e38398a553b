"""The independent audit as an asset check: numbers of checks by kind, failed ones by name, never a private figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

AUDIT_PASSES = "audit_passes"
CLAIM = "Code that shares nothing with the gates recomputes every figure, status, cost and decision from the evidence."
SHOWN = 20  # failed checks in a description; the report has them all


def audit_check(report: Mapping[str, Any], asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Passes when every check of the audit holds; the description names failed ones with their kind."""
    failures = [f"{failure['name']} ({failure['kind']})" for failure in report["failures"]]
    more = [f"and {len(failures) - SHOWN} more"] if len(failures) > SHOWN else []
    passed = report["status"] == "PASS"
    older = any(failure["kind"] == "registration" for failure in report["failures"])
    advice = (
        " Verdicts of another cohort.yaml are among them: run the whole cohort again, all generators." if older else ""
    )
    return dg.AssetCheckResult(
        check_name=AUDIT_PASSES,
        asset_key=asset,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"All {report['passed']} checks hold."
        if passed
        else f"{report['failed']} of {report['failed'] + report['passed']} checks fail: "
        f"{'; '.join([*failures[:SHOWN], *more]) or 'nothing was there to be audited'}.{advice}",
        metadata={"checks": dg.MetadataValue.json(dict(report["counts"])), "failed": report["failed"]},
    )
