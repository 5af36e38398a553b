"""Tilted permutation: clipping, shifts, and what no spread is."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from synth_platform.discovery.statistics.tilted_permutation import TiltedPermutation


@settings(deadline=None, max_examples=60)
@given(values=arrays(np.float64, (6, 3), elements=st.floats(-1e6, 1e6)), kappa=st.floats(0.01, 15.0))
def test_it_is_its_definition(values: np.ndarray, kappa: float) -> None:
    """Claim: log E is the tilt of the clipped sum over its enumerated mean, with ties, constants and far values."""
    x = np.clip(values, -2.0, 1.0)
    sums = np.array([x[list(rows)].sum(axis=0) for rows in combinations(range(6), 2)])
    mean = np.log(np.exp(kappa * (sums - sums.max(axis=0))).mean(axis=0)) + kappa * sums.max(axis=0)
    want = kappa * x[:2].sum(axis=0) - mean
    statistic = TiltedPermutation(2, 4, kappa, -2.0, 1.0, two_sided=False)
    assert statistic.log_e(values, np.arange(6) < 2) == pytest.approx(want, rel=1e-9, abs=1e-9)


def test_constants_are_no_evidence_and_shifts_cancel() -> None:
    case = np.arange(50) < 20
    statistic = TiltedPermutation(20, 30, 0.3, 0.0, 4.0)
    assert statistic.log_e(np.full((50, 2), 3.0), case) == pytest.approx([0.0, 0.0], abs=1e-11)
    values = np.random.default_rng(1).uniform(0, 4, (50, 20))
    moved = TiltedPermutation(20, 30, 0.3, 100.0, 104.0)
    assert moved.log_e(values + 100, case) == pytest.approx(statistic.log_e(values, case), abs=1e-10)


def test_two_sided_is_the_average_of_the_tilt_and_its_mirror() -> None:
    case = np.arange(50) < 20
    values = np.random.default_rng(2).normal(size=(50, 30))
    one = TiltedPermutation(20, 30, 0.3, -2.0, 2.0, two_sided=False)
    average = np.log((np.exp(one.log_e(values, case)) + np.exp(one.log_e(-values, case))) / 2)
    assert TiltedPermutation(20, 30, 0.3, -2.0, 2.0).log_e(values, case) == pytest.approx(average, abs=1e-10)


def test_the_widest_tilt_stays_finite() -> None:
    """Claim: width 100, all cases at the top of 400 records: E is the number of choices."""
    statistic = TiltedPermutation(100, 300, 100.0, 0.0, 1.0, two_sided=False)
    case = np.arange(400) < 100
    log_choices = math.log(math.comb(400, 100))
    assert statistic.log_e(case[:, np.newaxis].astype(float), case)[0] == pytest.approx(log_choices, rel=1e-12)


def test_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="values holds a NaN"):
        TiltedPermutation(1, 1, 1.0, 0.0, 1.0).log_e(np.array([[np.nan], [0.0]]), np.array([True, False]))


@pytest.mark.parametrize("spread", [0.0, 0.51, math.nan])
def test_a_spread_outside_the_bounds_is_refused(spread: float) -> None:
    with pytest.raises(ValueError, match="spread is"):
        TiltedPermutation.designed(
            5, 5, lower=0.0, upper=1.0, spread=spread, features=10, size=1, alpha=0.05, value_mu=1.0
        )
