"""The Gaussian mechanism on a grid: clip, quantise, sum in integers, add discrete Gaussian noise.

Every constant comes from (sensitivity, sigma), which are public; the number of rows is never used. The noisy sum is
sensitivity²/(2·sigma²)-zCDP under add/remove of one row, exactly: Canonne, Kamath, Steinke (2020) on the quantised sum,
whose L2 sensitivity is at most sensitivity/granularity grid steps. docs/noise.md gives its distance to μ-GDP.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from synth_platform.privacy.noise import NoiseSource

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_CELLS_PER_BLOCK = 1 << 20


def gaussian_sum(
    contributions: FloatArray, *, sensitivity: float, sigma: float, noise: NoiseSource
) -> tuple[FloatArray, float]:
    """Noisy sum of rows, each clipped to L2 norm ≤ sensitivity: (values [d], granularity).

    contributions: [n, d], any n including 0. A row with a NaN or an infinity contributes zero: an error would tell the
    caller something about one row outside the budget, and the contract has already refused such cells by name.
    sensitivity, sigma: public, > 0, in the statistic's units; sigma is the standard deviation per coordinate.
    values are multiples of granularity (up to float64 rounding of the released vector, which is post-processing).

    Raises ValueError for a shape other than [n, d] or a constant out of range.
    """
    step = granularity(sensitivity, sigma)
    total = quantised_sum(contributions, sensitivity=sensitivity, granularity=step)
    total += noise.discrete_gaussian(sigma / step, total.size)
    return np.asarray(total * step, dtype=np.float64), step


def granularity(sensitivity: float, sigma: float) -> float:
    """Grid step: the finest power of two with sensitivity < 2^31 steps and sigma < 2^40 steps.

    So 2^31 rows cannot overflow an int64 sum, and quantisation shifts a sum by less than n·sensitivity/2^30.
    """
    for name, value in (("sensitivity", sensitivity), ("sigma", sigma)):
        if not 1e-100 <= value <= 1e100:
            raise ValueError(f"{name} is {value}, expected a positive number between 1e-100 and 1e100")
    return math.ldexp(1.0, max(math.frexp(sensitivity)[1] - 31, math.frexp(sigma)[1] - 40))


def quantised_sum(contributions: FloatArray, *, sensitivity: float, granularity: float) -> IntArray:
    """The sum before noise, [d] int64 grid steps; one row moves it by ≤ sensitivity/granularity in L2, exactly."""
    if contributions.ndim != 2:
        raise ValueError(f"contributions have {contributions.ndim} dimensions, expected 2: [rows, statistic]")
    contributions = np.asarray(contributions, dtype=np.float64)
    d = contributions.shape[1]
    total = np.zeros(d, dtype=np.int64)
    block = max(1, _CELLS_PER_BLOCK // max(d, 1))
    for start in range(0, contributions.shape[0], block):
        total += _quantised(contributions[start : start + block], sensitivity, granularity).sum(axis=0)
    return total


def _quantised(rows: FloatArray, sensitivity: float, granularity: float) -> IntArray:
    rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    direction = rows / np.where(largest > 0, largest, 1.0)  # so that the norm of a huge row does not overflow
    norm = np.sqrt((direction * direction).sum(axis=1, keepdims=True))
    with np.errstate(over="ignore"):
        fits = norm * largest <= sensitivity
    clipped = np.where(fits, rows, direction * (sensitivity / np.maximum(norm, 1.0)))
    steps = np.trunc(clipped / granularity).astype(np.int64)

    limit = math.floor((Fraction(sensitivity) / Fraction(granularity)) ** 2)
    while (over := (steps * steps).sum(axis=1) > limit).any():
        # Only float rounding leads here; a step toward zero on every coordinate shortens a row by at least half a step.
        steps[over] -= np.sign(steps[over])
    return steps
