"""Our privacy lower bounds beside those of jax_privacy on the same scores: docs/mechanism_audit.md, "Agreement".

    SYNTH_JAX_PRIVACY_PYTHON=/path/to/python python -m benchmarks.epsilon_bounds
    SYNTH_JAX_PRIVACY_PYTHON=… python -m benchmarks.epsilon_bounds --freeze FILE     the fixture of the unit test

The peer runs in its own environment, an interpreter that has `jax-privacy`; scores are drawn with fixed seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from synth_platform.evaluation.audit_bound import OperatingPoint, points_at_thresholds
from synth_platform.evaluation.one_run import one_run_epsilon, one_run_mu
from synth_platform.privacy.accounting import gaussian_epsilon

PEER = Path(__file__).parent / "peers" / "jax_privacy_bounds.py"
INTERPRETER = "SYNTH_JAX_PRIVACY_PYTHON"


def cases() -> list[dict[str, Any]]:
    """Gaussian scores over sizes, shifts, δ and significance; the last two tie and separate."""
    found = []
    for seed, (m, n, mu, delta, significance, threshold) in enumerate(
        [
            (120, 120, 1.0, 1e-5, 0.05, 0.8),
            (200, 150, 2.0, 1e-5, 0.05, 1.0),
            (150, 150, 0.3, 1e-5, 0.05, 0.5),
            (250, 250, 3.0, 1e-3, 0.001, 1.5),
            (80, 160, 1.5, 1e-2, 0.1, -0.5),
            (100, 100, 6.0, 1e-5, 0.01, 3.0),
        ]
    ):
        rng = np.random.default_rng(seed)
        found.append((rng.normal(mu, 1, m), rng.normal(0, 1, n), delta, significance, threshold))
    rng = np.random.default_rng(99)
    found.append((rng.integers(2, 9, 120) * 1.0, rng.integers(0, 7, 120) * 1.0, 1e-5, 0.05, 6.0))
    found.append((np.linspace(2, 3, 60), np.linspace(0, 1, 60), 1e-5, 0.05, 1.5))
    return [
        {
            "members": [round(float(s), 3) for s in members],
            "nonmembers": [round(float(s), 3) for s in nonmembers],
            "delta": delta,
            "significance": significance,
            "threshold": threshold,
        }
        for members, nonmembers, delta, significance, threshold in found
    ]


def ours(case: dict[str, Any], gdp_thresholds: list[float]) -> dict[str, float]:
    """The same figures in the peer's conventions; gdp_thresholds: where the peer looks for its GDP bound."""
    members, nonmembers = np.array(case["members"]), np.array(case["nonmembers"])
    delta, confidence, at = case["delta"], 1 - case["significance"], case["threshold"]
    [point] = points_at_thresholds(members, nonmembers, [at], confidence)
    scores = np.concatenate([members, nonmembers])
    included = np.arange(len(scores)) < len(members)
    guesses = [(int((scores >= at).sum()), 0)]
    everywhere = points_at_thresholds(members, nonmembers, [*gdp_thresholds, float("inf")], confidence)
    mu = one_run_mu(scores, included, guesses=guesses, confidence=confidence)
    return {
        "one_sided": one_sided(point, delta),
        "two_sided": point.epsilon(delta),
        "one_run": one_run_epsilon(scores, included, guesses=guesses, delta=delta, confidence=confidence),
        "one_run_gdp": gaussian_epsilon(mu, delta),
        "gdp": gaussian_epsilon(max(point.mu() for point in everywhere), delta),
    }


def one_sided(point: OperatingPoint, delta: float) -> float:
    """The peer's default looks at one of the two inequalities only."""
    refuted = point.true_positive > delta + point.false_positive
    return float(np.log((point.true_positive - delta) / point.false_positive)) if refuted else 0.0


def peer(asked: list[dict[str, Any]], interpreter: str) -> dict[str, Any]:
    answer = subprocess.run([interpreter, PEER], input=json.dumps(asked), capture_output=True, text=True, check=True)
    return dict(json.loads(answer.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--freeze", type=Path, help="write cases and the peer's answers to this file")
    arguments = parser.parse_args()
    interpreter = os.environ.get(INTERPRETER)
    if not interpreter:
        sys.exit(f"{INTERPRETER} must name a Python interpreter that has jax-privacy")
    asked = cases()
    answer = peer(asked, interpreter)
    if arguments.freeze:
        arguments.freeze.write_text(json.dumps({**answer, "cases": asked}) + "\n", encoding="utf-8")
    print(f"| jax_privacy {answer['jax_privacy']}: case | bound | ours | theirs | difference |\n|---|---|---|---|---|")
    start, rows = time.perf_counter(), 0
    for number, (case, theirs) in enumerate(zip(asked, answer["bounds"], strict=True), 1):
        for name, value in ours(case, theirs["gdp_thresholds"]).items():
            rows += 1
            print(f"| {number} | {name} | {value:.6f} | {theirs[name]:.6f} | {abs(value - theirs[name]):.1e} |")
    null = np.array(answer["gdp_on_null"])
    print(f"\nepsilon_from_gdp on {len(null)} null sets: above 0 in {(null > 0).sum()}, up to {null.max():.2f}")
    print(f"{rows} figures in {time.perf_counter() - start:.2f} s (ours)")


if __name__ == "__main__":
    main()
