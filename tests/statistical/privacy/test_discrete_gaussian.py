"""The sampler's law against the exact probabilities. Seeds are fixed; each test states its false-alarm probability."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from synth_platform.privacy import discrete_gaussian as sampler
from synth_platform.privacy.mechanisms import gaussian_sum
from synth_platform.privacy.noise import SeededNoise

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6


def exact_masses(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(-math.ceil(40 * sigma) - 1, math.ceil(40 * sigma) + 2)
    weight = np.exp(-(k**2) / (2 * sigma**2))
    return k, weight / weight.sum()


def chi_square_p_value(drawn: np.ndarray, sigma: float) -> float:
    """Against the exact law, cells with fewer than 10 expected draws pooled into one."""
    k, mass = exact_masses(sigma)
    expected = drawn.size * mass
    observed = np.bincount(drawn - k[0], minlength=k.size)
    rare = expected < 10
    expected = np.append(expected[~rare], expected[rare].sum())
    observed = np.append(observed[~rare], observed[rare].sum())
    kept = expected > 0.1
    assert observed[~kept].sum() == 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return float(chi2.sf(statistic, kept.sum() - 1))


@pytest.mark.parametrize("sigma", [0.3, 0.5, 0.999, 1.0, 1.7, 2.0, 3.0, 17.3, 64.0])
def test_small_sigma_follows_the_exact_masses(sigma: float) -> None:
    """300,000 draws each; false alarm 1e-6. Catches a wrong zero (both signs), a block or bound off by one."""
    assert chi_square_p_value(SeededNoise(11).discrete_gaussian(sigma, 300_000), sigma) > FALSE_ALARM


@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_the_exact_path_follows_the_same_law(sigma: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error margin widened until decimal arithmetic settles every comparison; 5,000 draws, false alarm 1e-6."""
    monkeypatch.setattr(sampler, "_RELATIVE_ERROR", 1e9)
    monkeypatch.setattr(sampler, "_ABSOLUTE_ERROR", 2.0)
    assert chi_square_p_value(SeededNoise(12).discrete_gaussian(sigma, 5_000), sigma) > FALSE_ALARM


@pytest.mark.parametrize("sigma", [2.0**20, 1.37 * 2**30, 2.0**40])
def test_large_sigma_follows_the_gaussian(sigma: float) -> None:
    """KS of 200,000 draws; the discrete law is within 5e-7 of Φ, far below the 6e-3 it can see. False alarm 1e-6."""
    drawn = SeededNoise(13).discrete_gaussian(sigma, 200_000)
    assert kstest(drawn / sigma, "norm").pvalue > FALSE_ALARM
    assert len(np.unique(drawn)) > 0.5 * min(drawn.size, sigma)


def test_tails_are_those_of_the_gaussian() -> None:
    """4·10^6 draws: counts beyond 3, 4 and 4.5 σ within six binomial standard deviations (false alarm < 1e-8)."""
    drawn = np.abs(SeededNoise(14).discrete_gaussian(2.0**30, 4_000_000)) / 2.0**30
    for edge in (3, 4, 4.5):
        expected = drawn.size * 2 * norm.sf(edge)
        assert abs((drawn > edge).sum() - expected) < 6 * math.sqrt(expected)


def test_low_bits_are_uniform() -> None:
    """The last byte of draws at σ = 2^30; chi-square with 255 degrees, false alarm 1e-6."""
    drawn = SeededNoise(15).discrete_gaussian(1.1 * 2**30, 1_000_000)
    counts = np.bincount(drawn & 255, minlength=256)
    expected = drawn.size / 256
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 255) > FALSE_ALARM


def test_draws_are_independent_within_and_across_calls() -> None:
    """Correlations at lag 1 and 2, between calls, and of magnitudes: each |r|√n < 5.3 (false alarm 5e-7 in all)."""
    noise = SeededNoise(16)
    first, second = (noise.discrete_gaussian(2.0**25, 300_000).astype(float) for _ in range(2))
    pairs = [(first[:-1], first[1:]), (first[:-2], first[2:]), (first, second), (np.abs(first), np.abs(second))]
    for a, b in pairs:
        assert abs(np.corrcoef(a, b)[0, 1]) * math.sqrt(a.size) < 5.3


def test_the_mechanism_adds_noise_of_the_stated_scale() -> None:
    """Variance of 200,000 coordinates within 1.6 % of σ² (five standard deviations; false alarm 6e-7)."""
    values, _ = gaussian_sum(np.zeros((0, 200_000)), sensitivity=4.5, sigma=7.3, noise=SeededNoise(17))
    assert np.mean(values**2) == pytest.approx(7.3**2, rel=0.016)


@pytest.mark.parametrize(("sigma", "shift"), [(0.5, 1), (1.0, 1), (3.0, 2), (10.0, 25)])
def test_the_discrete_mechanism_is_zcdp_exactly(sigma: float, shift: int) -> None:
    """Rényi divergence of shifted laws is at most α·shift²/2σ² (Canonne, Kamath, Steinke 2020); no randomness."""
    k = np.arange(-2000, 2001)
    log_p, log_q = -(k**2) / (2 * sigma**2), -((k - shift) ** 2) / (2 * sigma**2)
    log_p, log_q = log_p - np.logaddexp.reduce(log_p), log_q - np.logaddexp.reduce(log_q)
    for order in (1.5, 2, 5, 20):
        divergence = np.logaddexp.reduce(order * log_p + (1 - order) * log_q) / (order - 1)
        assert divergence <= order * shift**2 / (2 * sigma**2) * (1 + 1e-12)


@pytest.mark.parametrize("sigma", [2.0, 4.0, 8.0, 16.0])
def test_distance_to_the_rounded_gaussian(sigma: float) -> None:
    """docs/noise.md: total variation between N_Z(0, σ²) and a rounded Gaussian is below .021/σ²; no randomness."""
    k, mass = exact_masses(sigma)
    rounded = norm.cdf((k + 0.5) / sigma) - norm.cdf((k - 0.5) / sigma)
    assert 0.019 < np.abs(mass - rounded).sum() / 2 * sigma**2 < 0.021
