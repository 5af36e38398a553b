"""False discovery control with e-values: e-BH, and how much more a few canonical private e-values may count.

**e-BH** (Wang and Ramdas 2022, JRSS B 84:822) rejects, of m hypotheses, the k largest e-values for the largest k whose
smallest is at or above m/(αk). The expected share of true nulls among the rejected is at most α under any dependence:
a rejected null among R has 1/R ≤ αE/m, and the expectations of all E/m add up to at most 1. E-values of zero are never
rejected, so those need not be stored.

**Boosting when at most k are not zero.** A rejected hypothesis among R ≤ k has reached m/(αR), one of the k levels
m/α, m/(2α), …, m/(kα). So 1/R ≤ (α/m)·T(E), where T rounds down to the nearest level and to 0 below the lowest. T(E) is
less than E, mostly: E may be replaced by any E″ with E[T(E″)] ≤ E[E]. For canonical e-values of size x·exp(−ξ), ξ ~
N(s²/2, s²), as selection and then fresh noise give, multiply by the largest b with

    E_ξ[T(b·x·exp(−ξ))] ≤ x    for every x > 0.

This is a promise for each x, whatever the other e-values, so it survives any dependence between hypotheses, any
selection that does not look at ξ, and k and s that earlier private answers have set: taking expectations over x·1{x was
selected} ≤ E leaves E[T(E″)] ≤ E[E] ≤ 1. With levels in units of the lowest, ℓ_r = k/r for r = 1..k, and z = log(b·x),

    1/b = sup_z h(z),    h(z) = e^{−z}·Σ_r (ℓ_r − ℓ_{r+1})·Φ((z − log ℓ_r − s²/2)/s),    ℓ_{k+1} = 0,

which depends on k and s only. One e-value (k = 1) gives b = 1/K(s): e-BH is then the threshold K·m/α of `threshold`.
As k grows T approaches the identity and b falls to 1.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SMALLEST_BOOSTED_SCALE, _LARGEST_BOOSTED_SCALE = 1e-5, 100.0
_LEVELS = 256
_TOLERANCE = 1e-4


def e_bh(log_e: ArrayLike, alpha: float, *, hypotheses: int | None = None) -> IntArray:
    """Positions in log_e that e-BH rejects at level alpha, ascending; FDR ≤ alpha under any dependence.

    log_e: [n] log e-values, −inf where an e-value is zero. hypotheses: how many there are in all, if those with e-value
    zero were left out of log_e; n otherwise. O(n), and a sort of those that reach 1/alpha.

    Raises ValueError for alpha outside (0, 1), what is no real number, a NaN, or hypotheses that are no whole number or
    fewer than the e-values.
    """
    log_e = _real(log_e)
    if log_e.ndim != 1:
        raise ValueError(f"log_e has {log_e.ndim} dimensions, expected 1: one log e-value per hypothesis")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}, expected a level between 0 and 1, both excluded")
    m = log_e.size if hypotheses is None else hypotheses
    if isinstance(m, bool) or not isinstance(m, (int, np.integer)):
        raise ValueError(f"hypotheses is {m!r}, expected a whole number: how many there are in all")
    if m < log_e.size:
        raise ValueError(f"hypotheses is {m}, expected at least one for each of the {log_e.size} e-values")
    if np.isnan(log_e).any():
        raise ValueError("log_e has a NaN: give a hypothesis without evidence the e-value 1, log_e = 0")
    if not log_e.size:
        return np.zeros(0, dtype=np.int64)
    one = math.log(m / alpha)  # what a single rejection needs; k of them need log k less
    reachable = np.sort(log_e[log_e >= one - math.log(log_e.size)])[::-1]
    levels = one - np.log(np.arange(1, reachable.size + 1))
    enough = np.flatnonzero(reachable >= levels)
    return np.flatnonzero(log_e >= levels[enough[-1]]) if enough.size else np.zeros(0, dtype=np.int64)


def boosted_e_bh(log_e: ArrayLike, alpha: float, *, scale: float, hypotheses: int) -> IntArray:
    """`e_bh` of canonical private e-values that all count `boost(n, scale)` times; FDR ≤ alpha under any dependence.

    log_e: [n] of the hypotheses that were selected before their noise was drawn; all others count zero. scale: s, the
    standard deviation of that noise in nats.
    """
    log_e = _real(log_e)
    return e_bh(log_e + log_boost(max(log_e.size, 1), scale), alpha, hypotheses=hypotheses)


@cache
def log_boost(count: int, scale: float) -> float:
    """log b ≥ 0 for `count` canonical e-values whose noise has standard deviation `scale` in nats.

    At most the b of the formula and within 2e-4 of it up to 256 e-values; of more, the levels below the 256 highest
    are taken for a continuum. 0 where scale is beyond 100, which no e-value survives, or below 1e-5, where b is less
    than 1 + 5e-5.

    Raises ValueError unless count ≥ 1 and scale is > 0.
    """
    if count < 1:
        raise ValueError(f"count is {count}, expected at least one e-value")
    if not scale > 0:
        raise ValueError(f"scale is {scale}, expected the standard deviation of the noise, > 0")
    if not _SMALLEST_BOOSTED_SCALE <= scale <= _LARGEST_BOOSTED_SCALE:
        return 0.0
    return max(0.0, -math.log(_highest_mean(count, scale)))


def _real(log_e: ArrayLike) -> FloatArray:
    found = np.asarray(log_e)
    if found.dtype.kind not in "fiu":
        raise ValueError(f"log_e holds {found.dtype}, expected real numbers: one log e-value per hypothesis")
    return found.astype(np.float64)


def _highest_mean(count: int, scale: float) -> float:
    """sup_z h(z), rounded up.

    e^z·h(z) never falls, so h ≤ h(z)·e^w on the interval of width w that ends at z. Intervals that cannot hold more
    than the best value so far are left out, the others divided.
    """
    span, centre = math.log(count), -(scale**2) / 2
    best = float(_mean(centre + np.linspace(-3 * scale, span + 3 * scale, 64), count, scale).max())
    if best > 1 - _TOLERANCE:
        return 1.0
    # With Y ~ N(z − centre, s²), h is the mean of T(e^Y)/e^Y: zero for Y < 0, at most 1 and at most count/e^Y.
    lowest = centre + scale * float(ndtri(best))
    highest = centre + span + math.log(2 / best) - scale * float(ndtri(best / 2))
    width = 0.5
    ends = np.arange(lowest, highest + width, width) + width
    while True:
        values = _mean(ends, count, scale)
        best = max(best, float(values.max()))
        if width <= _TOLERANCE:
            return best * math.exp(_TOLERANCE)
        ends = ends[values * math.exp(width) > best * math.exp(_TOLERANCE)]
        if not ends.size:
            return best * math.exp(_TOLERANCE)
        width /= 8
        ends = (ends[:, None] - width * np.arange(8)).ravel()


def _mean(z: FloatArray, count: int, scale: float) -> FloatArray:
    """h(z), [n]; every term is a share of a probability, so none overflows."""
    steps = min(count, _LEVELS)
    level = count / np.arange(1, steps + 1)
    rise = -np.diff(level, append=0.0)
    # Between the lowest level and the first of the steps T is taken for the identity.
    shift = scale**2 / 2
    total = ndtr((math.log(level[-1]) - z - shift) / scale) - ndtr((-z - shift) / scale)
    for height, reached in zip(np.log(rise), np.log(level), strict=True):
        total += np.exp(height - z + log_ndtr((z - reached - shift) / scale))
    return np.asarray(total, dtype=np.float64)
