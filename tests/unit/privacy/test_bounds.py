"""Attack bounds against the geometry they come from (8-1 §2.6)."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from synth_platform.privacy.accounting import gaussian_epsilon
from synth_platform.privacy.bounds import (
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
