"""Rényi accounting at integer orders, in the binomial form of 8-1 §2.5."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from synth_platform.privacy.events import Tally

ORDERS = (*range(2, 65), 128, 256, 512, 1024, 2048, 4096)
"""The grid of 8-1's noise table, carried on for small ε. A minimum over fewer orders is larger: never less private."""


def sampled_gaussian_rdp(order: int, sampling_rate: float, noise_multiplier: float) -> float:
    """Rényi divergence bound of one Poisson-sampled Gaussian step, 8-1 §2.5:

    1/(α−1) · log Σ_j C(α, j)(1−q)^(α−j) q^j exp((j²−j)/2σ²).

    The binomial weights sum to 1, so the sum is 1 + Σ_{j≥2} weight·(exp(·)−1): all terms are positive, and a step that
    costs 1e-12 keeps its digits.

    order: integer α ≥ 2. sampling_rate: q in [0, 1]. noise_multiplier: σ > 0.
    """
    q, sigma = sampling_rate, noise_multiplier
    if q == 0:
        return 0.0
    if q == 1:
        return order / (2 * sigma**2)
    j = np.arange(2, order + 1, dtype=np.float64)
    log_weight = (
        gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1) + (order - j) * math.log1p(-q) + j * math.log(q)
    )
    growth = (j * j - j) / (2 * sigma**2)
    log_terms = log_weight + growth + np.log(-np.expm1(-growth))
    return float(np.logaddexp(0.0, np.logaddexp.reduce(log_terms))) / (order - 1)


@lru_cache(maxsize=4096)
def _curve(sampling_rate: float, noise_multiplier: float) -> NDArray[np.float64]:
    return np.array([sampled_gaussian_rdp(order, sampling_rate, noise_multiplier) for order in ORDERS])


def epsilon_from_rdp(plan: Tally, delta: float) -> float:
    """ε = min over the order grid of Σ T·ε_SGM(α) + α·ρ + ln(1/δ)/(α−1), 8-1 §2.5."""
    orders = np.array(ORDERS, dtype=np.float64)
    curve = orders * plan.rho
    for (sampling_rate, noise_multiplier), steps in plan.sampled.items():
        curve = curve + steps * _curve(sampling_rate, noise_multiplier)
    return float(np.min(curve + math.log(1 / delta) / (orders - 1)))
