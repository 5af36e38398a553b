"""Several e-values for the same hypotheses, made into one: what it costs, and what may be asked of the result.

**The same people, any dependence.** The average of e-values is an e-value. Two orders:

- `average_before`: average first, release once. The log of an average of K e-values moves by at most max_k Δ_k,
  since it lies between the smallest and the largest of the K movements. One canonical release costs μ, and the
  result is a canonical e-value: every rule of `threshold` applies.
- `average_after`: release each, then average. K releases about the same people cost √(Σ μ_k²), √K·μ when they are
  alike. The noise of an average of log-normal variables is no log-normal one: only what holds for every e-value is
  left (Markov's 1/α, e-BH). It is for releases that exist already.

**Disjoint people, independent data.** Log e-values add up to the log of a product, an e-value because the factors
are independent (`product_of_disjoint`). One record sits in one of the data sets and moves the sum by at most max_k
Δ_k, under noise of variance Σ s_j², s_j = Δ_j/μ_j. So if *the product alone* is published,

    μ_prod = max_k Δ_k / √(Σ_j Δ_j²/μ_j²) ≤ max_k μ_k,

and it is a canonical e-value of sensitivity max Δ_k and scale s = √(Σ s_j²). If the factors are published as well,
the cost is max_k μ_k, that of the dearest one, and the product adds nothing to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from synth_platform.discovery.canonical import FloatArray, PrivateLogE, checked_log_e


def composed_mu(mus: Sequence[float]) -> float:
    """√(Σ μ_k²): the cost of all of these releases about the same people; each finite and > 0."""
    return math.hypot(*_positive("mus", mus))


def average_before(log_e: Sequence[FloatArray], sensitivities: Sequence[float]) -> tuple[FloatArray, float]:
    """K log e-values of one shape, not yet private -> (log of their average, its sensitivity max Δ_k); any dependence.

    To be privatised once, at cost μ. Raises ValueError unless there is one sensitivity, finite and > 0, for each.
    """
    deltas = _positive("sensitivities", sensitivities)
    stacked = _stacked(log_e)
    if len(deltas) != len(stacked):
        raise ValueError(f"there are {len(deltas)} sensitivities for {len(stacked)} arrays of log e-values")
    return _log_average(stacked), max(deltas)


def average_after(parts: Sequence[PrivateLogE]) -> tuple[FloatArray, float]:
    """K private e-values about the same people -> (log of their average, what all of them cost together).

    The average is an e-value, not a canonical one: use 1/α or e-BH, no calibrated threshold.
    """
    average = _log_average(_stacked([part.log_e for part in parts]))
    return average, composed_mu([part.mu for part in parts])


def product_mu(sensitivities: Sequence[float], mus: Sequence[float]) -> float:
    """μ_prod of publishing nothing but the product over disjoint data sets with these Δ_k and μ_k."""
    deltas, costs = _positive("sensitivities", sensitivities), _positive("mus", mus)
    if len(deltas) != len(costs):
        raise ValueError(f"there are {len(deltas)} sensitivities and {len(costs)} mus, expected one of each")
    return max(deltas) / math.hypot(*(delta / mu for delta, mu in zip(deltas, costs, strict=True)))


def product_of_disjoint(parts: Sequence[PrivateLogE]) -> PrivateLogE:
    """Private e-values from independent data sets that share no person -> their product, elementwise.

    Its mu is what publishing the product costs if no factor is published. Its scale is √(Σ s_k²), which is what a
    rule for it has to be made with. It counts as selected if a factor does. Raises ValueError for no parts or parts
    of different shape.
    """
    total = _stacked([part.log_e for part in parts]).sum(axis=0)
    deltas, costs = [part.sensitivity for part in parts], [part.mu for part in parts]
    return PrivateLogE(total, max(deltas), product_mu(deltas, costs), any(part.selected for part in parts))


def _log_average(stacked: FloatArray) -> FloatArray:
    return np.asarray(logsumexp(stacked, axis=0) - math.log(len(stacked)))


def _stacked(log_e: Sequence[FloatArray]) -> FloatArray:
    arrays = [checked_log_e(part) for part in log_e]
    if not arrays:
        raise ValueError("there are no e-values to aggregate")
    if len({array.shape for array in arrays}) > 1:
        raise ValueError("log e-values have different shapes: the same hypotheses in the same order are needed")
    return np.stack(arrays)


def _positive(name: str, values: Sequence[float]) -> list[float]:
    if not values:
        raise ValueError(f"{name} is empty, expected one number for each statistic")
    if not all(0 < value < math.inf for value in values):
        raise ValueError(f"{name} has an entry that is not finite and > 0")
    return list(values)
