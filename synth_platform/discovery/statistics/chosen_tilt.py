"""A tilt that was chosen after looking at the data: what it has to pay to stay an e-value.

How many hypotheses are worth selecting is told by the data, privately, and the best tilt depends on it. But E_t with a
t that depends on the data is no e-value: a choice that knows S may take the t that suits it. It is one once it is
divided by the price of the best choice there is. For a family of tilts E_t = exp(tS − ψ(t)), ψ the log moment of S
under the null, E_b = E_a + ∫_a^b ∂E_t/∂t dt, so

    sup_{t in [a, b]} E_t ≤ E_a + ∫_a^b (∂E_t/∂t)₊ dt,    E[(∂E_t/∂t)₊] = ½ E[E_t |S − ψ'(t)|] ≤ ½ √ψ''(t),

because E[∂E_t/∂t] = 0, and E_t weighs the null into a law under which S has mean ψ'(t) and variance ψ''(t). Therefore

    E[sup E_t] ≤ 1 + ½ ∫_a^b √ψ''(t) dt,

whatever chooses, and E_t over the right-hand side is an e-value. An average of two families, such as t and −t, has a
supremum no larger than the average of theirs. The sensitivity is that of the tilt that is used.

**Mann-Whitney.** Centred, ψ(t) = Σ_i log[sinh(t(n0+i)/2) / sinh(ti/2)] + constant, and with g(v) = v / sinh²(√v)

    ψ''(t) = Σ_{i=1..n1} [g((ti/2)²) − g((t(n0+i)/2)²)] / t².

√v / sinh √v = ∏_k 1 / (1 + v/(kπ)²) is completely monotone, so its square g is convex with slope −1/3 at 0, and ψ'' is
largest at 0: ψ''(t) ≤ ψ''(0) = n1 n0 (n + 1) / 12. With ties the e-value is one of the mean of S over all ways to break
them, and sup_t exp(tS − ψ(t)) is convex in S: Jensen's inequality carries the bound over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from synth_platform.discovery.statistics.mann_whitney import MannWhitney
from synth_platform.discovery.statistics.protocol import BoolArray, FloatArray


@dataclass(frozen=True)
class ChosenTilt:
    """A Mann-Whitney e-value whose tilt was chosen from [lowest, highest] with knowledge of the data.

    Raises ValueError unless 0 < lowest <= |tilt| <= highest.
    """

    statistic: MannWhitney
    lowest: float
    highest: float

    def __post_init__(self) -> None:
        if not 0 < self.lowest <= abs(self.statistic.tilt) <= self.highest < math.inf:
            raise ValueError("lowest, highest: the tilts to choose from must be > 0 and hold the one that is used")

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        return "mann_whitney_chosen_tilt"

    @property
    def log_price(self) -> float:
        """log(1 + ½ (highest − lowest) √ψ''(0)), nats."""
        n1, n0 = self.statistic.n_case, self.statistic.n_control
        return math.log1p((self.highest - self.lowest) * math.sqrt(n1 * n0 * (n1 + n0 + 1) / 12) / 2)

    @property
    def sensitivity(self) -> float:
        """That of the tilt that is used: the price is public."""
        return self.statistic.sensitivity

    @property
    def parameters(self) -> Mapping[str, object]:
        """Public constants by name."""
        return {**self.statistic.parameters, "lowest": self.lowest, "highest": self.highest}

    def log_e(self, values: FloatArray, case: BoolArray) -> FloatArray:
        """values [n, m], case [n] -> [m]; raises as `MannWhitney.log_e` does."""
        return np.asarray(self.statistic.log_e(values, case) - self.log_price)
