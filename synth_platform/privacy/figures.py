"""Comparing privacy figures: as rationals of values rounded to six decimals, so that float dust decides nothing."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction


def six_decimals(value: float) -> Fraction:
    """`value` rounded to six decimals, exactly.

    >>> six_decimals(0.1 + 0.2) == six_decimals(0.3)
    True
    """
    return Fraction(Decimal(repr(float(value))).quantize(Decimal("0.000001"), ROUND_HALF_EVEN))


def exceeds(figure: float, limit: float) -> bool:
    """Whether `figure` is past a finite `limit` at six decimals; infinity always is. Raises ValueError for NaN.

    >>> exceeds(1.0000004, 1.0), exceeds(1.000001, 1.0)
    (False, True)
    """
    if math.isnan(figure) or not math.isfinite(limit):
        raise ValueError(f"cannot compare {figure} with {limit}")
    return math.isinf(figure) or six_decimals(figure) > six_decimals(limit)
