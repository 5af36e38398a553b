"""The z-score e-value: the null it needs, in full enumeration, and the nulls at which it fails."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, ttest_ind

from synth_platform.discovery.statistics.z_score import ZScore

LAMBDAS = (0.3, 1.0, 2.0, 4.0)
SIZES = [(1, 1), (3, 3), (2, 4), (5, 1)]


def mean_of_e(statistic: ZScore, laws: Sequence[dict[float, float]]) -> float:
    """E[E] where record i has the law laws[i], {value: probability}, independent of the others."""
    values = np.array(list(product(*laws)), dtype=np.float64).T
    weights = np.array([math.prod(p) for p in product(*(law.values() for law in laws))])
    case = np.arange(len(laws)) < statistic.n_case
    return float(weights @ np.exp(statistic.log_e(values, case)))


@pytest.mark.parametrize("tilt", LAMBDAS)
@pytest.mark.parametrize(("n1", "n0"), SIZES)
@pytest.mark.parametrize("p", [0.02, 0.2, 0.5, 0.9])
def test_it_is_an_e_value_of_one_mean_whatever_the_laws(tilt: float, n1: int, n0: int, p: float) -> None:
    """Claim: records of different laws with one mean, the two-point law (Hoeffding's worst) among them."""
    statistic = ZScore(n1, n0, tilt, 0.0, 1.0, 0.5)
    two_points, three_points, constant = {0.0: 1 - p, 1.0: p}, {0.0: (1 - p) / 2, p: 0.5, 1.0: p / 2}, {p: 1.0}
    assert mean_of_e(statistic, [two_points] * (n1 + n0)) <= 1 + 1e-12
    mixed = [(two_points, three_points, constant)[i % 3] for i in range(n1 + n0)]
    assert mean_of_e(statistic, mixed) <= 1 + 1e-12


@pytest.mark.parametrize("tilt", LAMBDAS)
@pytest.mark.parametrize("p", [0.001, 0.02, 0.1, 0.3, 0.5, 0.97])
def test_half_is_a_proxy_of_genotypes_and_their_variance_is_not(tilt: float, p: float) -> None:
    """Claim: in Hardy-Weinberg equilibrium σ² = ½ keeps E an e-value at every p; σ² = 2p(1 − p) does not at rare p."""
    law = dict(zip((0.0, 1.0, 2.0), binom.pmf([0, 1, 2], 2, p), strict=True))
    for n1, n0 in ((3, 3), (2, 4)):
        proxy = ZScore(n1, n0, tilt, 0.0, 2.0, math.sqrt(0.5))
        assert mean_of_e(proxy, [law] * 6) <= 1 + 1e-12
        if p <= 0.1:
            assert mean_of_e(ZScore(n1, n0, tilt, 0.0, 2.0, math.sqrt(2 * p * (1 - p))), [law] * 6) > 1


def test_it_is_no_e_value_of_the_permutation_null() -> None:
    """Claim: of the fixed pool {0, 1} both choices of the case give cosh(λ√2) e^{−λ²/2} > 1."""
    statistic = ZScore(1, 1, 0.5, 0.0, 1.0, 0.5)
    pool = np.array([[0.0], [1.0]])
    for case in ([True, False], [False, True]):
        assert statistic.log_e(pool, np.array(case))[0] == pytest.approx(
            math.log(math.cosh(0.5 * math.sqrt(2))) - 0.125
        )
        assert statistic.log_e(pool, np.array(case))[0] > 0


def test_z_is_the_difference_over_the_public_standard_error() -> None:
    """Claim: with σ the pooled deviation of the data z is SciPy's t statistic."""
    rng = np.random.default_rng(2)
    case = np.arange(40) < 15
    x = rng.uniform(0, 1, 40)
    pooled = math.sqrt((x[case].var() * 15 + x[~case].var() * 25) / 38)
    z = ttest_ind(x[case], x[~case]).statistic
    got = ZScore(15, 25, 1.3, 0.0, 1.0, pooled).log_e(x[:, np.newaxis], case)[0]
    assert got == pytest.approx(math.log(math.cosh(1.3 * z)) - 1.3**2 / 2)


@pytest.mark.parametrize("n", [200, 2000])
def test_published_sensitivities_of_balanced_groups(n: int) -> None:
    """Claim: λ √(2 / (n p (1 − p))) for dosages of that variance; 2λ/√n for the proxy, .182 at 4.07."""
    p = 0.3
    dosage = ZScore(n // 2, n // 2, 4.07, 0.0, 2.0, math.sqrt(2 * p * (1 - p)))
    assert dosage.sensitivity == pytest.approx(4.07 * math.sqrt(2 / (n * p * (1 - p))))
    for lower, upper in ((0.0, 2.0), (-7.0, 1.0)):
        bounded = ZScore(n // 2, n // 2, 4.07, lower, upper, (upper - lower) / 2)
        assert bounded.sensitivity == pytest.approx(2 * 4.07 / math.sqrt(n))
    assert ZScore(1000, 1000, 4.07, -1.0, 1.0, 1.0).sensitivity == pytest.approx(0.182, abs=5e-4)


def test_far_values_are_clipped_and_no_numbers_refused() -> None:
    statistic, case = ZScore(1, 2, 1.0, 0.0, 1.0, 0.5), np.array([True, False, False])
    near, far = np.array([[1.0], [0.0], [0.5]]), np.array([[1e300], [-1e300], [0.5]])
    assert np.array_equal(statistic.log_e(near, case), statistic.log_e(far, case))
    with pytest.raises(ValueError, match="values holds a NaN"):
        statistic.log_e(np.array([[np.nan], [0.0], [0.0]]), case)


def test_the_largest_exponent_stays_finite() -> None:
    log_e = ZScore(50, 50, 1e4, 0.0, 1.0, 0.5).log_e((np.arange(100) < 50)[:, np.newaxis] * 1.0, np.arange(100) < 50)
    # z = 1 / (0.5 √(2/50)) = 10
    assert log_e[0] == pytest.approx(1e5 - math.log(2) - 0.5e8)
