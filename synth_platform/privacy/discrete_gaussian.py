"""The exact discrete Gaussian N_Z(0, σ²) of Canonne, Kamath and Steinke (2020), drawn from uniform words in blocks.

Rejection from a proposal made of random bits alone. With t = 2^s the largest power of two ≤ max(σ, 1), propose
k = ±(j·t + u), where u is uniform on [0, t) and P(j) = 2^-(j+1), and accept with probability

    p = 2^(j+1) · exp(−k²/2σ² − c),    c ≥ max_j [(j+1)·ln 2 − (j·t)²/2σ²],

which is at most 1 and leaves k with mass proportional to exp(−k²/2σ²). A uniform is compared with p lazily: 64 bits and
float64 decide unless the two lie within the proven error of each other (about one comparison in 2^40); then decimal
arithmetic with as many more bits as it takes decides. No draw depends on float rounding. See docs/noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Words = Callable[[int], NDArray[np.uint64]]
"""n -> n independent uniform 64-bit words."""

SMALLEST_SIGMA = 2.0**-10
LARGEST_SIGMA = 2.0**40

_BLOCK = 1 << 15
_RELATIVE_ERROR = 2.0**-40
_ABSOLUTE_ERROR = 2.0**-62


def discrete_gaussian(sigma: float, size: int, words: Words) -> IntArray:
    """`size` independent draws of N_Z(0, sigma²), int64.

    Exact for ideal words up to the tail beyond 32σ (mass below 2^-738), which is never proposed.

    Raises ValueError if sigma is outside [2^-10, 2^40] grid steps.
    """
    if not SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA:
        raise ValueError(f"sigma is {sigma} grid steps, outside [2^-10, 2^40]: choose another granularity")
    drawn: list[IntArray] = []
    missing = size
    while missing > 0:
        accepted = _accepted(sigma, min(_BLOCK, 2 * missing + 32), words)[:missing]
        drawn.append(accepted)
        missing -= accepted.size
    return np.concatenate(drawn) if drawn else np.zeros(0, dtype=np.int64)


def _accepted(sigma: float, attempts: int, words: Words) -> IntArray:
    shift = max(0, math.frexp(sigma)[1] - 1)
    log_bound = _log_bound(sigma, shift)
    first, second, uniform = words(3 * attempts).reshape(3, attempts)

    j = np.bitwise_count(~first & (first - np.uint64(1))).astype(np.int64)  # trailing zeros: P(j) = 2^-(j+1)
    u = (second & np.uint64((1 << shift) - 1)).astype(np.int64)
    negative = (second >> np.uint64(63)).astype(bool)
    k = (j << shift) + u

    p = _acceptance(k, j, sigma, log_bound)
    x = uniform * 2.0**-64
    error = _RELATIVE_ERROR * p + _ABSOLUTE_ERROR
    accept = x < p - error
    for i in np.flatnonzero(np.abs(x - p) <= error):
        exponent = Fraction(int(k[i]) ** 2, 2) / Fraction(sigma) ** 2 + Fraction(log_bound)
        accept[i] = _accept_exactly(exponent, int(j[i]) + 1, int(uniform[i]), words)
    accept &= ~(negative & (k == 0)) & (j < 64)  # zero has one sign only
    return np.where(negative, -k, k)[accept]


def _acceptance(k: IntArray, j: IntArray, sigma: float, log_bound: float) -> NDArray[np.float64]:
    """p in float64, within _RELATIVE_ERROR·p + _ABSOLUTE_ERROR of the real number."""
    return np.exp((j + 1) * math.log(2) - (k / sigma) ** 2 / 2 - log_bound)


def _log_bound(sigma: float, shift: int) -> float:
    """The constant c: any float ≥ the maximum will do, so the maximum is raised by far more than its rounding error."""
    return max((j + 1) * math.log(2) - (j * 2.0**shift / sigma) ** 2 / 2 for j in range(64)) + 2.0**-20


def _accept_exactly(exponent: Fraction, doublings: int, uniform: int, words: Words) -> bool:
    """Whether the uniform real that begins with the 64 bits of `uniform` lies below 2^doublings · exp(−exponent)."""
    bits = 64
    while True:
        uniform, bits = (uniform << 64) | int(words(1)[0]), bits + 64
        with localcontext(prec=bits) as context:
            # Decimal.exp is correctly rounded; the exponent is below 2^32, so ten digits cover its own rounding.
            p = 2**doublings * (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp(context)
            error = p * Decimal(10) ** (12 - bits)
            below, above = Decimal(uniform) / 2**bits, Decimal(uniform + 1) / 2**bits
            if above * (1 + Decimal(10) ** (2 - bits)) <= p - error:
                return True
            if below * (1 - Decimal(10) ** (2 - bits)) >= p + error:
                return False
