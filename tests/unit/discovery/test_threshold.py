"""Calibrated thresholds against brute force over nulls: what they promise, where they are tight, where they fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, linprog
from scipy.special import log_ndtr
from scipy.stats import norm

from synth_platform.discovery.canonical import Canonical, PrivateLogE
from synth_platform.discovery.threshold import (
    FixedRule,
    SelectedAfterwardsError,
    calibrated_threshold,
    calibration_constant,
    log_calibrated_threshold,
    log_calibration_constant,
    log_p_value,
    rejects_pointwise,
    worst_null_rejection,
)

SCALES = [1e-4, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 10.0, 100.0, 1e3]
LEVELS = [0.5, 0.05, 0.01, 1e-4, 5e-8, 1e-300]


def log_rejection(log_x: np.ndarray, log_c: float, s: float) -> np.ndarray:
    """log P(E_DP ≥ c | E = x), from the definition of the noise alone."""
    return np.asarray(log_ndtr((log_x - log_c - s**2 / 2) / s))


def log_worst(log_c: float, s: float) -> float:
    """log sup over E ≡ 1 and every null {~0, x} of P(E_DP ≥ c), on a grid of x refined around its best point."""
    low, high = 0.0, max(log_c, 0.0) + s**2 + 40 * s + 1
    for _ in range(4):
        log_x = np.linspace(low, high, 20_001)
        value = log_rejection(log_x, log_c, s) - log_x
        best, width = int(value.argmax()), log_x[1] - log_x[0]
        low, high = max(0.0, log_x[best] - 2 * width), log_x[best] + 2 * width
    return float(value.max())


def tangent(s: float) -> float:
    """u_s from its definition φ(u)/Φ(u) = s."""
    return float(brentq(lambda u: norm.logpdf(u) - norm.logcdf(u) - math.log(s), -s, 9.0, xtol=1e-13))


# s, u_s, K, and c* at alpha = .05, .01, 1e-4, 5e-8
TABLE = """
.01  2.716  .9699 19.399 96.994 9699.4 1.9399e7
.05  2.048  .8833 17.665 88.326 8832.6 1.7665e7
.1   1.691  .8021 16.041 80.205 8020.5 1.6041e7
.25  1.106  .6363 12.727 63.633 6363.3 1.2727e7
.5   .518   .4753 9.5055 47.527 4752.7 9.5055e6
1    -.303  .3128 6.2566 31.283 3128.3 6.2566e6
2    -1.572 .1820 3.6400 18.200 1820.0 3.6400e6
4    -3.763 .0970 .24157 3.6891 968.81 1.9394e6
"""


@pytest.mark.parametrize("row", TABLE.strip().splitlines())
def test_the_published_table(row: str) -> None:
    s, u, constant, *thresholds = map(float, row.split())
    assert tangent(s) == pytest.approx(u, abs=5.1e-4)
    assert norm.pdf(tangent(s) + s) / s == pytest.approx(constant, abs=5.1e-5)
    assert calibration_constant(s) == pytest.approx(norm.pdf(tangent(s) + s) / s, rel=1e-9)
    for alpha, threshold in zip([0.05, 0.01, 1e-4, 5e-8], thresholds, strict=True):
        assert calibrated_threshold(alpha, s) == pytest.approx(threshold, rel=4e-5)


@pytest.mark.parametrize("s", SCALES)
@pytest.mark.parametrize("alpha", LEVELS)
def test_the_worst_null_rejects_at_exactly_alpha(alpha: float, s: float) -> None:
    log_c = log_calibrated_threshold(alpha, s)
    assert log_worst(log_c, s) == pytest.approx(math.log(alpha), abs=1e-6 * max(1.0, s))
    assert log_worst(log_c - 0.01 * s, s) > math.log(alpha)
    assert log_c <= -math.log(alpha)


@pytest.mark.parametrize(("s", "log_c"), [(0.1, 2.0), (0.5, 1.0), (1.0, 3.0), (1.0, -0.5), (2.0, 0.5), (4.0, -1.0)])
def test_no_mixture_of_any_number_of_points_does_worse(s: float, log_c: float) -> None:
    """Linear programme over all laws on a grid with E[E] ≤ 1, which knows nothing of tangents or two points."""
    x = np.concatenate([[1e-12], np.geomspace(1e-3, 1e4, 3000), [1.0]])
    programme = linprog(
        -np.exp(log_rejection(np.log(x), log_c, s)), A_ub=[x], b_ub=[1.0], A_eq=[np.ones_like(x)], b_eq=[1.0]
    )
    assert programme.status == 0
    assert float(worst_null_rejection(log_c, s)) == pytest.approx(-programme.fun, rel=2e-5)


@pytest.mark.parametrize("s", SCALES)
def test_rejection_and_threshold_are_inverse_and_the_branches_meet(s: float) -> None:
    for alpha in LEVELS[:-1]:
        assert worst_null_rejection(log_calibrated_threshold(alpha, s), s) == pytest.approx(alpha, rel=1e-9)
    log_c = np.linspace(-40 * s - s**2, 40 * s + 20, 100_001)
    rejection = worst_null_rejection(log_c, s)
    assert (np.diff(rejection) <= 1e-15).all()
    # Slope of log R is −1 on one branch and never steeper than −hazard/s on the other: no jump fits in one grid step.
    assert np.abs(np.diff(rejection)).max() < 2 * (log_c[1] - log_c[0]) * max(1.0, 1 / s)
    assert worst_null_rejection([-math.inf, math.inf], s) == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("s", [1.0, 2.0, 4.0, 10.0])
def test_the_branches_meet_in_the_threshold(s: float) -> None:
    """At Φ(u_s) = alpha both closed forms hold."""
    alpha = norm.cdf(tangent(s))
    assert log_calibrated_threshold(alpha, s) == pytest.approx(log_calibration_constant(s) - math.log(alpha), abs=1e-8)
    assert log_calibrated_threshold(alpha, s) == pytest.approx(-(s**2) / 2 - s * norm.ppf(alpha), abs=1e-8)


@pytest.mark.parametrize("s", [*SCALES, 1e-12, 1e6])
def test_the_constant_is_the_largest_ratio_of_rejection_to_evidence(s: float) -> None:
    """K = sup_x c·F_c(x)/x from the definition; without noise it is 1, at large s it is 1/(s·√(2π)) up to 1/(2s²)."""
    assert 0 < calibration_constant(s) < 1
    if s < 1e5:
        v = np.linspace(0.0, min(s, 1.0) * 40 + 8, 400_001)  # v = u + s at x
        ratio = log_ndtr(v - s) - s * (v - s) - s**2 / 2
        assert log_calibration_constant(s) == pytest.approx(ratio.max(), abs=1e-7)
    if s >= 10:
        assert calibration_constant(s) * s * math.sqrt(2 * math.pi) == pytest.approx(
            1 - 1 / (2 * s**2), abs=2 / s**4 + 1e-14
        )


@pytest.mark.parametrize("s", [0.1, 1.0, 4.0])
def test_p_values_are_valid_under_every_two_point_and_constant_null(s: float) -> None:
    """P(p ≤ a) with noise on a grid of 10,001 quantiles; tight where the worst null is on the grid of x."""
    levels = np.array([0.001, 0.01, 0.05, 0.2, 0.7])
    noise = -norm.ppf((np.arange(10_001) + 0.5) / 10_001)
    worst = np.zeros(levels.size)
    for log_x in np.linspace(0.0, 25.0, 251):
        private = PrivateLogE(log_x - s**2 / 2 + s * noise, s, 1.0, selected=False)
        shares = (np.exp(log_p_value(private))[:, None] <= levels).mean(axis=0)
        worst = np.maximum(worst, shares * math.exp(-log_x))
    assert (worst <= levels + 1 / 10_001).all()
    assert worst == pytest.approx(levels, rel=0.03, abs=1 / 10_001)


def test_p_values_far_out_stay_in_logs() -> None:
    private = PrivateLogE(np.array([2000.0, -2000.0]), 1.0, 1.0, selected=False)
    far, near = log_p_value(private)
    assert far == pytest.approx(log_calibration_constant(1.0) - 2000.0)
    assert near == 0.0


@pytest.mark.parametrize("s", [0.01, 0.1, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 5e-8])
def test_the_pointwise_rule_rejects_no_evidence_more_often_than_its_share(alpha: float, s: float) -> None:
    """P(reject | E) ≤ alpha·E on a dense grid of E, from e^-60 to e^60, and with equality somewhere."""
    log_x = np.linspace(-60.0, 60.0, 200_001)
    threshold = log_calibration_constant(s) - math.log(alpha)
    ratio = log_rejection(log_x, threshold, s) - math.log(alpha) - log_x
    assert ratio.max() <= 1e-9
    assert ratio.max() == pytest.approx(0.0, abs=1e-4)
    private = PrivateLogE(threshold + np.array([-1e-9, 1e-9]), s, 1.0, selected=True)
    assert rejects_pointwise(private, alpha).tolist() == [False, True]


def test_below_its_branch_point_the_calibrated_threshold_is_not_pointwise_valid() -> None:
    """s = 4, alpha = .05: weak evidence is rejected more often than alpha·E, though the null as a whole is not."""
    s, alpha = 4.0, 0.05
    log_c = log_calibrated_threshold(alpha, s)
    log_x = np.linspace(-15.0, 0.0, 1001)
    excess = log_rejection(log_x, log_c, s) - math.log(alpha) - log_x
    assert excess[-1] == pytest.approx(0.0, abs=1e-9)
    assert excess.max() > 0.4


def test_a_level_that_looks_at_the_evidence_breaks_the_fixed_rule_and_not_the_pointwise_one() -> None:
    """E[1{reject}/alpha(E)] ≤ 1 is what a selection needs: a null of two points, each with the level that suits it."""
    s, alpha = 4.0, 0.05
    weak, strong = -4.0, 12.0
    chance = (1 - math.exp(weak)) / (math.exp(strong) - math.exp(weak))
    strict = calibration_constant(s) / math.exp(strong - s * tangent(s) - s**2 / 2)  # its worst null is at `strong`

    def spent(threshold_at_alpha: float, threshold_at_strict: float) -> float:
        often = math.exp(log_rejection(np.asarray(weak), threshold_at_alpha, s)) / alpha
        seldom = math.exp(log_rejection(np.asarray(strong), threshold_at_strict, s)) / strict
        return (1 - chance) * often + chance * seldom

    fixed = spent(log_calibrated_threshold(alpha, s), log_calibrated_threshold(strict, s))
    log_k = log_calibration_constant(s)
    pointwise = spent(log_k - math.log(alpha), log_k - math.log(strict))
    assert fixed > 1.01
    assert pointwise <= 1.0


def test_power_gained_over_no_noise_is_what_a_coin_gives() -> None:
    """At each E below 1/alpha the private test rejects, never more often than the coin of chance alpha·E does."""
    s, alpha = 0.1, 0.05
    log_c = log_calibrated_threshold(alpha, s)
    log_x = np.linspace(-10, 10, 4001)
    private = np.exp(log_rejection(log_x, log_c, s))
    coin = np.minimum(1.0, alpha * np.exp(log_x))
    assert (private <= coin + 1e-12).all()
    assert (private > (log_x >= -math.log(alpha)) + 0.3).any()


def test_the_noise_has_the_mean_that_keeps_an_e_value() -> None:
    """∫ P(E_DP ≥ c) dc = 1 at E = 1: the rejection curve used in all tests here is that of an e-value."""
    total, _ = quad(lambda c: math.exp(log_rejection(np.asarray(0.0), math.log(c), 0.5)), 0, 60)
    assert total == pytest.approx(1.0, abs=1e-6)


def test_a_fixed_rule_rejects_at_its_threshold() -> None:
    canonical = Canonical(0.3, 0.7)
    rule = FixedRule(0.05, canonical.scale)
    values = rule.log_threshold + np.array([[-1e-9], [1e-9]])
    private = PrivateLogE.of(canonical, values, selected=False)
    assert rule.log_threshold == pytest.approx(math.log(calibrated_threshold(0.05, canonical.scale)))
    assert rule.rejects(private).tolist() == [[False], [True]]
    assert np.exp(log_p_value(private)) == pytest.approx(0.05 * np.ones((2, 1)))


def test_what_was_selected_may_not_be_judged_by_a_rule_for_what_was_fixed() -> None:
    canonical = Canonical(0.3, 0.7)
    private = PrivateLogE.of(canonical, np.array([1.0, 50.0]), selected=True)
    with pytest.raises(SelectedAfterwardsError, match="rejects_pointwise"):
        FixedRule(0.05, canonical.scale).rejects(private)
    with pytest.raises(SelectedAfterwardsError, match="fixed beforehand"):
        log_p_value(private)
    assert rejects_pointwise(private, 0.05).tolist() == [False, True]


def test_a_rule_made_for_another_noise_is_refused() -> None:
    private = PrivateLogE.of(Canonical(0.3, 0.7), np.zeros(2), selected=False)
    with pytest.raises(ValueError, match=r"s of the rule is 0\.5"):
        FixedRule(0.05, 0.5).rejects(private)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 1.5, math.nan, math.inf])
def test_levels_outside_the_unit_interval_are_named(alpha: float) -> None:
    private = PrivateLogE(np.zeros(1), 1.0, 1.0, selected=True)
    for ask in (
        lambda: calibrated_threshold(alpha, 1.0),
        lambda: FixedRule(alpha, 1.0),
        lambda: rejects_pointwise(private, alpha),
    ):
        with pytest.raises(ValueError, match="alpha is"):
            ask()


@pytest.mark.parametrize("s", [0.0, -1.0, math.nan, math.inf, 1e-13, 1e8])
def test_scales_out_of_range_are_named(s: float) -> None:
    for ask in (
        lambda: calibrated_threshold(0.05, s),
        lambda: calibration_constant(s),
        lambda: FixedRule(0.05, s),
        lambda: worst_null_rejection(0.0, s),
    ):
        with pytest.raises(ValueError, match="s is"):
            ask()


def test_thresholds_beyond_float64_and_nan_are_refused() -> None:
    with pytest.raises(ValueError, match="use log_calibrated_threshold"):
        calibrated_threshold(0.05, 1e3)
    assert math.isfinite(log_calibrated_threshold(0.05, 1e3))
    with pytest.raises(ValueError, match="log_c has a NaN"):
        worst_null_rejection(math.nan, 1.0)
