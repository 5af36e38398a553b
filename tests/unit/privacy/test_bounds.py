"""Attack bounds against the geometry they come from (8-1 §2.6) and exact coverage."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, norm

from synth_platform.privacy.accounting import gaussian_epsilon
from synth_platform.privacy.bounds import (
    empirical_epsilon_lower_bound,
    epsilon_for_auroc,
    membership_auroc_bound,
    membership_auroc_bound_gaussian,
)


@pytest.mark.parametrize(("epsilon", "auroc", "digits"), [(1, 0.731, 3), (3, 0.953, 3), (8, 0.9997, 4)])
def test_auroc_bounds_of_8_1(epsilon: float, auroc: float, digits: int) -> None:
    assert round(membership_auroc_bound(epsilon, 1e-5), digits) == auroc


def test_epsilon_for_the_gate_of_8_1() -> None:
    assert epsilon_for_auroc(0.55, 1e-5) == pytest.approx(0.2006, abs=5e-5)
    assert epsilon_for_auroc(0.55, 1e-6) == pytest.approx(0.2007, abs=5e-5)


@settings(deadline=None, max_examples=50)
@given(epsilon=st.floats(0, 12), delta=st.floats(0, 0.3))
def test_auroc_bound_is_the_area_of_the_roc_region(epsilon: float, delta: float) -> None:
    def highest_tpr(fpr: float) -> float:
        return min(1.0, math.exp(epsilon) * fpr + delta, 1 - math.exp(-epsilon) * (1 - delta - fpr))

    corners = [(1 - delta) / (1 + math.exp(epsilon)), 1 - delta]
    edges = [0.0, *corners, 1.0]
    area = sum(quad(highest_tpr, a, b)[0] for a, b in itertools.pairwise(edges))
    assert membership_auroc_bound(epsilon, delta) == pytest.approx(area, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(auroc=st.floats(0.51, 0.9999), delta=st.floats(1e-9, 1e-3))
def test_auroc_and_epsilon_are_inverse(auroc: float, delta: float) -> None:
    assert membership_auroc_bound(epsilon_for_auroc(auroc, delta), delta) == pytest.approx(auroc, abs=1e-12)


def test_an_auroc_that_no_epsilon_gives_is_refused() -> None:
    for auroc in (0.4, 0.55, 1.0):
        with pytest.raises(ValueError, match="auroc"):
            epsilon_for_auroc(auroc, 0.1)


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.5, 2.0, 5.0])
def test_gaussian_auroc_bound_is_the_area_under_the_trade_off_curve(mu: float) -> None:
    area, _ = quad(lambda fpr: norm.cdf(norm.ppf(fpr) + mu), 0, 1, epsabs=1e-11, limit=500)
    assert membership_auroc_bound_gaussian(mu) == pytest.approx(area, abs=1e-8)


@settings(deadline=None, max_examples=50)
@given(mu=st.floats(1e-3, 6), delta=st.floats(-10, -1).map(lambda exponent: 10**exponent))
def test_gaussian_auroc_bound_is_inside_every_epsilon_delta_bound(mu: float, delta: float) -> None:
    epsilon = gaussian_epsilon(mu, delta)
    assert membership_auroc_bound_gaussian(mu) <= membership_auroc_bound(epsilon, delta) + 1e-12


def test_a_perfect_attack_refutes_what_clopper_pearson_allows() -> None:
    """10 of 10 right on both sides: each rate is at least .025^(1/10) with 97.5 %."""
    rate = 0.025**0.1
    found = empirical_epsilon_lower_bound(true_positives=10, members=10, false_positives=0, non_members=10, delta=0)
    assert found == pytest.approx(math.log(rate / (1 - rate)), rel=1e-12)


def test_a_mirrored_attack_is_worth_as_much() -> None:
    """An attack that is only ever sure of non-members counts through the second inequality."""
    first = empirical_epsilon_lower_bound(true_positives=30, members=99, false_positives=0, non_members=99, delta=1e-5)
    second = empirical_epsilon_lower_bound(
        true_positives=99, members=99, false_positives=69, non_members=99, delta=1e-5
    )
    assert first == pytest.approx(second, rel=1e-12)
    assert first > 1


def test_guessing_refutes_nothing() -> None:
    assert (
        empirical_epsilon_lower_bound(true_positives=50, members=100, false_positives=50, non_members=100, delta=0) == 0
    )
    assert empirical_epsilon_lower_bound(true_positives=0, members=5, false_positives=5, non_members=5, delta=0) == 0


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_coverage_on_randomised_response(epsilon: float) -> None:
    """Randomised response attains ε with δ = 0. Over all outcomes, the bound exceeds ε with probability ≤ 5 %."""
    n, rate = 30, math.exp(epsilon) / (1 + math.exp(epsilon))
    weight = np.outer(binom.pmf(range(n + 1), n, rate), binom.pmf(range(n + 1), n, 1 - rate))
    wrong = [
        (
            empirical_epsilon_lower_bound(
                true_positives=tp, members=n, false_positives=fp, non_members=n, delta=0, confidence=0.95
            )
            > epsilon
        )
        for tp in range(n + 1)
        for fp in range(n + 1)
    ]
    assert weight.ravel()[wrong].sum() <= 0.05


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="positives"):
        empirical_epsilon_lower_bound(true_positives=6, members=5, false_positives=0, non_members=5, delta=0)
    with pytest.raises(ValueError, match="positives"):
        empirical_epsilon_lower_bound(true_positives=0, members=0, false_positives=0, non_members=5, delta=0)
