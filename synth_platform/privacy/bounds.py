"""What a formal guarantee means for a membership attack, and what an attack says about the guarantee."""

from __future__ import annotations

import math

from scipy.special import ndtr
from scipy.stats import beta


def membership_auroc_bound(epsilon: float, delta: float) -> float:
    """Greatest AUROC of any membership test on an (ε, δ)-DP output: 1 − (1−δ)²/(1+e^ε), 8-1 §2.6.

    For a test that tells the presence of one patient with all other rows fixed; not for members and non-members drawn
    from different populations.
    """
    _check(epsilon, delta)
    return 1 - (1 - delta) ** 2 / (1 + math.exp(epsilon))


def epsilon_for_auroc(auroc: float, delta: float) -> float:
    """Greatest ε whose AUROC bound is at most `auroc`: ln((1−δ)²/(1−auroc) − 1), 8-1 §2.6.

    Raises ValueError if even ε = 0 allows more than `auroc` at this δ.
    """
    _check(0, delta)
    if not membership_auroc_bound(0, delta) <= auroc < 1:
        raise ValueError(f"auroc is {auroc}, expected a number from {membership_auroc_bound(0, delta):.6f} to below 1")
    return math.log((1 - delta) ** 2 / (1 - auroc) - 1)


def membership_auroc_bound_gaussian(mu: float) -> float:
    """The same for a μ-GDP output: Φ(μ/√2), the area under 1 − Φ(Φ⁻¹(1−x) − μ) (Dong, Roth, Su 2022).

    Much closer than the (ε, δ) bound, which keeps only one point of the Gaussian trade-off curve.
    """
    if not mu >= 0:
        raise ValueError(f"mu is {mu}, expected a number >= 0")
    return float(ndtr(mu / math.sqrt(2)))


def empirical_epsilon_lower_bound(
    *, true_positives: int, members: int, false_positives: int, non_members: int, delta: float, confidence: float = 0.95
) -> float:
    """Greatest ε that a membership attack with a fixed threshold refutes at `confidence` (0 if none).

    (ε, δ)-DP demands TPR ≤ e^ε FPR + δ and TNR ≤ e^ε FNR + δ (8-1 §2.6), so ε ≥ ln((TPR − δ)/FPR) and its mirror, at
    the pessimistic ends of two Clopper–Pearson intervals that hold together with `confidence`.

    Raises ValueError for counts outside [0, members] or [0, non_members], or an empty group.
    """
    _check(0, delta)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, expected a number in (0, 1)")
    if not (0 <= true_positives <= members and 0 <= false_positives <= non_members and members and non_members):
        raise ValueError("positives must lie between 0 and the size of a non-empty group")
    tail = (1 - confidence) / 2
    tpr = _clopper_pearson_lower(true_positives, members, tail)
    tnr = _clopper_pearson_lower(non_members - false_positives, non_members, tail)
    return math.log(max(1.0, (tpr - delta) / (1 - tnr), (tnr - delta) / (1 - tpr)))


def _clopper_pearson_lower(successes: int, trials: int, tail: float) -> float:
    return 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))


def _check(epsilon: float, delta: float) -> None:
    if not epsilon >= 0:
        raise ValueError(f"epsilon is {epsilon}, expected a number >= 0")
    if not 0 <= delta < 1:
        raise ValueError(f"delta is {delta}, expected a number in [0, 1)")
