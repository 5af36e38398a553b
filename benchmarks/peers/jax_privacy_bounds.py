"""What `jax_privacy.auditing.CanaryScoreAuditor` says about the cases on standard input; runs in its own environment.

Reads a JSON list of {"members", "nonmembers", "delta", "significance", "threshold"} and writes, for each, the bounds of
the peer's methods at that explicit threshold, and its GDP bound over all its own thresholds with these thresholds.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

import numpy as np
from jax_privacy.auditing import CanaryScoreAuditor, Explicit


def bounds(case: dict[str, Any]) -> dict[str, Any]:
    auditor = CanaryScoreAuditor(np.array(case["members"]), np.array(case["nonmembers"]))
    significance, delta, at = case["significance"], case["delta"], Explicit(case["threshold"])
    return {
        "one_sided": float(auditor.epsilon_clopper_pearson(significance, delta, threshold_strategy=at)),
        "two_sided": float(auditor.epsilon_clopper_pearson(significance, delta, False, threshold_strategy=at)),
        "one_run": float(auditor.epsilon_one_run(significance, delta, threshold_strategy=at)),
        "one_run_gdp": float(auditor.epsilon_one_run_fdp(significance, delta, threshold_strategy=at)),
        "gdp": float(auditor.epsilon_from_gdp(significance, delta)),
        "gdp_thresholds": [float(t) for t in auditor._thresholds if np.isfinite(t)],
    }


def gdp_on_null() -> list[float]:
    """The peer's 95 % GDP bound on scores that tell nothing: above 0 is wrong."""
    draws = [np.random.default_rng(seed).normal(size=(2, 150)) for seed in range(200)]
    return [float(CanaryScoreAuditor(*pair).epsilon_from_gdp(0.05, 1e-5)) for pair in draws]


answer = {"bounds": [bounds(case) for case in json.load(sys.stdin)], "gdp_on_null": gdp_on_null()}
json.dump({"jax_privacy": version("jax_privacy"), **answer}, sys.stdout)
