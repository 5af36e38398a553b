"""The canonical μ-GDP e-value: Gaussian noise on log E, with the one mean that keeps an e-value an e-value.

One record moves log E by at most Δ. With s = Δ/μ and ξ ~ N(s²/2, s²) the release

    E_DP = E · exp(−ξ),    log E_DP = log E − s²/2 − s·N(0, 1),

is μ-GDP, because log E plus Gaussian noise of scale Δ/μ is, and an e-value, because E[exp(−ξ)] = 1: E[E_DP] = E[E].
The price is s²/2 nats of expected log growth (e-power). Every entry is one release of cost μ: k entries about the same
people cost √k·μ, which is why a scan over many hypotheses selects first and releases the few.

On a computer both halves have to survive rounding. With a grid step g, which is a public power of two,

1. **Privacy.** log E is floored to steps of g. Two integers ⌊a/g⌋, ⌊b/g⌋ with |a − b| ≤ Δ + 2·ROUNDING differ by at
   most ⌈(Δ + 2·ROUNDING)/g⌉, so Δ is rounded up to a whole number of steps and discrete Gaussian noise of scale
   `sigma` = steps/μ is added in integers (docs/noise.md states how the discrete law is ρ-zCDP exactly and μ-GDP up
   to a stated δ).
2. **Validity.** A discrete Gaussian Z of scale σ ≥ 1 has P(Z ≤ k) ≤ Φ((k + 1)/σ): it is at most one step "smaller" than
   a continuous one. The shift is therefore s²/2, rounded up, plus one step, plus ROUNDING; and given E the release is
   stochastically at most E·exp(−ξ). So E[E_DP] ≤ E[E], and every threshold proved for Gaussian noise holds as it is.

ROUNDING is what is granted to float64: the distance of a computed log E from the real number, the rounding of the
released value included. It costs 6e-8 nats of log growth and 1.2e-7 of sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from synth_platform.privacy.mechanisms import granularity
from synth_platform.privacy.noise import NoiseSource
from synth_platform.privacy.queries import ROUNDING, grid_sensitivity_steps

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LARGEST_SCALE = 2.0**20
LARGEST_MU = 2.0**20

_LARGEST_STEP_COUNT = 2.0**61


@dataclass(frozen=True)
class Canonical:
    """The public constants of a release of log e-values whose logarithm one record moves by at most `sensitivity`.

    sensitivity is Δ in nats, mu the cost μ of each entry; both finite and > 0.
    Raises ValueError naming the constant that is out of range.
    """

    sensitivity: float
    mu: float

    def __post_init__(self) -> None:
        if not 0 < self.sensitivity < math.inf:
            raise ValueError(
                f"sensitivity is {self.sensitivity}, expected finite and > 0: an e-value with unbounded "
                "log-sensitivity needs bounded factors before it can be private"
            )
        if not 0 < self.mu <= LARGEST_MU:
            raise ValueError(f"mu is {self.mu}, expected > 0 and at most 2^20: it is the privacy cost of each e-value")
        if not self._widened / self.mu <= LARGEST_SCALE:
            raise ValueError(
                f"sensitivity {self.sensitivity:.3g} at mu {self.mu:.3g} needs noise of more than 2^20 nats: nothing "
                "would be left, ask for fewer e-values at a larger mu"
            )

    @property
    def _widened(self) -> float:
        return self.sensitivity + 2 * ROUNDING

    @cached_property
    def granularity(self) -> float:
        """The grid step g in nats: a power of two, below 2^-30 of the sensitivity unless mu < 2^-9."""
        return granularity(self._widened, self._widened / self.mu)

    @cached_property
    def sensitivity_steps(self) -> int:
        """Δ in grid steps, rounded up; one step more covers the rounding of this very computation."""
        return grid_sensitivity_steps(self.sensitivity, self.granularity)

    @property
    def noised_sensitivity(self) -> float:
        """The sensitivity Δ' ≥ Δ that the noise is scaled to, in nats."""
        return self.sensitivity_steps * self.granularity

    @property
    def sigma(self) -> float:
        """Scale of the discrete Gaussian noise in grid steps."""
        return self.sensitivity_steps / self.mu

    @property
    def scale(self) -> float:
        """The s = Δ'/μ of the release in nats: what thresholds ask for."""
        return self.noised_sensitivity / self.mu

    @cached_property
    def shift_steps(self) -> int:
        """What is subtracted from every entry in grid steps: s²/2 rounded up, and the slack for grid and rounding."""
        half_square = self.scale * self.sigma / 2
        return math.ceil(half_square * (1 + 2.0**-50)) + 1 + math.ceil(ROUNDING / self.granularity)

    @property
    def shift(self) -> float:
        """What is subtracted from every entry in nats: the e-power that privacy costs, s²/2 up to the slack."""
        return self.shift_steps * self.granularity

    def quantised(self, log_e: ArrayLike) -> IntArray:
        """log e-values of any shape -> grid steps, rounded down; one record moves an entry by ≤ `sensitivity_steps`.

        Raises ValueError for a NaN or an infinity, and for an entry no statistic of this sensitivity can reach: one
        record moves log E by at most Δ and some data set has log E ≤ 0, so 2^30·Δ would take 2^30 records.
        """
        log_e = checked_log_e(log_e)
        if np.abs(log_e).max(initial=0.0) > _LARGEST_STEP_COUNT * self.granularity:
            raise ValueError(
                f"log_e is larger than a statistic of sensitivity {self.sensitivity:.3g} can be: check the sensitivity"
            )
        return np.asarray(np.floor(log_e / self.granularity), dtype=np.int64)

    def released(self, noisy_steps: IntArray) -> FloatArray:
        """Noisy grid steps -> log e-values in nats; post-processing."""
        return np.asarray((noisy_steps - self.shift_steps) * self.granularity, dtype=np.float64)


def privatise(log_e: ArrayLike, sensitivity: float, mu: float, noise: NoiseSource) -> FloatArray:
    """Log e-values of any shape (scalar, [m], ...) -> private log e-values of that shape, in nats.

    sensitivity is Δ = sup |log E(D) − log E(D')| of each entry. Every entry is one release of cost mu: all of [m] about
    the same people cost √m·mu. Given log_e, each is stochastically at most log_e − ξ, ξ ~ N(s²/2, s²), where s is
    `Canonical(sensitivity, mu).scale`.

    Raises ValueError naming log_e, sensitivity or mu, whichever is out of range.
    """
    canonical = Canonical(sensitivity, mu)
    steps = canonical.quantised(log_e)
    return canonical.released(steps - noise.discrete_gaussian(canonical.sigma, steps.size).reshape(steps.shape))


@dataclass(frozen=True, eq=False)
class PrivateLogE:
    """Private log e-values, and what one has to know to judge them.

    log_e: released log e-values of any shape. sensitivity: what the noise was scaled to, `noised_sensitivity`. mu: cost
    of each entry. selected: whether data had a say in which hypotheses, or how many, are here.
    """

    log_e: FloatArray
    sensitivity: float
    mu: float
    selected: bool

    def __post_init__(self) -> None:
        checked_log_e(self.log_e)
        for name, value in (("sensitivity", self.sensitivity), ("mu", self.mu)):
            if not 0 < value < math.inf:
                raise ValueError(f"{name} is {value}, expected finite and > 0")

    @classmethod
    def of(cls, canonical: Canonical, log_e: FloatArray, *, selected: bool) -> PrivateLogE:
        """What `canonical` released."""
        return cls(log_e, canonical.noised_sensitivity, canonical.mu, selected)

    @property
    def scale(self) -> float:
        """s, the standard deviation of the noise in nats."""
        return self.sensitivity / self.mu


def log_of(e_values: ArrayLike) -> FloatArray:
    """log of e-values of any shape, each finite and > 0.

    Raises ValueError that says which of these fails. At zero the log-sensitivity is infinite, and no noise hides it.
    """
    e = np.asarray(e_values, dtype=np.float64)
    if np.isnan(e).any():
        raise ValueError("e_values has a NaN: an e-value is a number > 0")
    if (e < 0).any():
        raise ValueError("e_values has a negative entry: an e-value is a number > 0 (are these log e-values?)")
    if (e == 0).any():
        raise ValueError(
            "e_values has a zero, where the log-sensitivity is infinite: mix it with the constant 1, "
            "(1 − w) + w·E, or compute log E directly if it underflowed"
        )
    if np.isinf(e).any():
        raise ValueError("e_values has an infinity: compute log E directly, it has overflowed")
    return np.asarray(np.log(e))


def checked_log_e(log_e: ArrayLike) -> FloatArray:
    """log_e as float64. Raises ValueError for a NaN or an infinity."""
    log_e = np.asarray(log_e, dtype=np.float64)
    if np.isnan(log_e).any():
        raise ValueError("log_e has a NaN: every hypothesis needs a finite log e-value (0 says nothing either way)")
    if np.isneginf(log_e).any():
        raise ValueError("log_e has −infinity: an e-value of zero has infinite log-sensitivity")
    if np.isposinf(log_e).any():
        raise ValueError("log_e has +infinity: every hypothesis needs a finite log e-value")
    return log_e
