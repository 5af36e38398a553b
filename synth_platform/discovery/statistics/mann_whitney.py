"""Mann-Whitney: which of two groups has the larger values, by rank alone. The default for two-group omics.

**Null.** Given the pooled values, every choice of the n1 cases among the n = n1 + n0 records is equally likely.

**E-value.** U counts case/control pairs in which the case is larger, ties 1/2. For any public t ≠ 0

    E = exp(tU) / M(t),    M(t) = ∏_{i=1..n1} (e^{t(n0+i)} − 1) / (e^{ti} − 1) / C(n, n1).

M is the moment generating function of U under the null without ties (the Gaussian binomial coefficient at q = e^t over
the number of choices), and as U without ties is symmetric about n1 n0 / 2, M(−t) = M(t) e^{−t n1 n0}. With ties,
midranks make U the mean of the counts over all ways to break them, so E[exp(tU)] ≤ M(t) by Jensen's inequality.

**Two-sided** is the average of t and −t. With V = U − n1 n0 / 2 and ψ(t) = log M(t) − t n1 n0 / 2, its logarithm is
log cosh(tV) − ψ(t).

**Sensitivity.** A replaced case is compared with n0 controls, each comparison in [0, 1]: U moves by at most n0.
A replaced control is compared with n1 cases. M does not depend on the values. So

    Δ = |t| max(n1, n0),

attained by a record of the smaller group that goes from below all records of the other to above. Two-sided: the slope
of log cosh(tV) lies in [−|t|, |t|], so Δ is a bound as well. The supremum, log cosh(th) − log cosh(t max(0, h − d)) for
h = n1 n0 / 2 and d = max(n1, n0), differs from Δ by e^{−2|t|(h − d)} at most: by nothing where there is power.

**Tilt.** Between Δ ∝ t and growth, see `design`: in the normal approximation ψ(t) = t² n1 n0 (n + 1) / 24 and

    t* = √( L / [n1 n0 (n + 1) / 24 + max(n1, n0)² / (2 μ_v²)] ).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import rankdata

from synth_platform.discovery.statistics.checks import require_numbers, require_rows
from synth_platform.discovery.statistics.design import least_detectable, log_passing_threshold, require_value_mu
from synth_platform.discovery.statistics.log_sums import log_average, log_choose
from synth_platform.discovery.statistics.protocol import BoolArray, FloatArray
from synth_platform.discovery.statistics.two_groups import column_blocks, require_case, require_groups


@dataclass(frozen=True)
class MannWhitney:
    """tU − log M(t) of n_case cases against n_control controls; t = tilt > 0 looks for larger cases, < 0 for smaller.

    Two-sided, the sign of the tilt does not matter. Raises ValueError for an empty group or a tilt of 0 or not finite.
    """

    n_case: int
    n_control: int
    tilt: float
    two_sided: bool = True

    def __post_init__(self) -> None:
        require_groups(self.n_case, self.n_control)
        if not math.isfinite(self.tilt * self.n_case * self.n_control) or self.tilt == 0:
            raise ValueError(f"tilt is {self.tilt}: it must be finite and other than 0, about 1 / sqrt(n^3)")

    @classmethod
    def designed(
        cls,
        n_case: int,
        n_control: int,
        *,
        features: int,
        size: int,
        alpha: float,
        value_mu: float,
        two_sided: bool = True,
    ) -> MannWhitney:
        """The tilt that passes e-BH most often when `size` of `features` are released with value_mu each.

        value_mu is the μ of one released value: √(share / size) · μ if they get `share` of μ². It is the best
        tilt for every AUC at once, see `design`. Public constants alone enter.
        """
        require_groups(n_case, n_control)
        require_value_mu(value_mu)
        half = n_case * n_control / 2
        tilt = least_detectable(
            lambda t: log_moment(t, n_case, n_control) - t * half,
            lambda t: t * max(n_case, n_control),
            variance=half * (n_case + n_control + 1) / 6,
            log_threshold=log_passing_threshold(features=features, size=size, alpha=alpha, two_sided=two_sided),
            value_mu=value_mu,
        )
        return cls(n_case, n_control, tilt, two_sided)

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        return "mann_whitney"

    @property
    def sensitivity(self) -> float:
        """Δ = |t| max(n1, n0): attained one-sided, approached two-sided."""
        return abs(self.tilt) * max(self.n_case, self.n_control)

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
        centred = self.tilt * (self._counts(values, case) - self.n_case * self.n_control / 2)
        up = log_average(centred, -centred) if self.two_sided else centred
        moment = log_moment(self.tilt, self.n_case, self.n_control)
        return np.asarray(up - (moment - self.tilt * self.n_case * self.n_control / 2))

    def _counts(self, values: FloatArray, case: BoolArray) -> FloatArray:
        """U of each column: multiples of 1/2, exact in float64."""
        counts = np.empty(values.shape[1])
        for block in column_blocks(values.shape[1], 8 * values.shape[0]):
            require_numbers(values[:, block])
            counts[block] = rankdata(values[:, block], axis=0)[case].sum(axis=0)
        return counts - self.n_case * (self.n_case + 1) / 2


def log_moment(tilt: float, n_case: int, n_control: int) -> float:
    """log M(tilt) = log E[exp(tilt · U)] of the count under exchangeability without ties; any finite tilt."""
    if tilt == 0:
        return 0.0
    if tilt < 0:
        return log_moment(-tilt, n_case, n_control) + tilt * n_case * n_control
    i = np.arange(1, n_case + 1, dtype=np.float64)
    choices = log_choose(n_case + n_control, n_case)
    return float((_log_expm1(tilt * (n_control + i)) - _log_expm1(tilt * i)).sum() - choices)


def _log_expm1(x: FloatArray) -> FloatArray:
    """log(e^x − 1) for x > 0 without overflow."""
    return np.asarray(x + np.log(-np.expm1(-x)))
