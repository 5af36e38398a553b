"""Tilted permutation: the exponential tilt of a bounded sum, normalised exactly over all choices of the cases.

**Null.** Given the pooled values, every choice of the n1 cases among the n = n1 + n0 records is equally likely.

**E-value.** With x clipped to public bounds [a, b] and a public κ > 0

    E = exp(κ Σ_{case} x) / [ e_{n1}(e^{κx}) / C(n, n1) ],

e_{n1} the elementary symmetric polynomial: the mean of E over all choices is 1 exactly, whatever the values. A shift of
x cancels. Two-sided is the average of κ and −κ.

**Sensitivity.** Write y_i = e^{κ x_i} in [y_a, y_b], y_b = y_a e^w, w = κ (b − a). For one record, e_{n1}(y) = y P + Q,
where P = e_{n1−1} and Q = e_{n1} of the others; Q / P grows in each of the others (Newton's inequality) and is
n0 / n1 times their common value where they are all equal.

- A case goes from y to y' > y: log E rises by log[y' (y + Q/P) / (y (y' + Q/P))], which grows in Q/P, in y' and in 1/y.
  Largest for y = y_a, y' = y_b and all others at b: w − log[n / (n0 + n1 e^{−w})] = log[(n1 + n0 e^w) / n].
- A control: log E falls by log[(y' + Q/P) / (y + Q/P)], largest for all others at a: log[(n0 + n1 e^w) / n].

As e^w > 1 the larger group decides:

    Δ = log[1 + (max(n1, n0) / n) (e^w − 1)],    attained.

For −κ the same with a and b exchanged, and the average of two e-values keeps it (a bound then). For small w it is
w max(n1, n0) / n.

**Tilt.** κ is one public constant for all features, so its design takes a public standard deviation σ of a clipped
feature: under the null Var Σ_{case} x is about σ² n1 n0 / n, and `design` finds the κ with the least detectable effect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from synth_platform.discovery.statistics.checks import (
    require_bounds,
    require_numbers,
    require_positive,
    require_rows,
    require_spread,
)
from synth_platform.discovery.statistics.choice_moment import log_choice_moment
from synth_platform.discovery.statistics.design import least_detectable, log_passing_threshold, require_value_mu
from synth_platform.discovery.statistics.log_sums import log_average
from synth_platform.discovery.statistics.protocol import BoolArray, FloatArray
from synth_platform.discovery.statistics.two_groups import column_blocks, require_case, require_groups

LARGEST_WIDTH = 100.0
"""Of κ (b − a): beyond, one record alone decides, and Δ is as large."""


@dataclass(frozen=True)
class TiltedPermutation:
    """κ Σ_{case} x − log[e_{n1}(e^{κx}) / C(n, n1)], x clipped to [lower, upper]; one-sided it looks for larger cases.

    Raises ValueError for an empty group, bounds that are not finite and in order, κ = kappa <= 0, or κ (upper − lower)
    above LARGEST_WIDTH.
    """

    n_case: int
    n_control: int
    kappa: float
    lower: float
    upper: float
    two_sided: bool = True

    def __post_init__(self) -> None:
        require_groups(self.n_case, self.n_control)
        require_bounds(self.lower, self.upper)
        require_kappa(self.kappa, self.upper - self.lower)

    @classmethod
    def designed(
        cls,
        n_case: int,
        n_control: int,
        *,
        lower: float,
        upper: float,
        spread: float,
        features: int,
        size: int,
        alpha: float,
        value_mu: float,
        two_sided: bool = True,
    ) -> TiltedPermutation:
        """The κ that passes e-BH most often when `size` of `features` are released with value_mu each.

        spread is the public standard deviation of a clipped feature, at most (upper − lower) / 2. All constants public.
        """
        require_groups(n_case, n_control)
        require_bounds(lower, upper)
        require_spread(spread, lower, upper)
        kappa = designed_kappa(
            n_case,
            n_control,
            width=upper - lower,
            variance=spread**2,
            log_threshold=log_passing_threshold(features=features, size=size, alpha=alpha, two_sided=two_sided),
            value_mu=value_mu,
        )
        return cls(n_case, n_control, kappa, lower, upper, two_sided)

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        return "tilted_permutation"

    @property
    def sensitivity(self) -> float:
        """Δ = log[1 + (max(n1, n0) / n)(e^w − 1)], w = κ (upper − lower): attained one-sided, a bound two-sided."""
        return tilted_sensitivity(self.kappa * (self.upper - self.lower), self.n_case, self.n_control)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Public constants by name."""
        return asdict(self)

    def log_e(self, values: FloatArray, case: BoolArray) -> FloatArray:
        """values [n, m], finite, one column per hypothesis; case [n] -> [m] log e-values.

        Raises ValueError for other group sizes than the registered ones, or a value that is no finite number.
        """
        require_rows(values, self.n_case + self.n_control)
        require_case(case, self.n_case, self.n_control)
        log_e = np.empty(values.shape[1])
        for block in column_blocks(values.shape[1], 8 * values.shape[0]):
            require_numbers(values[:, block])
            log_weights = self.kappa * (np.clip(values[:, block], self.lower, self.upper) - self.lower)
            up = self._side(log_weights, case)
            if self.two_sided:
                up = log_average(up, self._side(-log_weights, case))
            log_e[block] = up
        return log_e

    def _side(self, log_weights: FloatArray, case: BoolArray) -> FloatArray:
        return np.asarray(log_weights[case].sum(axis=0) - log_choice_moment(log_weights, self.n_case))


def tilted_sensitivity(width: float, n_case: int, n_control: int) -> float:
    """Δ = log[1 + (max(n1, n0) / n)(e^width − 1)] of a tilt whose log weights lie in an interval of `width`."""
    # e^width can overflow where Δ does not
    return width + math.log1p(min(n_case, n_control) / (n_case + n_control) * math.expm1(-width))


def designed_kappa(
    n_case: int, n_control: int, *, width: float, variance: float, log_threshold: float, value_mu: float
) -> float:
    """κ with the least detectable effect for values of public `variance` in an interval of `width`, see `design`.

    At most LARGEST_WIDTH / width.
    """
    require_value_mu(value_mu)
    null = variance * n_case * n_control / (n_case + n_control)
    kappa = least_detectable(
        lambda kappa: null * kappa**2 / 2,
        lambda kappa: tilted_sensitivity(kappa * width, n_case, n_control),
        variance=null,
        log_threshold=log_threshold,
        value_mu=value_mu,
    )
    return min(kappa, LARGEST_WIDTH / width)


def require_kappa(kappa: float, width: float) -> None:
    """ValueError unless kappa > 0 and kappa · width <= LARGEST_WIDTH."""
    require_positive("kappa", kappa)
    if not kappa * width <= LARGEST_WIDTH:
        raise ValueError(f"kappa is {kappa}: times the width of the values it must not exceed {LARGEST_WIDTH:g}")
