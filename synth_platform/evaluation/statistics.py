"""Small statistics every gate shares: six-decimal rationals, exact binomial bounds, the grouped jackknife, DeLong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.stats import beta, norm, rankdata
from scipy.stats import t as student_t

from synth_platform.normalize.rows import FloatArray, IntArray

_GROUP_SEED = 8_133


def six(value: float) -> Fraction:
    """`value` rounded to six decimals, as a rational: thresholds are compared on these, never on floats (8-1 §3.3)."""
    return Fraction(f"{value:.6f}")


def clopper_pearson_upper(successes: float, trials: int, confidence: float = 0.95) -> float:
    """One-sided exact upper bound of a binomial share; half successes (ties) are rounded up, which is conservative."""
    count = math.ceil(successes)
    return 1.0 if count >= trials else float(beta.ppf(confidence, count + 1, trials - count))


def clopper_pearson_lower(successes: float, trials: int, confidence: float = 0.95) -> float:
    """One-sided exact lower bound of a binomial share; half successes (ties) are rounded down."""
    count = math.floor(successes)
    return 0.0 if count <= 0 else float(beta.ppf(1 - confidence, count, trials - count + 1))


def jackknife_groups(n: int, groups: int) -> IntArray:
    """Group 0..groups-1 of each of n rows: a public seeded permutation dealt out in turn, sizes differ by at most one.

    Raises ValueError with fewer rows than groups.
    """
    if n < groups:
        raise ValueError(f"{n} test rows cannot be split into {groups} jackknife groups")
    assigned = np.empty(n, np.int64)
    assigned[np.random.default_rng(_GROUP_SEED).permutation(n)] = np.arange(n) % groups
    return assigned


def jackknife_error(leave_one_out: Sequence[float]) -> float:
    """Delete-a-group standard error sqrt((G-1)/G sum (theta_(-g) - mean)^2)."""
    values = np.asarray(leave_one_out, dtype=np.float64)
    groups = len(values)
    return float(np.sqrt((groups - 1) / groups * ((values - values.mean()) ** 2).sum()))


def t_quantile(groups: int) -> float:
    """One-sided 95 % Student quantile with groups - 1 degrees of freedom, to six decimals (1.729133 for 20 groups)."""
    return round(float(student_t.ppf(0.95, groups - 1)), 6)


def normal_quantile(probability: float) -> float:
    """Standard normal quantile."""
    return float(norm.ppf(probability))


def normal_probability(quantile: float) -> float:
    """Standard normal probability of at most `quantile`."""
    return float(norm.cdf(quantile))


def delong(positive: FloatArray, negative: FloatArray) -> tuple[float, float]:
    """AUROC of scores of positives [m] over negatives [n], ties 1/2, and its DeLong standard error.

    The variance is s10/m + s01/n of the placement values (DeLong, DeLong & Clarke-Pearson 1988).
    """
    m, n = len(positive), len(negative)
    ranks = rankdata(np.concatenate([positive, negative]))
    placed_positive = (ranks[:m] - rankdata(positive)) / n
    placed_negative = 1 - (ranks[m:] - rankdata(negative)) / m
    variance = placed_positive.var(ddof=1) / m + placed_negative.var(ddof=1) / n
    return float(placed_positive.mean()), float(np.sqrt(variance))
