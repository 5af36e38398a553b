"""Likelihood ratios whose every factor is bounded: floor by mixing, ceiling by clipping.

For a null density p and an alternative q, both fixed by public information, R = q(x)/p(x) has E_p[R] ≤ 1, and ∏ R(x_i)
is an e-value of n independent records. Its logarithm has no bound: one record where q/p is 0 or huge moves it at will.
Which truncation keeps the mean at or below 1:

- *From above* min(R, B): the mean only falls. Valid.
- *From below* max(R, a): E_p[max(R, a)] = E_p[R] + E_p[(a − R)₊], above 1 wherever R < a is possible and E_p[R] = 1.
  **Invalid**, and the excess multiplies over records.
- *Mixing with 1*: (1 − ε) R + ε has mean at most 1 and is at least ε. Valid: it is the ratio of (1 − ε) q + ε p to p,
  a bet that keeps the share ε of its capital at home.

So, for any ratio R ≥ 0 with E[R(x_i) | x_1..x_{i−1}] ≤ 1 under the null,

    E = ∏ g(x_i),   g = (1 − ε) min(R, B) + ε in [ε, (1 − ε) B + ε],   Δ = log[(1 − ε) B / ε + 1],

and Δ is attained by a record with R = 0 against one with R ≥ B. With ε → 0 or B → ∞ Δ is infinite: such a statistic
cannot be made. A composite null needs one p with E_{p'}[q/p] ≤ 1 for every p' in it (reverse information projection).

**Universal inference does not fit.** The split likelihood ratio (Wasserman, Ramdas, Balakrishnan 2020, PNAS 117:16880)
fits q on half of the records and the largest null likelihood on the other half. One record of the first half moves q
and with it *all* factors, so even bounded factors leave Δ of the order n; and the maximum over the null is no product.
Fit q on public rows, fix p, and use this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from synth_platform.discovery.statistics.checks import require_rows, require_size
from synth_platform.discovery.statistics.protocol import FloatArray


class UnboundedSensitivityError(ValueError):
    """One record could move the logarithm of this e-value without limit: no noise makes it private."""


@dataclass(frozen=True)
class BoundedLikelihoodRatio:
    """∏ ((1 − ε) min(R, B) + ε) over `size` records; kept ε in (0, 1), cap B > 1.

    Raises UnboundedSensitivityError for ε = 0 or B = ∞, ValueError for other constants out of range.
    """

    size: int
    kept: float
    cap: float

    def __post_init__(self) -> None:
        require_size(self.size)
        if self.kept == 0:
            raise UnboundedSensitivityError("kept is 0: one record with ratio 0 sends log E to −∞; keep a share")
        if self.cap == math.inf:
            raise UnboundedSensitivityError("cap is infinite: one record can raise log E at will; cap it")
        if not 0 < self.kept < 1:
            raise ValueError(f"kept is {self.kept}: it must lie strictly between 0 and 1")
        if not self.cap > 1:
            raise ValueError(f"cap is {self.cap}: it must be above 1, or no record can be evidence")

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        return "bounded_likelihood_ratio"

    @property
    def sensitivity(self) -> float:
        """Δ = log[(1 − ε) B / ε + 1], attained."""
        return math.log1p((1 - self.kept) * self.cap / self.kept)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Public constants by name."""
        return asdict(self)

    def log_e(self, values: FloatArray, outcome: None = None) -> FloatArray:
        """values [n, m]: log q_j(x_i) − log p_j(x_i), ±∞ allowed, one column per hypothesis -> [m] log e-values.

        Densities must not have been fitted to these records. Raises ValueError for another number of rows or a NaN.
        """
        require_rows(values, self.size)
        if np.isnan(values).any():
            raise ValueError("values holds a NaN: a log likelihood ratio of two zero densities has to be decided first")
        ratio = np.exp(np.minimum(values, math.log(self.cap)))
        return np.asarray(np.log((1 - self.kept) * ratio + self.kept).sum(axis=0))
