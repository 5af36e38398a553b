"""Shared statistics equal scipy, brute force, or the published formula."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from synth_platform.evaluation.statistics import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    delong,
    jackknife_error,
    jackknife_groups,
    six,
)


@pytest.mark.parametrize(("count", "trials"), [(0, 30), (1, 30), (15, 30), (29, 30), (30, 30), (342, 600)])
def test_clopper_pearson_equals_scipy(count: int, trials: int) -> None:
    upper = binomtest(count, trials, alternative="less").proportion_ci(0.95, "exact").high
    lower = binomtest(count, trials, alternative="greater").proportion_ci(0.95, "exact").low
    assert clopper_pearson_upper(count, trials) == pytest.approx(upper, abs=1e-12)
    assert clopper_pearson_lower(count, trials) == pytest.approx(lower, abs=1e-12)


def test_half_counts_widen_the_bound() -> None:
    assert clopper_pearson_upper(10.5, 40) == clopper_pearson_upper(11, 40)
    assert clopper_pearson_lower(10.5, 40) == clopper_pearson_lower(10, 40)


def _delong_by_definition(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    psi = (x[:, None] > y).astype(float) + 0.5 * (x[:, None] == y)
    variance = np.var(psi.mean(axis=1), ddof=1) / len(x) + np.var(psi.mean(axis=0), ddof=1) / len(y)
    return float(psi.mean()), float(np.sqrt(variance))


@pytest.mark.parametrize("digits", [1, 8])
def test_delong_equals_its_definition_with_and_without_ties(digits: int) -> None:
    rng = np.random.default_rng(digits)
    x, y = rng.normal(0.4, 1, 60).round(digits), rng.normal(0, 1, 85).round(digits)
    assert delong(x, y) == pytest.approx(_delong_by_definition(x, y), abs=1e-12)
    truth = np.r_[np.ones(60), np.zeros(85)]
    assert delong(x, y)[0] == pytest.approx(roc_auc_score(truth, np.r_[x, y]), abs=1e-12)


def test_delong_under_the_null_has_the_published_standard_error() -> None:
    rng = np.random.default_rng(3)
    _, error = delong(rng.normal(size=2000), rng.normal(size=2000))
    assert error == pytest.approx((1 / (6 * 2000)) ** 0.5, rel=0.02)


def test_jackknife_groups_are_a_fixed_balanced_partition() -> None:
    groups = jackknife_groups(247, 20)
    assert set(np.bincount(groups)) == {12, 13}
    assert (groups == jackknife_groups(247, 20)).all()
    assert (groups != np.arange(247) % 20).any()  # a permutation: neighbouring rows of a file are not dealt in order
    with pytest.raises(ValueError, match="19 test rows"):
        jackknife_groups(19, 20)


def test_jackknife_of_a_mean_is_the_classical_standard_error() -> None:
    values = np.random.default_rng(5).normal(size=20)
    leave_one_out = [np.delete(values, g).mean() for g in range(20)]
    assert jackknife_error(leave_one_out) == pytest.approx(values.std(ddof=1) / np.sqrt(20), rel=1e-9)


def test_six_is_a_rational_of_the_rounded_value() -> None:
    assert six(0.1 + 0.2) == Fraction(3, 10)
    assert six(1 / 3) == Fraction(333333, 1000000)
    assert six(-2.5e-7) == 0
