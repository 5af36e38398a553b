"""`<G>/mechanism_audit` in a run: reads public rows alone, spends nothing, and a faulty build fails its check."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from synth_platform.privacy import statistics
from synth_platform.privacy.mechanisms import gaussian_sum

BEHIND = [
    *(f"cohort/{name}" for name in ("rejections", "features", "manifest", "expression", "methylation", "clinical")),
    "public/rows",
    "public/reference",
]
ASSET = "G0A/mechanism_audit"


def test_the_build_is_audited_without_a_ledger_entry(
    new_platform: Callable[..., Any],
    write_cohort: Callable[[Path, dict[str, Any]], Path],
    document: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Claim: a correct build is OK (but for 1e-3), half the noise is a failed check with a word and no figure."""
    platform = new_platform(seeded=1)
    platform.add(write_cohort(tmp_path / "cohort", document))
    platform.run(*BEHIND, plan=None)
    result = platform.run(ASSET, plan="eps2")
    audited = platform.read(ASSET, plan="eps2")
    assert audited["status"] == "OK"
    assert 0 < audited["summary"]["mu_lower_bound"] <= audited["summary"]["mu_claimed"]
    assert audited["summary"]["epsilon_claimed"] == pytest.approx(2.0, abs=1e-6)
    assert set(audited) == {"status", "summary", "evidence", "registration"}
    assert audited["registration"] == platform.spec().registration
    assert all(check.passed for check in result.get_asset_check_evaluations())
    assert [row for row in platform.rows() if row["state"] != "budget"] == []

    def halved(contributions: Any, *, sensitivity: float, sigma: float, noise: Any) -> Any:
        return gaussian_sum(contributions, sensitivity=sensitivity, sigma=sigma / 2, noise=noise)

    monkeypatch.setattr(statistics, "gaussian_sum", halved)
    result = platform.run(ASSET, plan="eps2", check=False)
    audited = platform.read(ASSET, plan="eps2")
    assert audited["status"] == "CONTRADICTION"
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert checks["schema"].passed
    assert not checks["not_contradicted"].passed
    assert checks["not_contradicted"].description.startswith("CONTRADICTION")
    said = json.dumps([entry.to_json() for entry in platform.instance.all_logs(result.run_id)])
    assert str(audited["summary"]["mu_lower_bound"]) not in said
