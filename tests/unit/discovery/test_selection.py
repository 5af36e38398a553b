"""The price of a selection against its trade-off function, its table, and brute force over small mechanisms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from synth_platform.discovery.selection import gumbel_scale, selection_mu
from synth_platform.privacy.accounting import gaussian_delta

TABLE = {0.05: 25.07, 0.1: 12.53, 0.2: 6.264, 0.5: 2.4995, 1.0: 1.2392, 2.0: 0.5994}


def gaussian_curve(alpha: np.ndarray, mu: float) -> np.ndarray:
    """G_μ: the least type II error at type I error alpha."""
    return np.asarray(norm.cdf(norm.isf(alpha) - mu))


def randomised_response(t: np.ndarray, eta: float) -> tuple[np.ndarray, np.ndarray]:
    """Both error probabilities of telling P from Q with log odds (t, t − η): p = e^t q, 1 − p = e^{t−η}(1 − q)."""
    q = (1 - np.exp(t - eta)) / (np.exp(t) - np.exp(t - eta))
    return q, 1 - np.exp(t) * q


@pytest.mark.parametrize(("mu", "scale"), TABLE.items())
def test_the_table(mu: float, scale: float) -> None:
    """Claim: b/Δ of the derivation, four digits, and b proportional to Δ."""
    assert gumbel_scale(mu, 1.0) == pytest.approx(scale, rel=2e-4)
    assert gumbel_scale(mu, 0.182) == pytest.approx(0.182 * gumbel_scale(mu, 1.0), rel=1e-15)


@pytest.mark.parametrize("mu", [1e-12, 1e-8, 1e-4, 0.05, 0.5, 1.9999, 2.0, 2.0001, 5.0, 30.0, 60.0])
def test_scale_and_cost_undo_each_other(mu: float) -> None:
    """Claim: to 1e-14 of mu over thirteen orders of magnitude, where Φ(mu/2) is 1/2 or 1 in float64."""
    assert selection_mu(0.3, gumbel_scale(mu, 0.3)) == pytest.approx(mu, rel=2e-12)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 3.0, 6.0])
def test_it_is_the_formula(mu: float) -> None:
    assert gumbel_scale(mu, 2.0) == pytest.approx(2.0 / logit(norm.cdf(mu / 2)), rel=1e-9)


def test_small_and_large_costs_follow_their_limits() -> None:
    """Claim: b → √(π/2)·Δ/μ as μ → 0, and Δ/b → μ²/8 + log(μ√(2π)/2) as μ → ∞ (Mills)."""
    assert gumbel_scale(1e-8, 1.0) * 1e-8 == pytest.approx(math.sqrt(math.pi / 2), rel=1e-12)
    assert 1 / gumbel_scale(40.0, 1.0) == pytest.approx(200 + math.log(20 * math.sqrt(2 * math.pi)), rel=2e-5)


@pytest.mark.parametrize("mu", [0.05, 0.25, 1.0, 2.0, 5.0])
def test_no_smaller_mu_will_do_and_this_one_does(mu: float) -> None:
    """Claim: over all t both errors of the worst mechanisms lie above G_μ, and on it at t = η/2 alone.

    The trade-off function of two points is piecewise linear with its only corner there, and G_μ is convex.
    """
    eta = 2 / gumbel_scale(mu, 1.0)
    t = np.linspace(0, eta, 2001)[1:-1]
    alpha, beta = randomised_response(t, eta)
    np.testing.assert_allclose(beta / (1 - alpha), np.exp(t - eta), rtol=1e-9)
    excess = norm.isf(alpha) + norm.isf(beta)  # ≤ μ exactly where beta ≥ G_μ(alpha)
    assert excess.max() <= mu * (1 + 1e-12)
    assert excess[999] == pytest.approx(mu, rel=3e-12)
    assert t[excess >= mu * (1 - 1e-9)] == pytest.approx(eta / 2, rel=0.01)
    assert (beta >= gaussian_curve(alpha, mu) - 1e-12).all()


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_two_scores_attain_it(mu: float) -> None:
    """Claim: scores (0, Δ) against (Δ, 0) are told apart with both errors Φ(−μ/2), as two Gaussians μ apart are."""
    scale = gumbel_scale(mu, 0.7)
    assert expit(-0.7 / scale) == pytest.approx(norm.cdf(-mu / 2), rel=1e-12)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 2.0])
def test_the_detour_through_pure_privacy_needs_twice_the_noise(mu: float) -> None:
    """Claim: ε = 2Δ/b and the worst ε-private mechanism, of errors σ(−ε), ask for 2b at the same μ."""
    naive = 2 / logit(norm.cdf(mu / 2))
    assert naive == pytest.approx(2 * gumbel_scale(mu, 1.0), rel=1e-12)


def ordered_law(scores: np.ndarray, size: int, scale: float) -> np.ndarray:
    """P of every ordered choice of `size`: what one draw of Gumbel noise gives (tested with the sampler)."""
    weight = np.exp(scores / scale)
    law = []
    for order in itertools.permutations(range(scores.size), size):
        left = weight.sum() - np.concatenate([[0.0], np.cumsum(weight[list(order)])[:-1]])
        law.append(np.prod(weight[list(order)] / left))
    return np.array(law)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_an_ordered_choice_of_s_costs_root_s(size: int) -> None:
    """Claim: for neighbours at every corner of ±Δ the privacy profile of an ordered choice of s of four lies below that
    of √s·μ at every ε, and somewhere above that of .8·√s·μ.
    """
    mu, delta = 0.6, 0.5
    scale = gumbel_scale(mu, delta)
    worst = 0.0
    for base in (np.zeros(4), np.array([0.0, delta, delta, 2 * delta]), np.array([1.0, 0.0, -1.0, 0.3])):
        p = ordered_law(base, size, scale)
        for corner in itertools.product([-delta, 0.0, delta], repeat=4):
            q = ordered_law(base + np.array(corner), size, scale)
            for epsilon in (0.0, 0.2, 0.7, 1.5):
                loss = np.maximum(p - math.exp(epsilon) * q, 0).sum()
                assert loss <= gaussian_delta(math.sqrt(size) * mu, epsilon) + 1e-12
                worst = max(worst, loss - gaussian_delta(0.8 * math.sqrt(size) * mu, epsilon))
    assert worst > 0


class TestErrors:
    @pytest.mark.parametrize("mu", [0.0, -1.0, math.nan, math.inf, 61.0])
    def test_mu_is_named(self, mu: float) -> None:
        with pytest.raises(ValueError, match="mu is"):
            gumbel_scale(mu, 1.0)

    @pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.nan, math.inf])
    def test_sensitivity_is_named(self, sensitivity: float) -> None:
        with pytest.raises(ValueError, match="sensitivity is"):
            gumbel_scale(1.0, sensitivity)
        with pytest.raises(ValueError, match="sensitivity is"):
            selection_mu(sensitivity, 1.0)

    @pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
    def test_scale_is_named(self, scale: float) -> None:
        with pytest.raises(ValueError, match="scale is"):
            selection_mu(1.0, scale)
