"""Privacy bounds from a single run in which every one of many canaries was in with probability 1/2, independently.

An attacker guesses which canaries were in and abstains on the others; how many of its guesses are right bounds what
the mechanism promises. ε: Steinke, Nasr and Jagielski (2023), Theorem 5.2. μ: Mahloujifar, Melis and Chaudhuri (2024),
their algorithm for f-DP with the Gaussian trade-off curve. Guesses are counted before scores are seen, because the
theorems hold for a number of guesses that does not depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom

from synth_platform.normalize.rows import FloatArray

Included = NDArray[np.bool_]
Refutes = Callable[[float], float]
_TOLERANCE = 1e-9


def correct_guesses(scores: FloatArray, included: Included, *, ins: int, outs: int = 0) -> int:
    """How often "in" for the `ins` highest scores and "out" for the `outs` lowest is right; [m] scores, ties by place.

    Raises ValueError for more guesses than canaries.
    """
    if not 0 < ins + outs <= len(scores):
        raise ValueError(f"{ins} + {outs} guesses about {len(scores)} canaries")
    order = np.argsort(-scores, kind="stable")
    return int(included[order[:ins]].sum()) + int((~included[order[len(order) - outs :]]).sum())


def one_run_p_value(*, canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Probability bound of so many correct guesses under (ε, δ)-DP: P[B ≥ v] + 2mδ·max_i P[v > B ≥ v − i]/i.

    B ~ Binomial(guesses, e^ε/(1 + e^ε)), v = correct, m = canaries.
    """
    share = float(expit(epsilon))
    tail = float(binom.sf(correct - 1, guesses, share))
    if delta == 0 or correct == 0:
        return tail
    i = np.arange(1, correct + 1)
    closer = binom.sf(correct - i - 1, guesses, share) - tail
    return min(1.0, tail + 2 * canaries * delta * float((closer / i).max(initial=0.0)))


def one_run_epsilon(
    scores: FloatArray, included: Included, *, guesses: Sequence[tuple[int, int]], delta: float, confidence: float
) -> float:
    """Lower bound on ε that holds with probability `confidence`; 0 where nothing is refuted.

    scores, included: [m]. guesses: numbers of ("in", "out") guesses to try, which share the error (Bonferroni).
    """
    each = (1 - confidence) / len(guesses)

    def refutes(ins: int, outs: int) -> Refutes:
        correct = correct_guesses(scores, included, ins=ins, outs=outs)
        return lambda epsilon: (
            each
            - one_run_p_value(canaries=len(scores), guesses=ins + outs, correct=correct, epsilon=epsilon, delta=delta)
        )

    return max(_greatest(refutes(ins, outs)) for ins, outs in guesses)


def one_run_mu(
    scores: FloatArray, included: Included, *, guesses: Sequence[tuple[int, int]], confidence: float
) -> float:
    """The same for μ of Gaussian DP."""
    each = (1 - confidence) / len(guesses)

    def refutes(ins: int, outs: int) -> Refutes:
        correct = correct_guesses(scores, included, ins=ins, outs=outs)
        return lambda mu: gaussian_excess(
            canaries=len(scores), guesses=ins + outs, correct=correct, mu=mu, significance=each
        )

    return max(_greatest(refutes(ins, outs)) for ins, outs in guesses)


def gaussian_excess(*, canaries: int, guesses: int, correct: int, mu: float, significance: float) -> float:
    """Above 0 where so many correct guesses have probability below `significance` under μ-GDP.

    r and h bound P[correct, this canary wrong or right] from the count observed downwards, each step by the trade-off
    curve: h ≥ Φ(Φ⁻¹(r) − μ).
    """
    right, wrong = significance * correct / canaries, significance * (guesses - correct) / canaries
    for i in range(correct - 1, -1, -1):
        next_wrong = max(wrong, float(ndtr(ndtri(right) - mu)))
        if next_wrong == wrong:
            break  # nothing below moves any more
        right = min(1.0, right + i / (guesses - i) * (next_wrong - wrong))
        wrong = next_wrong
    return right + wrong - guesses / canaries


def _greatest(refutes: Refutes) -> float:
    """The largest parameter at which `refutes`, which falls in it, is above 0; 0 if there is none."""
    if refutes(0.0) <= 0:
        return 0.0
    upper = 1.0
    while refutes(upper) > 0 and math.isfinite(upper):
        upper *= 2
    return float(brentq(refutes, 0.0, upper, xtol=_TOLERANCE))
