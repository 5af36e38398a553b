"""Thresholds that know the noise: when does a private e-value reject, if not only at Markov's 1/α?

A private e-value is E·exp(−ξ), ξ ~ N(s²/2, s²), and the law of ξ is public. Given E = x it reaches c with probability

    F_c(x) = Φ((log(x/c) − s²/2)/s),

so the worst rejection rate over all nulls E[E] ≤ 1 is the concave envelope of F_c at 1, R(c) = sup_{x ≥ 1}
F_c(x)/x. The line from the origin touches F_c where u = (log(x/c) − s²/2)/s solves φ(u)/Φ(u) = s. With that u_s and
K(s) = φ(u_s + s)/s,

    R(c) = K(s)/c                 if c ≥ K(s)/Φ(u_s)    (worst null: E = x with probability 1/x, else almost 0),
    R(c) = Φ(−(log c + s²/2)/s)   otherwise             (worst null: E ≡ 1),

and c*, the solution of R(c) = α, is K(s)/α if Φ(u_s) ≥ α and exp(−s²/2 − s·Φ⁻¹(α)) otherwise. K(s) < 1, so c* < 1/α.

**Two rules, for two situations.**

- `FixedRule(alpha, s)`: one hypothesis, and a level fixed before any evidence was seen. It rejects at c*, and
  P(reject) ≤ alpha whatever the null. `log_p_value` is R(E_DP), its p-value, for the same situation.
- `rejects_pointwise`: for e-values that a selection has picked, or a level that data chose. It rejects at K/alpha,
  and P(reject | E) ≤ alpha·E for *every* E. So E[1{reject}/alpha] ≤ 1 holds for each null even if alpha depends on
  the data and on which and how many were selected, as long as it does not depend on the noise of the value itself.
  If k out of m are selected, rejecting those with E_DP ≥ K·m/(alpha·k) makes E[false rejections/k] ≤ alpha. It does
  *not* turn a best-of-m into one test: at level alpha for each, as with any test, up to m·alpha false ones are to
  be expected.

Where c* = K/alpha both are the same. Below, at E ≡ 1, c* rejects E < 1 more often than alpha·E: a level that looked
at E can exploit it, so a `FixedRule` refuses e-values that were selected.

**Gains over the non-private test are randomisation.** At small s the private test can reject more often than E ≥
1/α without noise. Privacy has not made evidence: the rule E ≥ 1/α is wasteful, it never rejects on E slightly below
1/α, and noise does so with some probability. Whoever holds E could toss a coin and reject with probability min(1,
α·E), without any privacy; that is at least as powerful as every rule with P(reject | E) ≤ α·E, this one included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtri

from synth_platform.discovery.canonical import FloatArray, PrivateLogE

_LOG_ROOT_TWO_PI = math.log(2 * math.pi) / 2
_SMALLEST_S, _LARGEST_S = 1e-12, 1e7


class SelectedAfterwardsError(ValueError):
    """A rule for a hypothesis fixed beforehand was asked about e-values that a selection has picked."""

    def __init__(self) -> None:
        super().__init__(
            "these e-values came out of a selection, and c* and its p-value hold only for a hypothesis and a level "
            "fixed beforehand: use rejects_pointwise, at alpha/m for the best of m, or e-BH over all hypotheses"
        )


def calibration_constant(s: float) -> float:
    """K(s) in (0, 1): K/α is the smallest threshold with P(E_DP ≥ K/α | E) ≤ α·E for every E.

    s = Δ/μ, the noise scale in nats, between 1e-12 and 1e7. K falls from 1 (no noise) to 1/(s·√(2π)) at large s.
    """
    return math.exp(log_calibration_constant(s))


def log_calibration_constant(s: float) -> float:
    """log K(s)."""
    return -(_tangent(s) ** 2) / 2 - _LOG_ROOT_TWO_PI - math.log(s)


def calibrated_threshold(alpha: float, s: float) -> float:
    """c*: the smallest c with P(E_DP ≥ c) ≤ alpha for every null; for one hypothesis and a level fixed beforehand.

    Raises ValueError for alpha outside (0, 1), for s outside [1e-12, 1e7], and where c* leaves float64.
    """
    log_c = log_calibrated_threshold(alpha, s)
    if not -700 < log_c < 709:
        raise ValueError(f"c* is exp({log_c:.6g}), beyond float64: use log_calibrated_threshold")
    return math.exp(log_c)


def log_calibrated_threshold(alpha: float, s: float) -> float:
    """log c*, see `calibrated_threshold`; never leaves float64."""
    _check_alpha(alpha)
    if log_ndtr(_tangent(s) - s) >= math.log(alpha):
        return log_calibration_constant(s) - math.log(alpha)
    return -s * (s / 2 + float(ndtri(alpha)))


def worst_null_rejection(log_c: ArrayLike, s: float) -> FloatArray:
    """R(c) = sup P(E_DP ≥ c) over all e-values E[E] ≤ 1; log_c of any shape, −inf and +inf included.

    Raises ValueError for a NaN and for s outside [1e-12, 1e7].
    """
    return np.asarray(np.exp(_log_worst_null_rejection(log_c, s)))


@dataclass(frozen=True)
class FixedRule:
    """The test of one hypothesis at a level fixed before any e-value is seen: E_DP ≥ c*.

    alpha in (0, 1); s is the scale of the noise, `Canonical(sensitivity, mu).scale`.
    """

    alpha: float
    s: float

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)
        _check_s(self.s)

    @property
    def log_threshold(self) -> float:
        """log c*."""
        return log_calibrated_threshold(self.alpha, self.s)

    def rejects(self, private: PrivateLogE) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which of the e-values reject, each a test of its own at level alpha.

        Raises SelectedAfterwardsError for e-values that a selection has picked, and ValueError for another noise than
        the one the rule was made for.
        """
        if private.selected:
            raise SelectedAfterwardsError
        if not math.isclose(self.s, private.scale, rel_tol=1e-9):
            raise ValueError(
                f"s of the rule is {self.s:.12g}, but the e-values carry noise of scale {private.scale:.12g}: "
                "make the rule with Canonical(sensitivity, mu).scale"
            )
        return np.asarray(private.log_e >= self.log_threshold)


def log_p_value(private: PrivateLogE) -> FloatArray:
    """log p, p = R(E_DP): P(p ≤ a) ≤ a for every a under every null, for hypotheses fixed beforehand.

    Raises SelectedAfterwardsError for e-values that a selection has picked.
    """
    if private.selected:
        raise SelectedAfterwardsError
    return _log_worst_null_rejection(private.log_e, private.scale)


def rejects_pointwise(private: PrivateLogE, alpha: float) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which of the e-values reach K/alpha; holds after a selection, see the head of this file for what it promises.

    alpha in (0, 1) may depend on the data and on the selection, never on the noise of these values.
    """
    _check_alpha(alpha)
    return np.asarray(private.log_e >= log_calibration_constant(private.scale) - math.log(alpha))


def _log_worst_null_rejection(log_c: ArrayLike, s: float) -> FloatArray:
    log_c = np.asarray(log_c, dtype=np.float64)
    if np.isnan(log_c).any():
        raise ValueError("log_c has a NaN, expected the logarithm of a threshold")
    v = _tangent(s)
    two_point = log_calibration_constant(s) - log_c
    constant = log_ndtr(-(log_c / s + s / 2))
    return np.asarray(np.where(log_c >= s * (s / 2 - v), two_point, constant))


@cache
def _tangent(s: float) -> float:
    """v = u_s + s > 0, where φ(u_s)/Φ(u_s) = s.

    φ(u)/Φ(u) = √(2/π)/erfcx(−u/√2) has no cancellation; it falls in u and exceeds −u, so v lies in (0, s + 38).
    Solving for v keeps its digits at large s, where v ≈ 1/s.
    """
    _check_s(s)

    def excess(v: float) -> float:
        return math.log(2 / math.pi) / 2 - math.log(erfcx((s - v) / math.sqrt(2))) - math.log(s)

    return float(brentq(excess, 0.0, s + 37.0, xtol=1e-300, rtol=1e-15))


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}, expected a level between 0 and 1, both excluded")


def _check_s(s: float) -> None:
    if not _SMALLEST_S <= s <= _LARGEST_S:
        raise ValueError(f"s is {s}, expected sensitivity/mu between 1e-12 and 1e7")
