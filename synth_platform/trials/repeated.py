"""Repeated attacks: the mean AUROC over pairs of halves, its bound, and how many repetitions decide (8-1 §3.4).

Pair p draws a random half H_p of the pool and trains twice: repetition 2p on H_p, repetition 2p + 1 on the others, each
with noise and a table of its own. Pairs are drawn independently and in the same way, so the means B_p of the two
AUROCs of a fixed attack are independent and identically distributed; their mean belongs to these rows, this generator
and this plan, and the t interval of the R/2 values B_p bounds it. How rows depend on one another within a pair does
not matter, although they do: one table scores them all. DeLong's error would not serve, it speaks of rows drawn anew.

A pair is worth more than two halves: what a score says of a row whether or not it was trained on (an outlier is far
from every table) speaks once for and once against membership, and cancels. B_p is a mean of rank sums over N rows,
hence close to normal; tests/statistical/trials show the level of the bound.

What is bounded is a figure of *these* rows; nothing is said about a population they come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import nct, rankdata
from scipy.stats import t as student_t

from synth_platform.evaluation.membership import FAMILY_ERROR, LOW_FALSE_POSITIVE_RATE, null_error, tpr_at
from synth_platform.normalize.rows import BoolArray, FloatArray

WANTED_POWER = 0.9


@dataclass(frozen=True)
class RepeatedAttack:
    """One attack over R repetitions, R even: AUROC and TPR (at FPR <= 1 %) of each, [R] to six decimals."""

    aurocs: FloatArray
    tprs: FloatArray

    @property
    def auroc(self) -> float:
        """Mean AUROC."""
        return float(self.aurocs.mean())

    @property
    def pairs(self) -> FloatArray:
        """[R / 2] mean AUROC of each pair."""
        return np.asarray(self.aurocs.reshape(-1, 2).mean(axis=1))

    @property
    def standard_error(self) -> float:
        """sd / sqrt(R / 2) of the pairs."""
        return float(self.pairs.std(ddof=1) / math.sqrt(len(self.pairs)))

    def bounds(self, attacks: int) -> tuple[float, float]:
        """Confidence bounds of the mean, each one-sided at 5 % over `attacks`: t, R / 2 - 1 degrees of freedom."""
        margin = float(student_t.ppf(1 - FAMILY_ERROR / attacks, len(self.pairs) - 1)) * self.standard_error
        return max(0.0, self.auroc - margin), min(1.0, self.auroc + margin)


def repeated_attack(scores: FloatArray, members: BoolArray) -> RepeatedAttack:
    """Attack every repetition: scores [R, N], larger = more likely a member; members [R, N]."""
    tprs = [
        tpr_at(row[inside], row[~inside], LOW_FALSE_POSITIVE_RATE) for row, inside in zip(scores, members, strict=True)
    ]
    return RepeatedAttack(np.round(aurocs(scores, members), 6), np.round(tprs, 6))


def aurocs(scores: FloatArray, members: BoolArray) -> FloatArray:
    """[R] the share of pairs (member, non-member) of each repetition that the scores [R, N] order rightly, ties 1/2."""
    inside = members.sum(axis=1)
    rank_sum = (rankdata(scores, axis=1) * members).sum(axis=1)
    return np.asarray((rank_sum - inside * (inside + 1) / 2) / (inside * (members.shape[1] - inside)))


def null_deviation(rows: int) -> float:
    """Standard deviation of one AUROC over random halves of `rows` where the scores know nothing.

    The rank sum of a random half of fixed scores without ties: variance (N + 1) / (12 m n) (Wilcoxon).
    """
    return null_error(rows // 2, rows - rows // 2)


def confirming_power(rows: int, pairs: int, limit: float, attacks: int) -> float:
    """Probability that one attack of `attacks` is confirmed below `limit` where the table knows nothing.

    The upper bound is at most the limit exactly when sqrt(P) (mean - limit) / sd <= -t: a non-central t variable with
    P - 1 degrees of freedom and non-centrality -sqrt(P) (limit - 1/2) / s. s^2 is half the null variance: that of two
    scores without correlation, as those of LIRA are. Scores that keep the order of rows from table to table vary less.
    """
    if pairs < 2:
        return 0.0
    shift = math.sqrt(2 * pairs) * (limit - 0.5) / null_deviation(rows)
    quantile = float(student_t.ppf(1 - FAMILY_ERROR / attacks, pairs - 1))
    return float(nct.sf(quantile, pairs - 1, shift))  # by symmetry


def audit_power(rows: int, repetitions: int, limit: float, attacks: int) -> float:
    """Lower bound of the probability that an audit of R repetitions confirms a generator that leaks nothing.

    attacks - 1 of them use every pair, the shadow-model attack those that are no shadows; misses may coincide, but at
    most they add up.
    """
    pairs = repetitions // 2
    missed = (attacks - 1) * (1 - confirming_power(rows, pairs, limit, attacks))
    missed += 1 - confirming_power(rows, pairs - pairs // 2, limit, attacks)
    return max(0.0, 1 - missed)


def required_repetitions(rows: int, limit: float, attacks: int, power: float = WANTED_POWER) -> int:
    """The smallest even number of repetitions at which `audit_power` reaches `power`."""

    def enough(pairs: int) -> bool:
        return audit_power(rows, 2 * pairs, limit, attacks) >= power

    most = 2
    while not enough(most):
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return 2 * most
