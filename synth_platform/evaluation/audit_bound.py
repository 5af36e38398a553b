"""What an attack proves about epsilon: an empirical lower bound to hold against the ledger (8-1 §3.4)."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import beta

from synth_platform.evaluation.statistics import clopper_pearson_lower
from synth_platform.normalize.rows import FloatArray

FALSE_POSITIVE_RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


def epsilon_lower_bound(
    member_scores: FloatArray, nonmember_scores: FloatArray, delta: float, confidence: float = 0.95
) -> float:
    """Lower bound on epsilon that holds with probability `confidence`: max of log((TPR_low - delta) / FPR_up), >= 0.

    member_scores [m], nonmember_scores [n]: larger = more likely a member. Thresholds sit at fixed ranks of the
    non-member scores. Then the count above a threshold is fixed and the true false positive rate is the random one:
    above the (x+1)-th largest of n continuous scores it is Beta(x+1, n-x), whose quantile *is* the Clopper-Pearson
    upper bound of x out of n (ties only lower it). Members do not choose the threshold, so their Clopper-Pearson lower
    bound holds as well. The error 1 - confidence is shared evenly by both bounds of every threshold (Bonferroni).

    Raises ValueError for an empty side or a delta or confidence outside (0, 1); delta may be 0.
    """
    m, n = len(member_scores), len(nonmember_scores)
    if min(m, n) == 0:
        raise ValueError("an epsilon bound needs member and non-member scores")
    if not (0 <= delta < 1 and 0 < confidence < 1):
        raise ValueError(f"delta {delta} and confidence {confidence} must lie in [0, 1) and (0, 1)")
    exceeded = sorted({math.floor(rate * n + 1e-9) for rate in FALSE_POSITIVE_RATES if rate * n < n})
    each = 1 - (1 - confidence) / (2 * len(exceeded))
    ordered = np.sort(nonmember_scores)[::-1]
    best = 0.0
    for x in exceeded:
        false_positive = float(beta.ppf(each, x + 1, n - x))
        true_positive = clopper_pearson_lower(int((member_scores > ordered[x]).sum()), m, each)
        if true_positive > delta:
            best = max(best, math.log((true_positive - delta) / false_positive))
    return best
