"""A log-rank statistic in which one patient counts for a bounded amount: public hazard, tilted permutation.

**Why not the log-rank statistic itself.** Its score of a patient is event − Λ̂(time), with Λ̂ the pooled Nelson–Aalen
estimate of the very data. The last of n patients to die has score 1 − (1 + 1/2 + ... + 1/n): what one record does to
the statistic grows like log n, and each record enters the scores of all later ones besides.

**Here** Λ0 is a *public* cumulative hazard, a step function from a reference arm, and

    r_i = event_i − Λ0(time_i), clipped to [−C, C],   of width v = min(C, 1) + min(C, sup Λ0),

the clipped martingale residual, depends on one record alone. A feature makes groups by a public cut, z_i = [x_i > cut].
How many n1 exceed it is a fact of the private table. With w_i = exp(κ r_i),

    E = exp(κ Σ_{z_i=1} r_i) / [e_{n1}(w) / C(n, n1)],

e_k the elementary symmetric polynomial: the divisor is the mean of the numerator over all choices of n1 patients.

**Null.** The feature is independent of (time, event) jointly, so that given the pairs and n1 every choice of n1
patients is equally likely; E has mean exactly 1, **whatever Λ0**. A wrong hazard costs power and nothing else. The null
is stronger than "no effect on the hazard": a feature that has to do with who is *censored* breaks it, and so does a
confounder.

**Tilt.** κ > 0 looks for a higher hazard above the cut. Tilting by −κ is tilting the other group by κ; two-sided is the
average of both. `design` says which κ passes a threshold L most often under the noise of μ_v-GDP, whatever the hazard
ratio: √( L / [V/2 + v² / (2 μ_v²)] ), V = Var(r) n0 n1 / n the variance of Σ r under the null.

**Clip.** C = 1 keeps nearly all of the log-rank test's information, but Δ pays for the width: under much noise C = 1/2
is worth more. Without a hazard (Λ0 = 0) E counts events, as Fisher's test does: hardly less where events are rare, half
where most patients have one (benchmarks/discovery_survival.py).

**Sensitivity**, one record replaced, which may change its group and so n1. Weights lie in [a, b], W = b/a = e^{κv};
let p_j be the mean of the products of j of the other n − 1 weights. p_{j+1}/p_j lies in [a, b], and
e_k / C(n, k) = (k/n) w p_{k−1} + (1 − k/n) p_k for the record's own weight w.

- It stays in group 1: E ∝ 1 / (n1 + n0 y/w), y = p_{n1}/p_{n1−1}; the largest ratio is at y = b: (n0 W + n1)/n.
- It stays in group 0: E ∝ 1 / (n1 w + n0 y); the largest ratio is at y = a: (n1 W + n0)/n.
- It joins the k others of group 1, w becoming w': E'/E = (k w/x + n − k) / (k + 1 + (n − k − 1) y/w'), x = p_k/p_{k−1},
  y = p_{k+1}/p_k. Largest at w = w' = b, x = y = a: W (kW + n − k) / ((k + 1)W + n − k − 1), which grows with k up to
  ((n − 1)W + 1)/n. Smallest at w = w' = a, x = y = b, the inverse of the same with n − 1 − k for k.

With every n1 in 1..n − 1 possible (and E = 1 where a group is empty), all three say

    Δ = log[((n − 1) e^{κv} + 1) / n] < κv,

attained one-sided: as if groups were public and of 1 and n − 1. A two-sided average moves by at most the larger ratio
of its terms, which have the same Δ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from synth_platform.discovery.statistics.checks import require_numbers, require_positive, require_rows
from synth_platform.discovery.statistics.design import log_passing_threshold, require_value_mu
from synth_platform.discovery.statistics.elementary_symmetric import log_elementary_symmetric
from synth_platform.discovery.statistics.log_sums import log_average, log_choose
from synth_platform.discovery.statistics.protocol import BoolArray, FloatArray


@dataclass(frozen=True)
class Survival:
    """What was seen of n patients: time [n] until event or end of follow-up, event [n] which of the two.

    Raises ValueError unless both are [n], times finite and not negative, and events booleans.
    """

    time: FloatArray
    event: BoolArray

    def __post_init__(self) -> None:
        if self.time.ndim != 1 or self.time.shape != self.event.shape:
            raise ValueError("time and event must both be [n]")
        if self.event.dtype != np.bool_:
            raise ValueError("event must be an array of booleans")
        if not np.isfinite(self.time).all() or (self.time < 0).any():
            raise ValueError("time holds a negative or missing duration: set those patients aside first")


@dataclass(frozen=True)
class LogRank:
    """The e-value of `size` patients, all constants public.

    times: where Λ0 jumps, increasing, in the unit of the outcome's times; cumulative_hazard: Λ0 from each on (0 before
    the first, constant after the last). clip C > 0 bounds the residuals, from 1 on only downwards; cut makes the
    groups; tilt κ > 0.
    """

    size: int
    times: tuple[float, ...]
    cumulative_hazard: tuple[float, ...]
    clip: float
    cut: float
    tilt: float
    two_sided: bool = True

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ValueError(f"size is {self.size}: two groups need at least two patients")
        require_positive("tilt", self.tilt)
        require_positive("clip", self.clip)
        if not math.isfinite(self.cut):
            raise ValueError(f"cut is {self.cut}: it must be finite")
        if not self.times or len(self.times) != len(self.cumulative_hazard):
            raise ValueError("times and cumulative_hazard must be of one length, at least 1")
        times, hazard = np.array(self.times), np.array(self.cumulative_hazard)
        if not np.isfinite(times).all() or times[0] < 0 or (np.diff(times) <= 0).any():
            raise ValueError("times must be finite, not negative and strictly increasing")
        if not np.isfinite(hazard).all() or hazard[0] < 0 or (np.diff(hazard) < 0).any():
            raise ValueError("cumulative_hazard must be finite, not negative and must not fall")

    @classmethod
    def designed(
        cls,
        size: int,
        times: tuple[float, ...],
        cumulative_hazard: tuple[float, ...],
        clip: float,
        cut: float,
        *,
        reference: Survival,
        share_above: float,
        features: int,
        released: int,
        alpha: float,
        value_mu: float,
        two_sided: bool = True,
    ) -> LogRank:
        """The tilt that passes e-BH most often when `released` of `features` go out with value_mu each (`design`).

        reference: public patients whose residuals vary as those of the `size` private ones should; share_above: the
        planned share of patients above the cut. A wrong plan costs power only. value_mu = ∞ is no noise. Raises
        ValueError for a planning figure out of range, and a reference whose residuals are all alike.
        """
        require_value_mu(value_mu)
        if not 0 < share_above < 1:
            raise ValueError(f"share_above is {share_above}: it must lie strictly between 0 and 1")
        threshold = log_passing_threshold(features=features, size=released, alpha=alpha, two_sided=two_sided)
        unit = cls(size, times, cumulative_hazard, clip, cut, 1.0, two_sided)
        variance = size * share_above * (1 - share_above) * float(unit.residuals(reference).var())
        if not variance > 0:
            raise ValueError("reference has residuals that are all alike: plan with patients of whom some had events")
        tilt = math.sqrt(2 * threshold / (variance + (unit.width / value_mu) ** 2))
        return cls(size, times, cumulative_hazard, clip, cut, tilt, two_sided)

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        return "log_rank"

    @property
    def sensitivity(self) -> float:
        """Δ = log[((n − 1) e^{κv} + 1) / n]: attained one-sided, approached two-sided."""
        log_ratio = self.tilt * self.width
        return log_ratio + math.log1p(math.expm1(-log_ratio) / self.size)

    @property
    def width(self) -> float:
        """v: how far apart two residuals can be."""
        return min(self.clip, 1.0) + min(self.clip, self.cumulative_hazard[-1])

    @property
    def parameters(self) -> Mapping[str, object]:
        """Public constants by name."""
        lists = {"times": list(self.times), "cumulative_hazard": list(self.cumulative_hazard)}
        return {**asdict(self), **lists}

    def residuals(self, outcome: Survival) -> FloatArray:
        """[n] r_i in [−C, C], each from its own record."""
        steps = np.concatenate([[0.0], self.cumulative_hazard])
        expected = steps[np.searchsorted(self.times, outcome.time, side="right")]
        return np.asarray(np.clip(outcome.event - expected, -self.clip, self.clip))

    def log_e(self, values: FloatArray, outcome: Survival) -> FloatArray:
        """values [n, m], one feature per column -> [m] log e-values; O(n²) once and O(n m).

        e_k depends on the residuals alone: it is computed once for every k and looked up by each feature's n1.
        Raises ValueError for another number of rows, or a value that is no number.
        """
        require_rows(values, self.size)
        require_numbers(values)
        if len(outcome.time) != self.size:
            raise ValueError("outcome must have the number of patients the statistic was registered for")
        scores = self.tilt * self.residuals(outcome)
        log_mean = log_elementary_symmetric(scores, self.size) - log_choose(self.size, np.arange(self.size + 1))
        above = values > self.cut
        exceeding = above.sum(axis=0)
        total = scores @ above
        up = np.asarray(total - log_mean[exceeding])
        if not self.two_sided:
            return up
        down = scores.sum() - total - log_mean[self.size - exceeding]
        return log_average(up, down)
