"""Repeated attacks: the mean AUROC over independent repetitions, its bound, and how many repetitions decide (8-1 §3.4).

Given the pool of N rows, repetition r draws a random half H_r, the noise of a training on it and a table, independently
of the other repetitions and in the same way. The AUROC A_r of a fixed attack (members H_r, non-members the rest) is a
function of these draws, so A_1 .. A_R are independent and identically distributed; their mean A belongs to these rows,
this generator and this plan. The t interval of R such values bounds A. How rows depend on one another within a
repetition does not matter, although they do: one table scores them all. DeLong's error would not serve, it speaks of
rows drawn anew. A_r is a rank sum over N rows, hence close to normal; tests/statistical/trials show the level of the
bound. What is bounded is A for *these* rows; nothing is said about a population they come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import nct, rankdata
from scipy.stats import t as student_t

from synth_platform.evaluation.membership import FAMILY_ERROR, LOW_FALSE_POSITIVE_RATE, tpr_at
from synth_platform.normalize.rows import FloatArray

BoolArray = NDArray[np.bool_]

WANTED_POWER = 0.9


@dataclass(frozen=True)
class RepeatedAttack:
    """One attack over R repetitions: AUROC and TPR (at FPR <= 1 %) of each, [R] to six decimals."""

    aurocs: FloatArray
    tprs: FloatArray

    @property
    def auroc(self) -> float:
        """Mean AUROC."""
        return float(self.aurocs.mean())

    @property
    def standard_error(self) -> float:
        """sd / sqrt(R)."""
        return float(self.aurocs.std(ddof=1) / math.sqrt(len(self.aurocs)))

    def bounds(self, attacks: int) -> tuple[float, float]:
        """Confidence bounds of the mean, each one-sided at 5 % over `attacks`: t with R - 1 degrees of freedom."""
        margin = float(student_t.ppf(1 - FAMILY_ERROR / attacks, len(self.aurocs) - 1)) * self.standard_error
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
    members = rows // 2
    return math.sqrt((rows + 1) / (12 * members * (rows - members)))


def confirming_power(rows: int, repetitions: int, limit: float, attacks: int) -> float:
    """Probability that one attack of `attacks` is confirmed below `limit` where the table knows nothing.

    The upper bound is at most the limit exactly when sqrt(R) (mean - limit) / sd <= -t: a non-central t variable with
    R - 1 degrees of freedom and non-centrality -sqrt(R) (limit - 1/2) / s, s the null deviation.
    """
    if repetitions < 2:
        return 0.0
    shift = math.sqrt(repetitions) * (limit - 0.5) / null_deviation(rows)
    quantile = float(student_t.ppf(1 - FAMILY_ERROR / attacks, repetitions - 1))
    return float(nct.sf(quantile, repetitions - 1, shift))  # by symmetry


def audit_power(rows: int, repetitions: int, limit: float, attacks: int) -> float:
    """Lower bound of the probability that an audit of R repetitions confirms a generator that leaks nothing.

    attacks - 1 of them use every repetition, the shadow-model attack those beyond the R // 2 shadows; misses may
    coincide, but at most they add up.
    """
    missed = (attacks - 1) * (1 - confirming_power(rows, repetitions, limit, attacks))
    missed += 1 - confirming_power(rows, repetitions - repetitions // 2, limit, attacks)
    return max(0.0, 1 - missed)


def required_repetitions(rows: int, limit: float, attacks: int, power: float = WANTED_POWER) -> int:
    """The smallest even number of repetitions at which `audit_power` reaches `power`."""

    def enough(half: int) -> bool:
        return audit_power(rows, 2 * half, limit, attacks) >= power

    least = 2  # shadows need four repetitions
    most = least
    while not enough(most):
        least, most = most, 2 * most
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return 2 * most
