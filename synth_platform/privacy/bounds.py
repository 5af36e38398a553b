"""What a formal guarantee means for a membership attack."""

from __future__ import annotations

import math

from scipy.special import ndtr


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


def _check(epsilon: float, delta: float) -> None:
    if not epsilon >= 0:
        raise ValueError(f"epsilon is {epsilon}, expected a number >= 0")
    if not 0 <= delta < 1:
        raise ValueError(f"delta is {delta}, expected a number in [0, 1)")
