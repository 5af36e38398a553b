"""log e_k against the sum over all subsets and against the coefficients of a polynomial."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.discovery.statistics.elementary_symmetric import log_elementary_symmetric


@settings(deadline=None, max_examples=60)
@given(log_weights=st.lists(st.floats(-3, 3), min_size=1, max_size=7))
def test_it_is_the_sum_over_all_subsets(log_weights: list[float]) -> None:
    """Claim: e_k is the sum over every choice of k weights of their product, for k = 0..n."""
    n = len(log_weights)
    by_hand = [math.fsum(math.exp(sum(chosen)) for chosen in combinations(log_weights, k)) for k in range(n + 1)]
    assert np.exp(log_elementary_symmetric(np.array(log_weights), n)) == pytest.approx(by_hand, rel=1e-12)


def test_columns_are_by_themselves_and_a_lower_order_is_a_part() -> None:
    """Claim: [n, m] gives every column what it gets alone, equal to NumPy's ∏(x + w); order k gives the first k + 1."""
    log_weights = np.random.default_rng(0).normal(0, 1, (9, 4))
    whole = log_elementary_symmetric(log_weights, 9)
    for j in range(4):
        coefficients = np.poly(-np.exp(log_weights[:, j]))  # of ∏ (x + w_i), highest power first
        assert np.exp(whole[:, j]) == pytest.approx(coefficients, rel=1e-10)
    assert log_elementary_symmetric(log_weights, 5) == pytest.approx(whole[:6])


def test_nothing_overflows_or_cancels() -> None:
    """Claim: for 3,000 equal weights, whose products leave float64, log e_k = log C(n, k) + k log w."""
    n, log_weight = 3000, 2.5
    log_e = log_elementary_symmetric(np.full(n, log_weight), n)
    choose = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)])
    assert log_e == pytest.approx(choose + log_weight * np.arange(n + 1), abs=1e-9, rel=1e-11)
