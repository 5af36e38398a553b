"""Evidence that may be looked at again and again: e-values of membership attacks, their sum over looks, and e-BH.

An e-value is a statistic E >= 0 with E[E] <= 1 under its null. The null of one release: *the table does not depend on
which of the rows were members*, so that, given the table and under a random split, members and non-members are
exchangeable. Rows must be made without knowing the split as well: `normalize.real_arm.correct_attacked` does.

**One look.** A score of every row (larger = more like a member), drawn without knowledge of membership, gives the
Mann-Whitney count U of member/non-member pairs in the right order. For any t fixed beforehand

    E = exp(tU) / M(t)

is an exact e-value, where M is the moment generating function of U under exchangeability without ties
(`discovery.statistics.mann_whitney` has the formula, and why midranks keep E valid).

log E is linear in U, so it is above 0 exactly where the attack's AUROC = U / (n0 n1) is above log M(t) / (t n0 n1).
`tilt` chooses the t for which that AUROC is the registered limit: a look that stays within the limit never counts more
than 1, however many rows there are, and the small leak that differential privacy allows cannot add up.

**Many looks.** Every look attacks the same rows, so e_1, e_2, ... depend on each other and their product is no e-value.
With weights fixed beforehand, w_s = 1 / (s (s + 1)), which sum to 1, the running sum E_t = sum_{s <= t} w_s e_s never
falls, and E[sup_t E_t] = sum_s w_s E[e_s] <= 1 whatever the dependence. By Markov's inequality

    P(E_t >= 1 / alpha for some t) <= alpha,

over all looks there will ever be. When looks are taken, and when one stops, changes nothing: the seed of look s decides
e_s whether or not the look takes place.

**Many releases.** E_t of each release is an e-value, so e-BH (Wang & Ramdas 2022, JRSS B 84:822) keeps the expected
share of false recalls among all recalls at or below alpha, again under any dependence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import rankdata

from synth_platform.discovery.e_bh import e_bh as rejected_positions
from synth_platform.discovery.statistics.mann_whitney import log_moment
from synth_platform.normalize.rows import FloatArray


@cache
def tilt(limit: float, members: int, nonmembers: int) -> float:
    """The t at which a look counts 1 exactly where its AUROC is `limit`, in (1/2, 1]; 0 where the limit is 1.

    For n = members + nonmembers rows, t is about 24 (limit - 1/2) / (n + 1): the choice that grows fastest where the
    truth is 2 limit - 1/2.
    """
    pairs = members * nonmembers
    if limit >= 1:
        return 0.0

    def excess(log_tilt: float) -> float:
        t = math.exp(log_tilt)
        return log_moment(t, members, nonmembers) / (t * pairs) - limit

    guess = math.log(24 * (limit - 0.5) / (members + nonmembers + 1))
    upper = guess + 1.0
    while excess(upper) < 0:
        upper += 1.0
    return math.exp(brentq(excess, guess - 5.0, upper, xtol=1e-10))


def mann_whitney_log_e(members: FloatArray, nonmembers: FloatArray, limit: float) -> float:
    """log E of scores of members [n1] over non-members [n0], ties 1/2; at most 0 where their AUROC is within `limit`.

    Raises ValueError without a row on either side or for a score that is no number.
    """
    n1, n0 = len(members), len(nonmembers)
    if not n1 or not n0:
        raise ValueError("an e-value needs at least one member and one non-member")
    scores = np.concatenate([members, nonmembers])
    if np.isnan(scores).any():
        raise ValueError("a score is not a number")
    count = float(rankdata(scores)[:n1].sum()) - n1 * (n1 + 1) / 2
    t = tilt(limit, n1, n0)
    return t * count - log_moment(t, n1, n0)


def log_mean(log_e: Sequence[float]) -> float:
    """log of the mean of e-values, which is an e-value under any dependence."""
    return float(logsumexp(log_e)) - math.log(len(log_e))


def log_accumulated(looks: Sequence[float | None]) -> float:
    """log E_t after the looks 1..t with log e_s each; None for a look that gave no evidence, which counts 0."""
    terms = [e - math.log(s * (s + 1)) for s, e in enumerate(looks, start=1) if e is not None]
    return float(logsumexp(terms)) if terms else -math.inf


def e_bh(log_e: Mapping[str, float], alpha: float) -> frozenset[str]:
    """The hypotheses that e-BH rejects at level `alpha`, from the log e-value of each by name (`discovery.e_bh`)."""
    names = list(log_e)
    return frozenset(names[i] for i in rejected_positions(list(log_e.values()), alpha))
