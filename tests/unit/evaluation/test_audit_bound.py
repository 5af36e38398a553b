"""The empirical epsilon bound at cases where it is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from synth_platform.evaluation.audit_bound import FALSE_POSITIVE_RATES, epsilon_lower_bound


def test_equal_scores_prove_nothing() -> None:
    scores = np.random.default_rng(1).normal(size=500)
    assert epsilon_lower_bound(scores, scores, delta=1e-5) == 0
    assert epsilon_lower_bound(np.ones(50), np.ones(50), delta=1e-5) == 0


def test_perfect_separation_gives_the_closed_form() -> None:
    n = 1000
    each = 1 - 0.05 / (2 * len(FALSE_POSITIVE_RATES))
    lower = binomtest(n, n, alternative="greater").proportion_ci(each, "exact").low
    upper = binomtest(0, n, alternative="less").proportion_ci(each, "exact").high
    found = epsilon_lower_bound(np.ones(n) + 1, np.arange(n) / n, delta=1e-5)
    assert found == pytest.approx(math.log((lower - 1e-5) / upper), abs=1e-9)


def test_the_bound_grows_with_evidence_and_falls_with_delta_and_confidence() -> None:
    def separated(n: int, delta: float = 0.0, confidence: float = 0.95) -> float:
        return epsilon_lower_bound(np.full(n, 2.0), np.arange(n) / n, delta, confidence)

    assert separated(50) < separated(500) < separated(5000)
    assert separated(500, delta=0.1) < separated(500)
    assert separated(500, confidence=0.99) < separated(500)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="needs member"):
        epsilon_lower_bound(np.array([]), np.ones(3), 1e-5)
    with pytest.raises(ValueError, match="delta"):
        epsilon_lower_bound(np.ones(3), np.ones(3), 1.0)
