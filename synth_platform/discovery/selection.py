"""What it costs to tell which of many scores is largest: Gumbel noise, and the least μ it can be said to have.

Scores u_j each move by at most Δ. The position of the largest u_j/b + G_j, G_j standard Gumbel, is j with probability
∝ exp(u_j/b), so its log probability moves by values in an interval of length η = 2Δ/b, whatever the number of
candidates. The least private mechanism with that property is randomised response with log odds t and t − η for some
0 < t < η (Dong, Durfee and Rogers 2020). As a test of one neighbour against the other it errs with probabilities

    (1 − e^{t−η})/(e^t − e^{t−η})    and    e^{t−η}·(e^t − 1)/(e^t − e^{t−η}).

Of all t, η/2 alone comes nearest to the curve of two unit Gaussians μ apart; both errors are σ(−η/2) there, σ(x) =
1/(1 + e^{−x}), and two Gaussians that far apart err with Φ(−μ/2) each. So

    μ = 2Φ⁻¹(σ(Δ/b)),    b = Δ/logit(Φ(μ/2)) ≈ 1.2533 Δ/μ for small μ.

No smaller μ will do: two scores, each moved by Δ the other way, are that randomised response. The detour through pure
ε-differential privacy, ε = η and the μ of the worst ε-private mechanism, needs twice the noise.

The ordered s largest of one draw are s such choices, each among those that are left (Plackett and Luce): √s·μ.

If a record moved all scores the same way, log probabilities would move half as far. That never holds here: a record
that speaks for one hypothesis speaks against another, and nothing stops it. So there is no function for it.
"""

from __future__ import annotations

import math

from scipy.special import log_ndtr

from synth_platform.privacy.events import bounded_range_mu

_SMALLEST_MU, _LARGEST_MU = 1e-12, 60.0


def gumbel_scale(mu: float, sensitivity: float) -> float:
    """The b at which telling the largest of scores + b·Gumbel is mu-GDP; in units of the scores.

    mu between 1e-12 and 60; sensitivity Δ of each score, finite and > 0. Raises ValueError naming what is out of range.
    """
    if not _SMALLEST_MU <= mu <= _LARGEST_MU:
        raise ValueError(f"mu is {mu}, expected the privacy cost of one selection, between 1e-12 and 60")
    _check_sensitivity(sensitivity)
    return sensitivity / _log_odds(mu / 2)


def selection_mu(sensitivity: float, scale: float) -> float:
    """The least mu such that telling the largest of scores + scale·Gumbel is mu-GDP; the inverse of `gumbel_scale`.

    Raises ValueError unless both are finite and > 0.
    """
    _check_sensitivity(sensitivity)
    if not 0 < scale < math.inf:
        raise ValueError(f"scale is {scale}, expected the scale of the Gumbel noise, finite and > 0")
    return bounded_range_mu(2 * sensitivity / scale)


def _log_odds(x: float) -> float:
    """logit(Φ(x)) for x > 0, without cancellation at either end."""
    if x < 1:
        return 2 * math.atanh(math.erf(x / math.sqrt(2)))
    return float(log_ndtr(x) - log_ndtr(-x))


def _check_sensitivity(sensitivity: float) -> None:
    if not 0 < sensitivity < math.inf:
        raise ValueError(
            f"sensitivity is {sensitivity}, expected finite and > 0: a score that one record can move without bound "
            "cannot be chosen by privately"
        )
