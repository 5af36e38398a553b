"""The saddle-point normaliser against rational arithmetic: exact to rounding, at every shape of the weights."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from synth_platform.discovery.statistics.choice_moment import log_choice_moment


def log_fraction(x: Fraction) -> float:
    """Of numbers far beyond the range of a float."""
    return math.log(x.numerator) - math.log(x.denominator)


def exact(weights: list[Fraction], chosen: int) -> float:
    """log [e_k(w) / C(n, k)], one record at a time in rationals."""
    e = [Fraction(1)] + [Fraction(0)] * chosen
    for w in weights:
        for k in range(chosen, 0, -1):
            e[k] += w * e[k - 1]
    return log_fraction(e[chosen] / math.comb(len(weights), chosen))


@settings(deadline=None, max_examples=150)
@given(exponents=st.lists(st.integers(-72, 72), min_size=2, max_size=14), data=st.data())
def test_powers_of_two_of_any_size(exponents: list[int], data: st.DataObject) -> None:
    """Claim: weights from 2^−72 to 2^72 (a width of 100, the largest), any number chosen: equal to rationals."""
    chosen = data.draw(st.integers(1, len(exponents) - 1))
    got = log_choice_moment(math.log(2) * np.array(exponents, dtype=np.float64)[:, np.newaxis], chosen)
    want = exact([Fraction(2) ** e for e in exponents], chosen)
    assert got[0] == pytest.approx(want, rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("chosen", [1, 7, 60, 113, 119])
@pytest.mark.parametrize("largest", [2, 40])
def test_hundreds_of_records_with_angles_left_out(chosen: int, largest: int) -> None:
    """Claim: where most angles are skipped the truncation is still below rounding; columns of all shapes at once."""
    rng = np.random.default_rng(chosen)
    numerators = np.stack(
        [rng.integers(1, largest + 1, 120), np.ones(120), np.where(np.arange(120) < chosen, largest, 1)], axis=1
    )
    got = log_choice_moment(np.log(numerators), chosen)
    want = [exact([Fraction(int(w)) for w in column], chosen) for column in numerators.T]
    assert got == pytest.approx(want, rel=1e-12, abs=1e-11)


@settings(deadline=None, max_examples=60)
@given(
    copies=st.lists(st.tuples(st.integers(-6, 6), st.integers(0, 30)), min_size=1, max_size=5).filter(
        lambda pairs: sum(count for _, count in pairs) >= 2
    ),
    data=st.data(),
)
def test_copies_are_records(copies: list[tuple[int, int]], data: st.DataObject) -> None:
    """Claim: a weight with c copies is c records, none included."""
    exponents, counts = zip(*copies, strict=True)
    chosen = data.draw(st.integers(1, sum(counts) - 1))
    log_weights = math.log(3) * np.array(exponents, dtype=np.float64)[:, np.newaxis]
    got = log_choice_moment(log_weights, chosen, np.array(counts, dtype=np.float64)[:, np.newaxis])
    want = exact([Fraction(3) ** e for e, count in copies for _ in range(count)], chosen)
    assert got[0] == pytest.approx(want, rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("n", [20_000, 200_000])
def test_a_large_cohort_against_vandermonde(n: int) -> None:
    """Claim: two weights at any n: e_k = Σ_j C(a, j) C(n − a, k − j) w^j, the hypergeometric moment, by logsumexp."""
    a, chosen, log_w = n // 4, n // 5, 0.05
    j = np.arange(min(a, chosen) + 1)
    log_comb = lambda top, bottom: np.array(  # noqa: E731
        [math.lgamma(top + 1) - math.lgamma(b + 1) - math.lgamma(top - b + 1) for b in bottom]
    )
    want = logsumexp(log_comb(a, j) + log_comb(n - a, chosen - j) + log_w * j) - log_comb(n, [chosen])[0]
    got = log_choice_moment(np.array([[0.0], [log_w]]), chosen, np.array([[n - a], [a]], dtype=np.float64))
    assert got[0] == pytest.approx(want, rel=1e-9)
