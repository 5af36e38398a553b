"""cosh(λz) e^{−λ²/2}: the difference of two means over a *public* standard error.

    z = (mean of cases − mean of controls) / (σ √(1/n1 + 1/n0)),    values clipped to public bounds [a, b].

**Null.** The n records are independent and their clipped values have one mean; their laws may differ. Not the
permutation null: among all choices of the cases of a *fixed* pool the variance of z can be n / (n − 1), above 1
(two records 0 and 1 are enough for E[E] > 1). Where only exchangeability is assumed take `TiltedPermutation`.

**Why it is an e-value.** σ is a sub-Gaussian proxy: E exp(θ (x − mean)) ≤ exp(θ² σ² / 2) for every record and θ. Then
E exp(±λz) ≤ e^{λ²/2} for every n, and so E[cosh(λz)] e^{−λ²/2} ≤ 1. Which σ:

- (b − a) / 2 is a proxy of any law on [a, b] (Hoeffding 1963), so nothing is assumed: the default of `designed`.
- √½ is a proxy of Binomial(2, p) at every p (two Bernoulli variables with proxy ½ each): genotypes in Hardy-Weinberg
  equilibrium, bounds 0 and 2.
- A standard deviation is one only where the law is known to be that tame. That of a rare variant, √(2p(1 − p)), is none
  (skewed laws need more than their variance), nor is an estimate from the private rows, nor one from public rows unless
  it is raised to a proxy: with it, E is an e-value in the limit of normal z only.

**Sensitivity.** A replaced record moves the mean of its group by at most (b − a) / n_g, and log cosh has slope below 1:

    Δ = λ ((b − a) / σ) √( max(n1, n0) / (n · min(n1, n0)) ),    balanced λ (b − a) / (σ √n),

approached as |z| grows. For the bounded proxy, balanced, it is 2λ/√n in any range; for dosages with σ² = 2p(1 − p) it
is λ √(2 / (n p (1 − p))).
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
from synth_platform.discovery.statistics.design import least_detectable, log_passing_threshold, require_value_mu
from synth_platform.discovery.statistics.log_sums import log_average
from synth_platform.discovery.statistics.protocol import BoolArray, FloatArray
from synth_platform.discovery.statistics.two_groups import column_blocks, require_case, require_groups


@dataclass(frozen=True)
class ZScore:
    """log cosh(λz) − λ²/2, λ = tilt > 0, two-sided; values clipped to [lower, upper], spread = σ, a sub-Gaussian proxy.

    Raises ValueError for an empty group, bounds that are not finite and in order, λ <= 0, or a spread that is not in
    (0, (upper − lower) / 2].
    """

    n_case: int
    n_control: int
    tilt: float
    lower: float
    upper: float
    spread: float

    def __post_init__(self) -> None:
        require_groups(self.n_case, self.n_control)
        require_bounds(self.lower, self.upper)
        require_positive("tilt", self.tilt)
        require_spread(self.spread, self.lower, self.upper)

    @classmethod
    def designed(
        cls,
        n_case: int,
        n_control: int,
        *,
        lower: float,
        upper: float,
        spread: float | None = None,
        features: int,
        size: int,
        alpha: float,
        value_mu: float,
    ) -> ZScore:
        """The λ that passes e-BH most often when `size` of `features` are released with value_mu each, see `design`.

        spread None is (upper − lower) / 2, the proxy that assumes nothing. All constants public.
        """
        require_value_mu(value_mu)
        proxy = (upper - lower) / 2 if spread is None else spread
        unit = cls(n_case, n_control, 1.0, lower, upper, proxy).sensitivity
        tilt = least_detectable(
            lambda t: t**2 / 2,
            lambda t: t * unit,
            variance=1.0,
            log_threshold=log_passing_threshold(features=features, size=size, alpha=alpha, two_sided=True),
            value_mu=value_mu,
        )
        return cls(n_case, n_control, tilt, lower, upper, proxy)

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        return "z_score"

    @property
    def sensitivity(self) -> float:
        """Δ = λ (b − a) / (min(n1, n0) · standard error), approached as |z| grows."""
        smaller = min(self.n_case, self.n_control)
        return self.tilt * (self.upper - self.lower) / (smaller * self._standard_error)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Public constants by name."""
        return asdict(self)

    @property
    def _standard_error(self) -> float:
        return self.spread * math.sqrt(1 / self.n_case + 1 / self.n_control)

    def log_e(self, values: FloatArray, case: BoolArray) -> FloatArray:
        """values [n, m], finite, one column per hypothesis; case [n] -> [m] log e-values.

        Raises ValueError for other group sizes than the registered ones, or a value that is no finite number.
        """
        require_rows(values, self.n_case + self.n_control)
        require_case(case, self.n_case, self.n_control)
        difference = np.empty(values.shape[1])
        for block in column_blocks(values.shape[1], 8 * values.shape[0]):
            require_numbers(values[:, block])
            clipped = np.clip(values[:, block], self.lower, self.upper)
            difference[block] = clipped[case].mean(axis=0) - clipped[~case].mean(axis=0)
        exponent = self.tilt * difference / self._standard_error
        return np.asarray(log_average(exponent, -exponent) - self.tilt**2 / 2)
