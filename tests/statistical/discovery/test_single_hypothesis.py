"""One private e-value as it is released: its level at the worst nulls, its power, and what a product gives away.

Seeds are fixed. Counts are compared by two-sided Clopper-Pearson bounds of error FALSE_ALARM each.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, kstest, norm

from benchmarks.discovery_single import (
    SCALES,
    power_of_coin,
    power_private,
    power_without_noise,
    worst_null,
    worst_point,
)
from synth_platform.discovery.aggregate import average_before, product_of_disjoint
from synth_platform.discovery.canonical import Canonical, PrivateLogE, privatise
from synth_platform.discovery.threshold import FixedRule, calibration_constant, log_p_value, rejects_pointwise
from synth_platform.privacy.noise import SeededNoise

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-7
ALPHA = 0.05
DRAWS = 300_000


def bounds(count: int, draws: int) -> tuple[float, float]:
    """Clopper-Pearson: each bound fails with probability FALSE_ALARM / 2."""
    low = float(beta.ppf(FALSE_ALARM / 2, count, draws - count + 1)) if count else 0.0
    high = float(beta.isf(FALSE_ALARM / 2, count + 1, draws - count)) if count < draws else 1.0
    return low, high


def released(log_e: np.ndarray, sensitivity: float, mu: float, seed: int, *, selected: bool = False) -> PrivateLogE:
    private = privatise(log_e, sensitivity, mu, SeededNoise(seed))
    return PrivateLogE.of(Canonical(sensitivity, mu), private, selected=selected)


@pytest.mark.parametrize("s", SCALES)
def test_the_calibrated_rule_has_its_level_at_the_worst_null_and_at_the_constant_one(s: float) -> None:
    """Not above alpha at either, and alpha at the worse of them. False alarm 3e-7; sees a c* that is 4 % off."""
    shares = []
    for seed, log_e in enumerate((worst_null(s, DRAWS, 21), np.zeros(DRAWS))):
        private = released(log_e, s, 1.0, seed)
        low, high = bounds(int(FixedRule(ALPHA, private.scale).rejects(private).sum()), DRAWS)
        assert low <= ALPHA
        shares.append(high)
    assert max(shares) >= ALPHA


@pytest.mark.parametrize("s", [0.1, 1.0, 4.0])
def test_p_values_of_the_constant_null_are_no_smaller_than_uniform(s: float) -> None:
    """P(p ≤ a) ≤ a at every a at once: one-sided Kolmogorov-Smirnov, false alarm 1e-7.

    At s = 4 this null is the worst one for every a above 8e-5, and p is uniform: two-sided, false alarm 1e-7.
    """
    p = np.exp(log_p_value(released(np.zeros(DRAWS), s, 1.0, 5)))
    assert kstest(p, "uniform", alternative="greater").pvalue > FALSE_ALARM
    if s == 4.0:
        assert kstest(p, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize("s", [0.1, 0.5, 1.0])
def test_after_a_selection_the_pointwise_rule_keeps_its_promise(s: float) -> None:
    """The best of 20 two-point nulls at level alpha/20, where the line touches: P(reject) ≤ alpha, and nearly alpha.

    The selection sees the evidence itself, the least favourable one. False alarm 2e-7.
    """
    log_x = worst_point(math.log(calibration_constant(s) * 20 / ALPHA), s)
    hits = np.random.default_rng(8).random((DRAWS // 4, 20)) < math.exp(-log_x)
    best = np.where(hits.any(axis=1), log_x, -60.0)
    private = released(best, s, 1.0, 9, selected=True)
    low, high = bounds(int(rejects_pointwise(private, ALPHA / 20).sum()), best.size)
    assert low <= ALPHA
    assert high > 0.9 * ALPHA


@pytest.mark.parametrize("s", [0.1, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("shift", [2.0, 3.0])
def test_power_is_that_of_the_formula_and_above_the_markov_threshold(s: float, shift: float) -> None:
    """E the likelihood ratio of N(shift, 1) against N(0, 1), under N(shift, 1). False alarm 2e-7."""
    z = np.random.default_rng(31).normal(shift, 1.0, DRAWS)
    private = released(shift * z - shift**2 / 2, s, 1.0, 32)
    rule = FixedRule(ALPHA, private.scale)
    counts = {}
    for log_c in (rule.log_threshold, -math.log(ALPHA)):
        counts[log_c] = int((private.log_e >= log_c).sum())
        low, high = bounds(counts[log_c], DRAWS)
        assert low <= power_private(shift, s, log_c) <= high
    assert bounds(counts[rule.log_threshold], DRAWS)[0] > bounds(counts[-math.log(ALPHA)], DRAWS)[1]


def test_what_is_gained_over_the_test_without_noise_stays_below_what_a_coin_gains() -> None:
    """s = .25, shift 2: more power than E ≥ 1/alpha without noise, less than with a coin instead. False alarm 4e-7."""
    s, shift = 0.25, 2.0
    rng = np.random.default_rng(41)
    log_e = shift * rng.normal(shift, 1.0, DRAWS) - shift**2 / 2
    private = released(log_e, s, 1.0, 42)
    with_noise = bounds(int(FixedRule(ALPHA, private.scale).rejects(private).sum()), DRAWS)
    plain = bounds(int((log_e >= -math.log(ALPHA)).sum()), DRAWS)
    coin = bounds(int((np.log(rng.random(DRAWS)) <= log_e + math.log(ALPHA)).sum()), DRAWS)
    assert plain[0] <= power_without_noise(shift, ALPHA) <= plain[1]
    assert coin[0] <= power_of_coin(shift, ALPHA) <= coin[1]
    assert plain[1] < with_noise[0]
    assert with_noise[1] < coin[0]


@pytest.mark.parametrize("s", [0.1, 1.0])
def test_private_e_values_average_to_one_under_the_null_of_no_evidence(s: float) -> None:
    """Mean of exp(−ξ) within five and a half of its own standard errors, √(e^{s²} − 1)/√n; false alarm 4e-8.

    The noise itself is Gaussian by Kolmogorov-Smirnov, false alarm 1e-7.
    """
    log_e = released(np.zeros(DRAWS), s, 1.0, 51).log_e
    assert np.exp(log_e).mean() == pytest.approx(1.0, abs=5.5 * math.sqrt(math.expm1(s**2) / DRAWS))
    assert kstest((log_e + s**2 / 2) / s, norm.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_product_tells_its_neighbours_apart_by_no_more_than_its_cost(k: int) -> None:
    """Data set k moved by its sensitivity: the difference in means over the deviation is Δ_k·μ_prod/max Δ.

    Within five and a half standard errors, √2/√n; false alarm 4e-8. For the largest Δ_k that is μ_prod itself.
    """
    deltas, mus = [0.4, 0.1, 0.7], [1.0, 0.3, 2.0]
    log_e = np.zeros((2, 3, DRAWS // 3))
    log_e[1, k] += deltas[k]
    products = [
        product_of_disjoint([released(log_e[world, j], deltas[j], mus[j], 60 + 10 * world + j) for j in range(3)])
        for world in range(2)
    ]
    shown = (products[1].log_e.mean() - products[0].log_e.mean()) / products[0].log_e.std()
    assert shown == pytest.approx(deltas[k] / 0.7 * products[0].mu, abs=5.5 * math.sqrt(2 / log_e.shape[2]))
    assert products[0].mu == pytest.approx(0.7 / math.sqrt(0.16 + (0.1 / 0.3) ** 2 + 0.1225), rel=1e-6)


def test_the_calibrated_rule_of_a_product_has_its_level() -> None:
    """Three factors, each the constant null, s = 4 in all, where that null is worst. False alarm 2e-7."""
    s = 4.0 / math.sqrt(3)
    product = product_of_disjoint([released(np.zeros(DRAWS), s, 1.0, 70 + j) for j in range(3)])
    low, high = bounds(int(FixedRule(ALPHA, product.scale).rejects(product).sum()), DRAWS)
    assert low <= ALPHA <= high


def test_an_average_taken_before_privatising_is_judged_like_any_e_value() -> None:
    """Four fully dependent copies of the worst null: level alpha exactly, at the cost of one. False alarm 2e-7."""
    log_e, sensitivity = average_before([worst_null(0.5, DRAWS, 81)] * 4, [0.5, 0.2, 0.1, 0.4])
    private = released(log_e, sensitivity, 1.0, 82)
    low, high = bounds(int(FixedRule(ALPHA, private.scale).rejects(private).sum()), DRAWS)
    assert low <= ALPHA <= high
    assert calibration_constant(private.scale) < 0.48
