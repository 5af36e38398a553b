"""The empirical bounds on ε and μ at cases where they are known, and beside jax_privacy on the same scores."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm

from synth_platform.evaluation.audit_bound import (
    FALSE_POSITIVE_RATES,
    OperatingPoint,
    epsilon_lower_bound,
    points_at_ranks,
    points_at_thresholds,
)
from synth_platform.privacy.accounting import gaussian_epsilon

PEER = json.loads((Path(__file__).parent / "jax_privacy_bounds.json").read_text("utf-8"))  # benchmarks/epsilon_bounds
PAIRS = list(zip(PEER["cases"], PEER["bounds"], strict=True))


def test_equal_scores_prove_nothing() -> None:
    scores = np.random.default_rng(1).normal(size=500)
    assert epsilon_lower_bound(scores, scores, delta=1e-5) == 0
    assert epsilon_lower_bound(np.ones(50), np.ones(50), delta=1e-5) == 0
    assert max(point.mu() for point in points_at_ranks(scores, scores, 0.95)) == 0


def test_perfect_separation_gives_the_closed_form() -> None:
    """At FPR 0 the bound is what both intervals allow; the mirrored inequality gives the same there."""
    n = 1000
    each = 1 - 0.05 / (2 * len(FALSE_POSITIVE_RATES))
    lower = binomtest(n, n, alternative="greater").proportion_ci(each, "exact").low
    upper = binomtest(0, n, alternative="less").proportion_ci(each, "exact").high
    found = epsilon_lower_bound(np.ones(n) + 1, np.arange(n) / n, delta=1e-5)
    assert found == pytest.approx(math.log((lower - 1e-5) / upper), abs=1e-9)
    [first, *_] = points_at_ranks(np.ones(n) + 1, np.arange(n) / n, 0.95)
    assert first.mu() == pytest.approx(norm.ppf(lower) - norm.ppf(upper), abs=1e-9)


def test_the_bound_grows_with_evidence_and_falls_with_delta_and_confidence() -> None:
    def separated(n: int, delta: float = 0.0, confidence: float = 0.95) -> float:
        return epsilon_lower_bound(np.full(n, 2.0), np.arange(n) / n, delta, confidence)

    assert separated(50) < separated(500) < separated(5000)
    assert separated(500, delta=0.1) < separated(500)
    assert separated(500, confidence=0.99) < separated(500)


def test_an_attack_sure_of_non_members_counts_as_much() -> None:
    """(ε, δ)-DP holds with the data sets exchanged: swapping sides and signs changes nothing at fixed thresholds."""
    members = np.repeat([0.0, 2.0], [3, 97])
    others = np.repeat([0.0, 2.0], [70, 30])
    [point] = points_at_thresholds(members, others, [1.0], 0.95)
    [mirrored] = points_at_thresholds(-others, -members, [-1.0], 0.95)
    assert point.epsilon(1e-5) == pytest.approx(mirrored.epsilon(1e-5), rel=1e-12)
    assert point.epsilon(1e-5) > math.log((point.true_positive - 1e-5) / point.false_positive)


@pytest.mark.parametrize("mu", [0.2, 1.0])
@pytest.mark.parametrize("group", [1, 4])
def test_points_of_the_gaussian_trade_off_curve_refute_no_more_than_it(mu: float, group: int) -> None:
    """A point on the curve of a group·μ-GDP mechanism gives μ back, and never more than its exact ε."""
    for rate in (0.001, 0.02, 0.1):
        point = OperatingPoint(float(norm.cdf(norm.ppf(rate) + group * mu)), rate)
        assert point.mu(group) == pytest.approx(mu, rel=1e-6)
        assert point.epsilon(1e-5, group) <= gaussian_epsilon(mu, 1e-5) * (1 + 1e-9)


def test_groups_of_a_mechanism_whose_groups_are_known() -> None:
    """Randomised response of a group's sum: k rows are e^(kε) apart at δ = 0, so the point gives ε back."""
    for group in (1, 3, 8):
        rate = 1 / (1 + math.exp(0.4 * group))
        assert OperatingPoint(1 - rate, rate).epsilon(0.0, group) == pytest.approx(0.4, rel=1e-9)
    assert OperatingPoint(0.9, 0.1).epsilon(0.05, 3) < OperatingPoint(0.9, 0.1).epsilon(0.0, 3)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_coverage_on_randomised_response(epsilon: float) -> None:
    """Randomised response attains ε with δ = 0. Over all outcomes, the bound exceeds ε with probability ≤ 5 %."""
    n, rate = 30, math.exp(epsilon) / (1 + math.exp(epsilon))
    weight = np.outer(binom.pmf(range(n + 1), n, rate), binom.pmf(range(n + 1), n, 1 - rate))

    def found(tp: int, fp: int) -> float:
        members, others = np.repeat([1.0, 0.0], [tp, n - tp]), np.repeat([1.0, 0.0], [fp, n - fp])
        [point] = points_at_thresholds(members, others, [0.5], 0.95)
        return point.epsilon(0.0)

    wrong = [found(tp, fp) > epsilon for tp in range(n + 1) for fp in range(n + 1)]
    assert weight.ravel()[wrong].sum() <= 0.05


@pytest.mark.parametrize(("case", "theirs"), PAIRS)
def test_one_threshold_agrees_with_jax_privacy(case: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Clopper-Pearson with half of the error on each rate; the peer looks at both inequalities where it is asked to."""
    members, others = np.array(case["members"]), np.array(case["nonmembers"])
    [point] = points_at_thresholds(members, others, [case["threshold"]], 1 - case["significance"])
    assert point.epsilon(case["delta"]) == pytest.approx(theirs["two_sided"], abs=1e-9)
    assert point.epsilon(case["delta"]) >= theirs["one_sided"] - 1e-9


@pytest.mark.parametrize(("case", "theirs"), PAIRS)
def test_the_gaussian_bound_agrees_with_jax_privacy(case: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Over the peer's own thresholds, of which the last is infinite.

    The peer (2.0.0) takes the absolute value of a bound that proves nothing, Φ⁻¹(TPR_low) < Φ⁻¹(FPR_up), so it can
    only be larger; in the third case, drawn at μ = .3, it is larger than the truth.
    """
    members, others = np.array(case["members"]), np.array(case["nonmembers"])
    points = points_at_thresholds(members, others, [*theirs["gdp_thresholds"], math.inf], 1 - case["significance"])
    ours = gaussian_epsilon(max(point.mu() for point in points), case["delta"])
    if case is PEER["cases"][2]:
        assert ours < gaussian_epsilon(0.3, case["delta"]) < theirs["gdp"]
    else:
        assert ours == pytest.approx(theirs["gdp"], abs=1e-5)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="needs member"):
        epsilon_lower_bound(np.array([]), np.ones(3), 1e-5)
    with pytest.raises(ValueError, match="delta"):
        epsilon_lower_bound(np.ones(3), np.ones(3), 1.0)
    with pytest.raises(ValueError, match="confidence"):
        points_at_thresholds(np.ones(3), np.ones(3), [0.0], 1.0)
    with pytest.raises(ValueError, match="threshold"):
        points_at_thresholds(np.ones(3), np.ones(3), [], 0.9)
