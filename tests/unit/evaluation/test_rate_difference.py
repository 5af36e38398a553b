"""Differences of two rates: intervals against published examples and scipy, statuses by the margin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm

from synth_platform.evaluation.rate_difference import compare_rates, newcombe, wilson

Z = float(norm.ppf(0.975))


@pytest.mark.parametrize(
    ("a", "m", "b", "n", "lower", "upper"),
    [
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (6, 7, 2, 7, 0.0582, 0.8062),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (0, 10, 0, 20, -0.1611, 0.2775),
        (10, 10, 0, 20, 0.6791, 1.0000),
    ],
)
def test_newcombe_reproduces_his_table(a: int, m: int, b: int, n: int, lower: float, upper: float) -> None:
    """Newcombe 1998, Statistics in Medicine 17, 873-890, table II, method 10."""
    assert newcombe(a / m, m, b / n, n, Z) == pytest.approx((lower, upper), abs=6e-5)


@pytest.mark.parametrize(("k", "n"), [(0, 12), (3, 12), (12, 12), (140, 720)])
def test_wilson_equals_scipy(k: int, n: int) -> None:
    interval = binomtest(k, n).proportion_ci(0.95, method="wilson")
    assert wilson(k / n, n, Z) == pytest.approx((interval.low, interval.high), abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(train=st.floats(0, 1), control=st.floats(0, 1), n=st.integers(1, 5000))
def test_status_follows_the_interval(train: float, control: float, n: int) -> None:
    result = compare_rates(train, n, control, n, margin=0.05, error=0.0125)
    assert -1 <= result.lower <= result.excess + 1e-6 <= result.upper + 2e-6 <= 1 + 3e-6
    expected = "FAIL" if result.lower > 0.05 else "PASS" if result.upper <= 0.05 else "UNDECIDED"
    assert result.status == expected
    assert result.risk is None if control == 1 else result.risk >= 0


def test_few_rows_decide_nothing() -> None:
    """Two rows a side: no success at all is no evidence of safety, two against none none of a leak."""
    none = compare_rates(0.0, 2, 0.0, 2, margin=0.05, error=0.05)
    assert (none.status, none.risk) == ("UNDECIDED", 0.0)
    assert none.upper > 0.5
    assert compare_rates(1.0, 2, 0.5, 2, margin=0.05, error=0.05).status == "UNDECIDED"


@pytest.mark.parametrize(("control", "n"), [(0.2, 600), (0.07, 266), (0.5, 2000)])
def test_the_detectable_excess_is_found_nine_times_in_ten(control: float, n: int) -> None:
    """20,000 binomial pairs with the excess said to be detectable must FAIL with probability .9, within .02: normal
    theory at these counts, and four standard errors are .0085.
    """
    detectable = compare_rates(control, n, control, n, margin=0.05, error=0.0167).detectable
    assert detectable is not None
    rng = np.random.default_rng(1)
    train, others = binom.rvs(n, control + detectable, size=20_000, random_state=rng), rng.binomial(n, control, 20_000)
    pairs, counts = np.unique(np.column_stack([train, others]), axis=0, return_counts=True)
    failed = [newcombe(a / n, n, b / n, n, float(norm.ppf(1 - 0.0167)))[0] > 0.05 for a, b in pairs]
    assert np.average(failed, weights=counts) == pytest.approx(0.9, abs=0.02)


def test_no_excess_is_detectable_in_few_rows_or_where_nothing_is_left() -> None:
    assert compare_rates(0.5, 3, 0.5, 3, margin=0.05, error=0.05).detectable is None
    assert compare_rates(1.0, 500, 1.0, 500, margin=0.05, error=0.05).detectable is None
