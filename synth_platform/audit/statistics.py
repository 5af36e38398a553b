"""Statistics by other roads than the gates take: counting pairs by bisection, placement values, sums of squares.

Point figures are exact fractions wherever the definition is one, so that a claim can be held to its own rounding.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from scipy.special import betainc, stdtrit

from synth_platform.audit.reading import FloatArray, IntArray

_BISECTIONS = 200
_SMALLEST_WITHIN = 1e-12  # the floor of the within-class mean square that the learner is defined with


def pairs_won(positive: Sequence[float], negative: Sequence[float]) -> list[int]:
    """For each positive, twice its negatives below plus its negatives equal: twice its placement count."""
    ordered = sorted(negative)
    return [bisect_left(ordered, value) + bisect_right(ordered, value) for value in positive]


def auroc(positive: Sequence[float], negative: Sequence[float]) -> Fraction:
    """The share of (positive, negative) pairs in the right order, ties 1/2 (8-1 §3.2)."""
    return Fraction(sum(pairs_won(positive, negative)), 2 * len(positive) * len(negative))


def delong_error(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Standard error of the AUROC from its placement values (DeLong, DeLong, Clarke-Pearson 1988)."""
    m, n = len(positive), len(negative)
    of_positive = [won / (2 * n) for won in pairs_won(positive, negative)]
    of_negative = [1 - won / (2 * m) for won in pairs_won(negative, positive)]
    return math.sqrt(_variance(of_positive) / m + _variance(of_negative) / n)


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def one_against_rest(folds: Sequence[tuple[FloatArray, IntArray]]) -> Fraction | None:
    """Mean one-vs-rest AUROC over the K columns of scores [n, K], pairs counted within each fold (8-1 §3.2).

    None where a class has no pair in any fold.
    """
    classes = folds[0][0].shape[1]
    areas = []
    for k in range(classes):
        won = pairs = 0
        for scores, label in folds:
            positive, negative = scores[label == k, k].tolist(), scores[label != k, k].tolist()
            won += sum(pairs_won(positive, negative))
            pairs += 2 * len(positive) * len(negative)
        if pairs == 0:
            return None
        areas.append(Fraction(won, pairs))
    return Fraction(sum(areas, Fraction()), classes) if classes > 1 else None


def concordance(risk: FloatArray, time: FloatArray, event: IntArray) -> tuple[int, int]:
    """(twice the concordant pairs and once the tied ones, twice the pairs) over pairs e_i = 1, t_i < t_j.

    From the latest time back, counting later risks by bisection.
    """
    rows = sorted(zip(time.tolist(), event.tolist(), risk.tolist(), strict=True), reverse=True)
    later: list[float] = []
    won = pairs = start = 0
    while start < len(rows):
        stop = start
        while stop < len(rows) and rows[stop][0] == rows[start][0]:
            stop += 1
        for _, observed, value in rows[start:stop]:
            if observed == 1:
                won += bisect_left(later, value) + bisect_right(later, value)
                pairs += len(later)
        for _, _, value in rows[start:stop]:
            insort(later, value)
        start = stop
    return won, 2 * pairs


def macro_f1(scores: FloatArray, label: IntArray) -> Fraction | None:
    """Mean over classes of the harmonic mean of precision and recall; None where a class has no row (8-1 §3.2)."""
    classes = scores.shape[1]
    predicted = [row.index(max(row)) for row in scores.tolist()]
    truth = label.tolist()
    total = Fraction()
    for k in range(classes):
        hits = sum(p == k == t for p, t in zip(predicted, truth, strict=True))
        if truth.count(k) == 0:
            return None
        if hits:
            precision, recall = Fraction(hits, predicted.count(k)), Fraction(hits, truth.count(k))
            total += 2 * precision * recall / (precision + recall)
    return Fraction(total, classes)


def twice_ranks(values: Sequence[float]) -> list[int]:
    """Twice the average ranks, whole numbers, by counting what is smaller and what is equal."""
    ordered = sorted(values)
    return [bisect_left(ordered, value) + bisect_right(ordered, value) + 1 for value in values]


def rank_correlation(a: Sequence[int], b: Sequence[int]) -> float | None:
    """Spearman's rho of two sides given by `twice_ranks`, from exact sums; None where one side is constant."""
    n, sum_a, sum_b = len(a), sum(a), sum(b)
    spread_a = n * sum(x * x for x in a) - sum_a**2
    spread_b = n * sum(x * x for x in b) - sum_b**2
    if spread_a == 0 or spread_b == 0:
        return None
    return (n * sum(x * y for x, y in zip(a, b, strict=True)) - sum_a * sum_b) / math.sqrt(spread_a * spread_b)


def top_k(values: Sequence[float], k: int) -> set[int]:
    """Positions of the k largest values, the earlier one first among equals."""
    return set(sorted(range(len(values)), key=lambda position: (-values[position], position))[:k])


def variance_ratio(x: FloatArray, group: IntArray) -> FloatArray:
    """eta^2 of every column, [q]: between-group over total sum of squares."""
    between, within, _, _ = _sums_of_squares(x, group)
    return np.asarray(between / (between + within), dtype=np.float64)


def anova(x: FloatArray, label: IntArray) -> FloatArray | None:
    """One-way F of every feature, [p], from raw sums of squares in extended precision; None without a degree left."""
    if len(x) == 0:  # a fold of which a jackknife group is all
        return None
    between, within, groups, rows = _sums_of_squares(x, label)
    if groups < 2 or rows <= groups:
        return None
    mean_within = np.maximum(within / (rows - groups), _SMALLEST_WITHIN)
    ratio: FloatArray = np.asarray((between / (groups - 1)) / mean_within, dtype=np.float64)
    return np.round(ratio, 6)


def _sums_of_squares(x: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray, int, int]:
    """Between [p] and within [p] sums of squares, number of groups and rows; shifted by the first row, not by means."""
    shifted = np.asarray(x, dtype=np.longdouble) - x[:1]
    present = sorted(set(group.tolist()))
    totals = [(shifted[group == k].sum(axis=0), int((group == k).sum())) for k in present]
    explained = sum(total**2 / n for total, n in totals)
    between = explained - shifted.sum(axis=0) ** 2 / len(x)
    within = (shifted**2).sum(axis=0) - explained
    return np.maximum(between, 0), np.maximum(within, 0), len(present), len(x)


def quantile(values: Sequence[float], share: float) -> float:
    """The value at position share * (n - 1) of the ordered values, linear in between."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def binomial_upper(successes: int, trials: int, confidence: float = 0.95) -> float:
    """The share p at which `successes` or fewer of `trials` have probability 1 - confidence (Clopper, Pearson 1934)."""
    if successes >= trials:
        return 1.0
    return _root(lambda p: float(betainc(successes + 1, trials - successes, p)), confidence)


def binomial_lower(successes: int, trials: int, confidence: float = 0.95) -> float:
    """The share p at which `successes` or more of `trials` have probability 1 - confidence."""
    if successes <= 0:
        return 0.0
    return _root(lambda p: float(betainc(successes, trials - successes + 1, p)), 1 - confidence)


def _root(increasing: Callable[[float], float], target: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if increasing(middle) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def jackknife_error(values: Sequence[float]) -> float:
    """Delete-a-group error sqrt((G-1)/G * sum of squared deviations), 8-1 §3.3, from the sum of squares."""
    groups = len(values)
    return math.sqrt((groups - 1) * (groups - 1) / groups * _variance(values))


def student_95(groups: int) -> float:
    """One-sided 95 % Student quantile of groups - 1 degrees of freedom, to six decimals."""
    return round(float(stdtrit(groups - 1, 0.95)), 6)


def normal_quantile(probability: float) -> float:
    """Standard normal quantile of the standard library."""
    return NormalDist().inv_cdf(probability)
