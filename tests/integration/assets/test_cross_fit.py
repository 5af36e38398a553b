"""`<G>/cross_fit_utility` in a run: judged where it is registered, free where it is not, silent about its figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BEHIND = [
    *(f"cohort/{name}" for name in ("rejections", "features", "manifest", "expression", "methylation", "clinical")),
    "public/rows",
    "public/reference",
    "normalized/matrix",
]
ASSET = "G0/cross_fit_utility"


@pytest.mark.parametrize(("design", "statuses"), [("holdout", {"NOT_REGISTERED"}), ("cross_fit", {"FAIL", "HOLD"})])
def test_it_judges_only_where_it_is_registered(
    new_platform: Callable[..., Any],
    write_cohort: Callable[[Path, dict[str, Any]], Path],
    document: dict[str, Any],
    tmp_path: Path,
    design: str,
    statuses: set[str],
) -> None:
    """Claim: the registered design alone costs anything; no ledger entry is made; events carry a status and no figure.

    At ε = 0.1 and 180 training rows G0 is far from the real arm: FAIL, or HOLD where that arm itself shows nothing.
    """
    document["gates"] |= {"utility_design": design, "folds": 3}
    platform = new_platform(seeded=1)
    platform.add(write_cohort(tmp_path / "cohort", document))
    platform.run(*BEHIND, plan=None)
    result = platform.run(ASSET, plan="eps0.1")
    judged = platform.read(ASSET, plan="eps0.1")
    assert judged["status"] in statuses
    assert set(judged) == {"status", "summary", "evidence", "registration"}
    assert judged["registration"] == platform.spec().registration
    assert bool(judged["evidence"]) == (design == "cross_fit")
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert checks["schema"].passed
    assert checks["verdict"].passed == (design == "holdout")
    assert checks["verdict"].description.startswith(judged["status"])
    assert [row for row in platform.rows() if row["state"] != "budget"] == []
    said = json.dumps([entry.to_json() for entry in platform.instance.all_logs(result.run_id)])
    for endpoint in judged["summary"]["endpoints"].values():
        for name in ("tstr", "trtr", "lcb_trtr"):
            assert str(endpoint[name]) not in said
