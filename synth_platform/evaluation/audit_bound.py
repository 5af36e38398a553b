"""What an attack proves about a privacy promise: lower bounds on ε and μ to hold against the ledger (8-1 §3.4).

An attack that calls a row a member above a threshold has a true and a false positive rate. (ε, δ)-DP demands
TPR ≤ e^ε FPR + δ and the same of TNR and FNR; μ-GDP demands Φ⁻¹(TPR) − Φ⁻¹(FPR) ≤ μ (Dong, Roth, Su 2022). Both are
held against the pessimistic ends of Clopper–Pearson intervals of all thresholds together (Bonferroni), so a bound
exceeds the truth with probability at most 1 − confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import beta

from synth_platform.evaluation.statistics import clopper_pearson_lower, clopper_pearson_upper
from synth_platform.normalize.rows import FloatArray

FALSE_POSITIVE_RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold's worst case: lower bound of its true positive rate, upper bound of its false positive rate."""

    true_positive: float
    false_positive: float

    def mu(self, group: int = 1) -> float:
        """Greatest μ per row that the point refutes, 0 if none; `group` rows together are group·μ-GDP."""
        if self.true_positive <= self.false_positive:
            return 0.0
        return float(ndtri(self.true_positive) - ndtri(self.false_positive)) / group

    def epsilon(self, delta: float, group: int = 1) -> float:
        """Greatest ε per row that the point refutes at `delta`, by either inequality; 0 if none.

        `group` rows together are (group·ε, `group_delta`)-DP.
        """
        mirrored = OperatingPoint(1 - self.false_positive, 1 - self.true_positive)
        return max(self._one_sided(delta, group), mirrored._one_sided(delta, group))

    def _one_sided(self, delta: float, group: int) -> float:
        if group == 1:
            refuted = self.true_positive > delta + self.false_positive
            return math.log((self.true_positive - delta) / self.false_positive) if refuted else 0.0

        def spare(epsilon: float) -> float:
            return (
                math.exp(group * epsilon) * self.false_positive
                + group_delta(epsilon, delta, group)
                - self.true_positive
            )

        if spare(0.0) >= 0:
            return 0.0
        upper = math.log(self.true_positive / self.false_positive) / group + 1e-9  # above the root despite rounding
        return float(brentq(spare, 0.0, upper, xtol=1e-12))


def group_delta(epsilon: float, delta: float, group: int) -> float:
    """δ(1 + e^ε + … + e^((group−1)ε)) of `group` rows together: a step of the definition for each."""
    return delta * math.fsum(math.exp(j * epsilon) for j in range(group))


def points_at_ranks(member_scores: FloatArray, nonmember_scores: FloatArray, confidence: float) -> list[OperatingPoint]:
    """Operating points at FALSE_POSITIVE_RATES of the non-member scores, for scores whose scale nobody knows before.

    member_scores [m], nonmember_scores [n]: larger = more likely a member. Thresholds sit at fixed ranks of the
    non-member scores. Then the count above a threshold is fixed and the true false positive rate is the random one:
    above the (x+1)-th largest of n continuous scores it is Beta(x+1, n-x), whose quantile *is* the Clopper-Pearson
    upper bound of x out of n (ties only lower it). Members do not choose the threshold, so their Clopper-Pearson lower
    bound holds as well. The error 1 - confidence is shared evenly by both bounds of every threshold (Bonferroni).

    Raises ValueError for an empty side or a confidence outside (0, 1).
    """
    _check(member_scores, nonmember_scores, confidence)
    m, n = len(member_scores), len(nonmember_scores)
    exceeded = sorted({math.floor(rate * n + 1e-9) for rate in FALSE_POSITIVE_RATES if rate * n < n})
    each = 1 - (1 - confidence) / (2 * len(exceeded))
    ordered = np.sort(nonmember_scores)[::-1]
    return [
        OperatingPoint(
            clopper_pearson_lower(int((member_scores > ordered[x]).sum()), m, each),
            float(beta.ppf(each, x + 1, n - x)),
        )
        for x in exceeded
    ]


def points_at_thresholds(
    member_scores: FloatArray, nonmember_scores: FloatArray, thresholds: Sequence[float], confidence: float
) -> list[OperatingPoint]:
    """Operating points at thresholds that were fixed before the scores were seen; a score at a threshold is above it.

    The error is shared as above. Raises ValueError for an empty side, no thresholds or a confidence outside (0, 1).
    """
    _check(member_scores, nonmember_scores, confidence)
    if not thresholds:
        raise ValueError("an operating point needs a threshold")
    each = 1 - (1 - confidence) / (2 * len(thresholds))
    return [
        OperatingPoint(
            clopper_pearson_lower(int((member_scores >= t).sum()), len(member_scores), each),
            clopper_pearson_upper(int((nonmember_scores >= t).sum()), len(nonmember_scores), each),
        )
        for t in thresholds
    ]


def epsilon_lower_bound(
    member_scores: FloatArray, nonmember_scores: FloatArray, delta: float, confidence: float = 0.95
) -> float:
    """Lower bound on ε over the points at ranks, holding with probability `confidence`; 0 where nothing is refuted.

    Raises ValueError for an empty side or a delta or confidence outside (0, 1); delta may be 0.
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta {delta} must lie in [0, 1)")
    return max(point.epsilon(delta) for point in points_at_ranks(member_scores, nonmember_scores, confidence))


def _check(member_scores: FloatArray, nonmember_scores: FloatArray, confidence: float) -> None:
    if min(len(member_scores), len(nonmember_scores)) == 0:
        raise ValueError("a privacy bound needs member and non-member scores")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} must lie in (0, 1)")
