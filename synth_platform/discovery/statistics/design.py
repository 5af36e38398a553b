"""The public tilt of a two-group e-value that must pass a threshold under noise: where the detectable effect is least.

An e-value here is log E = t S − ψ(t), S a centred statistic and ψ its log moment under the null. Released with a value
budget μ_v it becomes log E − ξ, ξ ~ N(s²/2, s²), s = Δ(t) / μ_v, and is a discovery among `size` of m when it reaches

    L = log(m / (α · size)),   + log 2 if two-sided (the average of t and −t).

An effect A (the mean of S under the alternative) brings the mean of the released log e-value up to L when

    A ≥ A(t) = [ψ(t) + s(t)²/2 + L] / t,    and    t* = argmin A(t)

needs no guess of the effect. With ψ = B t² and Δ = D t it is t* = √(L / C), C = B + D²/(2 μ_v²), and A(t*) = 2 √(C L).
Both terms of the released standard deviation, t √(Var S + D²/μ_v²), are proportional to t as well, so that

    P(pass) = Φ( (A − A(t)) / √(Var S + D²/μ_v²) ):   t* passes most often *whatever* A is.

The growth-optimal tilt A / (2C), which maximises E[log E − ξ], needs A, and equals t* just at the least detectable
effect A = A(t*); for a stronger one it is larger, grows faster than needed, and loses power. The non-private tilt
A / (2B) ignores what the noise costs. Selection by a one-sided e-value does not depend on t at all: its noise is
proportional to Δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import minimize_scalar

from synth_platform.discovery.statistics.checks import require_positive


def least_detectable(
    log_moment: Callable[[float], float],
    sensitivity: Callable[[float], float],
    *,
    variance: float,
    log_threshold: float,
    value_mu: float,
) -> float:
    """argmin over t > 0 of [log_moment(t) + (sensitivity(t) / value_mu)² / 2 + log_threshold] / t.

    log_moment is convex with log_moment(0) = 0 and about variance · t²/2 near 0; sensitivity is convex and 0 at 0: the
    ratio then has one minimum. value_mu is the μ of one released value, math.inf for no noise.
    """

    def effect(log_t: float) -> float:
        t = math.exp(log_t)
        return (log_moment(t) + (sensitivity(t) / value_mu) ** 2 / 2 + log_threshold) / t

    small = 1e-6 / math.sqrt(variance)  # where both are still powers of t
    curvature = variance / 2 + (sensitivity(small) / small / value_mu) ** 2 / 2
    guess = math.log(log_threshold / curvature) / 2
    # ψ grows at least like its quadratic or ends linear; a decade on either side of √(L/C) is far more than it moves.
    found = minimize_scalar(effect, bounds=(guess - 3, guess + 3), method="bounded", options={"xatol": 1e-6})
    return math.exp(float(found.x))


def log_passing_threshold(*, features: int, size: int, alpha: float, two_sided: bool) -> float:
    """L: what the log e-value of one side has to reach if `size` of `features` hypotheses are to be rejected by e-BH.

    Raises ValueError unless 1 <= size <= features and alpha is in (0, 1).
    """
    if not 1 <= size <= features:
        raise ValueError(f"size is {size}: between 1 and features = {features} hypotheses can be released")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}: the false discovery rate must lie strictly between 0 and 1")
    return math.log(features / (alpha * size)) + (math.log(2) if two_sided else 0.0)


def require_value_mu(value_mu: float) -> None:
    """ValueError unless value_mu > 0; infinite is no noise."""
    if value_mu != math.inf:
        require_positive("value_mu", value_mu)
