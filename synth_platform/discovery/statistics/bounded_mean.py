"""The mean of bounded records against a public m0: fixed-λ betting and Hoeffding's exponential.

**Null.** E[x_i | x_1..x_{i−1}] ≤ m0 for every record (= m0 where the test is two-sided): independent records of mean m0
are the usual case. What follows multiplies n factors of conditional mean at most 1, so its mean is at most 1.

**Betting**, x in [0, 1]:   E = ∏ (1 + λ (x_i − m0)),   0 < λ < 1/m0.
Each factor is linear in x, so its mean is 1 + λ (mean − m0) ≤ 1, whatever the law. It is between 1 − λ m0 and
1 + λ (1 − m0), and replacing a 0 by a 1 takes it from end to end:

    Δ = log[(1 + λ (1 − m0)) / (1 − λ m0)],   attained.

**Hoeffding**, x in [m0 − C, m0 + C]:   E = exp(λ Σ (x_i − m0) − n λ² C² / 2),   Δ = 2 λ C, attained.
Hoeffding's lemma (1963, JASA 58:13) bounds the moment of a variable in an interval of width 2C by exp(λ² C² / 2). The
records have to lie in the interval *by themselves*. Clipping wider ones to it moves their mean: a skewed law with mean
m0 can have a clipped mean above m0, and E is then no e-value. Clipped values may be given where the law is symmetric
about m0 under the null (a paired difference whose signs are exchangeable), since clipping is odd about m0; or where the
hypothesis is about the clipped mean. As Δ is only proven inside the interval, values outside are an error, not clipped.

**Two-sided** is the average of the tests with λ and −λ. Replacing one record multiplies either term by a ratio within
the bounds of its own side, and the average by one between the two: Δ is the larger of the two sides' bounds. It is
approached as n grows and one side outweighs the other, not attained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from synth_platform.discovery.statistics.checks import require_numbers, require_positive, require_rows, require_size
from synth_platform.discovery.statistics.log_sums import log_average
from synth_platform.discovery.statistics.protocol import FloatArray


@dataclass(frozen=True)
class Betting:
    """∏ (1 + λ (x − m0)) of `size` records in [0, 1]; null_mean m0 in (0, 1), stake λ.

    Raises ValueError unless 0 < λ < 1/m0, and λ < 1/(1 − m0) as well where two-sided: beyond, a bet can lose everything
    and Δ is infinite.
    """

    size: int
    null_mean: float
    stake: float
    two_sided: bool = True

    def __post_init__(self) -> None:
        require_size(self.size)
        if not 0 < self.null_mean < 1:
            raise ValueError(f"null_mean is {self.null_mean}: it must lie strictly between 0 and 1")
        require_positive("stake", self.stake)
        most = 1 / max(self.null_mean, 1 - self.null_mean) if self.two_sided else 1 / self.null_mean
        if not self.stake < most:
            raise ValueError(f"stake is {self.stake}: from {most:.6g} on one record can lose everything; bet less")

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        return "betting"

    @property
    def sensitivity(self) -> float:
        """Δ: attained one-sided, approached two-sided."""
        up = math.log1p(self.stake * (1 - self.null_mean)) - math.log1p(-self.stake * self.null_mean)
        if not self.two_sided:
            return up
        return max(up, math.log1p(self.stake * self.null_mean) - math.log1p(-self.stake * (1 - self.null_mean)))

    @property
    def parameters(self) -> Mapping[str, object]:
        """Public constants by name."""
        return asdict(self)

    def log_e(self, values: FloatArray, outcome: None = None) -> FloatArray:
        """values [n, m] in [0, 1], one column per hypothesis -> [m] log e-values; there is no outcome.

        Raises ValueError for another number of rows, or a value outside [0, 1].
        """
        require_rows(values, self.size)
        require_numbers(values)
        if (values < 0).any() or (values > 1).any():
            raise ValueError("values leave [0, 1]: rescale them by public constants that bound them")
        gain = self.stake * (values - self.null_mean)
        up = np.log1p(gain).sum(axis=0)
        return log_average(up, np.log1p(-gain).sum(axis=0)) if self.two_sided else up


@dataclass(frozen=True)
class Hoeffding:
    """exp(λ Σ(x − m0) − n λ²C²/2) of `size` records in [m0 − C, m0 + C]; null_mean m0, bound C > 0, tilt λ > 0."""

    size: int
    null_mean: float
    bound: float
    tilt: float
    two_sided: bool = True

    def __post_init__(self) -> None:
        require_size(self.size)
        if not math.isfinite(self.null_mean):
            raise ValueError(f"null_mean is {self.null_mean}: it must be finite")
        require_positive("bound", self.bound)
        require_positive("tilt", self.tilt)

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        return "hoeffding"

    @property
    def sensitivity(self) -> float:
        """Δ = 2λC: attained one-sided, approached two-sided."""
        return 2 * self.tilt * self.bound

    @property
    def parameters(self) -> Mapping[str, object]:
        """Public constants by name."""
        return asdict(self)

    def log_e(self, values: FloatArray, outcome: None = None) -> FloatArray:
        """values [n, m] in [m0 − C, m0 + C], one column per hypothesis -> [m] log e-values; there is no outcome.

        Raises ValueError for another number of rows, or a value outside the interval.
        """
        require_rows(values, self.size)
        require_numbers(values)
        if (values < self.null_mean - self.bound).any() or (values > self.null_mean + self.bound).any():
            raise ValueError("values leave null_mean ± bound: raise bound, or see what clipping does to the null")
        excess = self.tilt * (values - self.null_mean).sum(axis=0)
        up = log_average(excess, -excess) if self.two_sided else excess
        return np.asarray(up - self.size * (self.tilt * self.bound) ** 2 / 2)
