"""The mean of ∏ w_i over all choices of k records among n: the exact normaliser of a tilted permutation test, quickly.

    log [e_k(w) / C(n, k)],    e_k(w) = Σ_{|S|=k} ∏_{i∈S} w_i = coefficient of z^k in ∏ (1 + w_i z),    w_i > 0.

The sum over records, one at a time, costs O(n k) logarithms (`elementary_symmetric`). Here, for any z > 0 and
independent B_i with P(B_i = 1) = p_i = w_i z / (1 + w_i z), S = Σ B_i,

    e_k(w) = z^{−k} ∏ (1 + w_i z) · P(S = k).

z is chosen so that E[S] = k (the saddle point, a monotone equation). P(S = k) comes from the characteristic
function φ(θ) = ∏ (1 + p_i (e^{iθ} − 1)) on N equally spaced angles,

    (1/N) Σ_j φ(θ_j) e^{−iθ_j k} = Σ_l P(S = k + l N),

an identity, not an approximation. Every term is near its modulus (the mean is at k), so nothing cancels.
With V = Var S:

- *Aliases* l ≠ 0 add at most P(|S − k| ≥ N) ≤ 2 exp(−N² / (2V + 2N/3)) (Bernstein), at most 2e^{−45} for
  N ≥ 15 + √(225 + 90 V); none at all for N > n.
- *Angles left out* are those with V (1 − cos θ) > 45; together they weigh at most e^{−45}, because
  |φ(θ)|² = ∏ (1 − 2 p_i (1 − p_i)(1 − cos θ)) ≤ e^{−2V (1 − cos θ)}.
- The mode of S is at its mean k (Darroch 1964), and by Chebyshev P(S = k) ≥ (3/4) / (4 √V + 1).

The truncation error of the logarithm is below 4e^{−45} (4√V + 1) / (3/4), that is 1e-15 for n up to a million: the
result is exact to float64 rounding, for about 16 angles instead of k additions per record.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from synth_platform.discovery.statistics.log_sums import log_choose
from synth_platform.discovery.statistics.protocol import FloatArray

_EXPONENT = 45.0
_STEPS = 200


def log_choice_moment(log_weights: FloatArray, chosen: int, copies: FloatArray | None = None) -> FloatArray:
    """log_weights [r, m] finite -> [m] log of the mean of ∏ w_i over all choices of `chosen` records, per column.

    copies [r, m]: how many records have each weight, whole numbers >= 0 with the same total n in every column; None for
    one each (n = r). 0 < chosen < n. Memory is a few [r, m] arrays.
    """
    n = len(log_weights) if copies is None else round(float(copies[:, 0].sum()))
    log_z = _saddle_point(log_weights, chosen, n, copies)
    tilted = log_weights + log_z
    p = expit(tilted)
    variance = _total(p * (1 - p), copies)
    mass = _probability(p, copies, chosen, n, variance)
    log_coefficient = _total(np.logaddexp(0.0, tilted), copies) - chosen * log_z + np.log(mass)
    return np.asarray(log_coefficient - log_choose(n, chosen))


def _total(x: FloatArray, copies: FloatArray | None) -> FloatArray:
    return np.asarray(x.sum(axis=0) if copies is None else (copies * x).sum(axis=0))


def _saddle_point(log_weights: FloatArray, chosen: int, n: int, copies: FloatArray | None) -> FloatArray:
    """log z per column with Σ p_i = chosen up to 1e-7: Newton's steps, bisection where they leave the bracket."""
    level = math.log(chosen) - math.log(n - chosen)
    low, high = level - log_weights.max(axis=0), level - log_weights.min(axis=0)
    log_z = level - _total(log_weights, copies) / n
    for _ in range(_STEPS):
        p = expit(log_weights + log_z)
        excess = _total(p, copies) - chosen
        if (np.abs(excess) < 1e-7).all():
            break
        low, high = np.where(excess < 0, log_z, low), np.where(excess > 0, log_z, high)
        step = log_z - excess / np.maximum(_total(p * (1 - p), copies), 1e-300)
        log_z = np.where((step > low) & (step < high), step, (low + high) / 2)
    return np.asarray(log_z)


def _probability(p: FloatArray, copies: FloatArray | None, chosen: int, n: int, variance: FloatArray) -> FloatArray:
    """P(S = chosen) per column, all columns on the angles that the most demanding one needs."""
    angles = min(n + 1, math.ceil(15 + math.sqrt(225 + 90 * float(variance.max())))) | 1  # odd: no angle is π
    largest = math.acos(max(-1.0, 1 - _EXPONENT / max(float(variance.min()), 1e-300)))
    real = np.ones(p.shape[1])  # of the angle 0; θ and −θ are conjugates
    for theta in 2 * math.pi / angles * np.arange(1, angles // 2 + 1):
        if theta > largest:
            break
        real += 2 * _centred(p, copies, chosen, theta)
    return real / angles


def _centred(p: FloatArray, copies: FloatArray | None, chosen: int, theta: float) -> FloatArray:
    """Re φ(θ) e^{−iθ chosen}; powers by modulus and phase, as complex logarithms are 20 times slower."""
    versine, sine = 1 - math.cos(theta), math.sin(theta)
    if copies is None:
        phi = (1 + p * complex(-versine, sine)).prod(axis=0)
        return np.asarray((phi * complex(math.cos(theta * chosen), -math.sin(theta * chosen))).real)
    log_modulus = (copies * np.log1p(-2 * versine * p * (1 - p))).sum(axis=0) / 2
    phase = (copies * np.arctan2(p * sine, 1 - p * versine)).sum(axis=0) - chosen * theta
    return np.asarray(np.exp(log_modulus) * np.cos(phase))
