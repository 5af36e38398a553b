"""What a plan costs, and how much noise a promise needs.

Two figures always stand together. `epsilon_rdp` (8-1 §2.1, §2.5) is what the budget cap uses, as a Rényi filter: later
queries may be chosen from earlier answers. `epsilon_pld` is the tight figure of a plan that was fixed beforehand. A
plan of unsampled Gaussian mechanisms also has its exact μ (Dong, Roth, Su 2022). Sampled plans have none: the
central-limit μ under-reports them.

Noise is rounded up and cost is never rounded down: a plan calibrated to ε composes back to at most ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from dp_accounting import DpEvent, GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from synth_platform.privacy.events import Tally, tally
from synth_platform.privacy.pld import epsilon_from_pld
from synth_platform.privacy.rdp import epsilon_from_rdp

_ROUND_UP = 1 + 1e-12
_COST_MARGIN, _NOISE_MARGIN = 1 + 1e-9, 1 + 3e-9  # log δ keeps ten digits at least, where μ is smallest

Accountant = Literal["rdp", "pld"]


@dataclass(frozen=True)
class Composition:
    """The cost of a sequence of mechanisms at one δ; mu is None unless all of them are unsampled Gaussian."""

    epsilon_rdp: float
    epsilon_pld: float
    mu: float | None


def compose(events: Sequence[DpEvent], delta: float) -> Composition:
    """Both figures of `events` at `delta`; an empty plan costs nothing.

    Milliseconds for Gaussian plans of any length; PLD figures of sampled plans take a fraction of a second once and
    are remembered. Where only the cap matters, `epsilon_rdp` is always fast.
    Raises UnsupportedEventError naming an event that cannot be accounted.
    """
    _check_delta(delta)
    plan = tally(events)
    return Composition(_rdp(plan, delta), _pld(plan, delta), plan.mu)


def epsilon_rdp(events: Sequence[DpEvent], delta: float) -> float:
    """The RDP figure alone: 8-1 §2.1's closed form for Gaussian plans, §2.5's minimum over orders otherwise."""
    _check_delta(delta)
    return _rdp(tally(events), delta)


def _rdp(plan: Tally, delta: float) -> float:
    return epsilon_from_rdp(plan, delta) if plan.sampled else epsilon_from_rho(plan.rho, delta)


def _pld(plan: Tally, delta: float) -> float:
    return epsilon_from_pld(plan, delta) if plan.mu is None else gaussian_epsilon(plan.mu, delta)


_COST: dict[Accountant, Callable[[Tally, float], float]] = {"rdp": _rdp, "pld": _pld}


def epsilon_from_rho(rho: float, delta: float) -> float:
    """ε = ρ + 2√(ρ ln(1/δ)), 8-1 §2.1."""
    _check_delta(delta)
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def rho_from_epsilon(epsilon: float, delta: float) -> float:
    """The inverse, ρ = (√(ln(1/δ)+ε) − √ln(1/δ))², 8-1 §2.2, in a form that keeps its digits at small ε."""
    _check_delta(delta)
    _check_positive("epsilon", epsilon)
    budget = math.log(1 / delta)
    return (epsilon / (math.sqrt(budget + epsilon) + math.sqrt(budget))) ** 2


def sigma_from_rho(rho: float, sensitivity: float) -> float:
    """Standard deviation of a Gaussian mechanism that costs at most ρ: sensitivity/√(2ρ), 8-1 §2.2."""
    _check_positive("rho", rho)
    return sensitivity / math.sqrt(2 * rho) * _ROUND_UP


def sigma_from_mu(mu: float, sensitivity: float) -> float:
    """Standard deviation of a Gaussian mechanism that is at most μ-GDP: sensitivity/μ."""
    _check_positive("mu", mu)
    return sensitivity / mu * _ROUND_UP


def split_mu(mu: float, shares: Sequence[float]) -> tuple[float, ...]:
    """μ_i = μ√share_i: mechanisms that together are μ-GDP, since Σ μ_i² = μ². Shares are > 0 and sum to 1.

    The shares are those of ρ = μ²/2 as well (8-1 §2.2 splits ρ 20/40/40).
    """
    _check_positive("mu", mu)
    if not shares or min(shares) <= 0 or not math.isclose(math.fsum(shares), 1, rel_tol=1e-9):
        raise ValueError(f"shares are {list(shares)}, expected positive numbers that sum to 1")
    return tuple(mu * math.sqrt(share) for share in shares)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) of a μ-GDP mechanism (Balle and Wang 2018; Dong, Roth, Su 2022)."""
    return math.exp(_log_delta(mu, epsilon))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least ε ≥ 0 at which a μ-GDP mechanism is (ε, δ)-DP, rounded up by 1e-9 of itself; 0 at μ = 0."""
    _check_delta(delta)
    if mu < 0 or not math.isfinite(mu):
        raise ValueError(f"mu is {mu}, expected a finite number >= 0")
    target = math.log(delta)
    if mu == 0 or _log_delta(mu, 0) <= target:
        return 0.0
    upper = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))  # the closed form of §2.1 is an upper bound
    root = brentq(lambda epsilon: _log_delta(mu, epsilon) - target, 0, upper, xtol=1e-300, rtol=1e-14)
    return float(root) * _COST_MARGIN


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The greatest μ whose Gaussian mechanism is (ε, δ)-DP, rounded down by 3e-9 of itself; inverse of the above.

    Noise of standard deviation sensitivity/μ is the least that keeps the promise.
    """
    _check_delta(delta)
    _check_positive("epsilon", epsilon)
    target = math.log(delta)
    lower = math.sqrt(2 * rho_from_epsilon(epsilon, delta))  # what zCDP allows is never too much
    upper = lower
    while _log_delta(upper, epsilon) < target:
        upper *= 2
    root = brentq(lambda mu: _log_delta(mu, epsilon) - target, lower, upper, xtol=1e-300, rtol=1e-14)
    return float(root) / _NOISE_MARGIN


def _log_delta(mu: float, epsilon: float) -> float:
    """log δ(ε). With x = ε/μ ∓ μ/2 the two terms share the factor exp(−x²/2), which leaves a difference of erfcx.

    Where μ is large the first erfcx overflows, but there the terms differ by orders of magnitude and log Φ serves.
    """
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near < -5:
        first, second = log_ndtr(-near), epsilon + log_ndtr(-far)
        return float(first + math.log(-math.expm1(second - first)))
    difference = erfcx(near / math.sqrt(2)) - erfcx(far / math.sqrt(2))
    return float(-near * near / 2 + math.log(difference / 2))


def calibrate_dpsgd(
    *,
    epsilon: float,
    delta: float,
    sampling_rate: float,
    steps: int,
    prior_rho: float = 0.0,
    accountant: Accountant = "rdp",
) -> float:
    """Least noise multiplier σ for `steps` Poisson-sampled Gaussian steps beside a prior Gaussian mechanism of cost ρ.

    8-1 §2.5's table gives 20 % of the target to the statistics of stage B1: prior_rho = rho_from_epsilon(0.2·ε, δ).
    "rdp" uses the integer orders of §2.5; "pld" needs about a quarter less noise for a plan that is fixed beforehand.
    σ is rounded up by at most 1e-9 (rdp) or 1e-4 (pld) of itself.

    Raises ValueError for arguments out of range, or if the prior alone costs ε or more.
    """
    _check_delta(delta)
    _check_positive("epsilon", epsilon)
    if not 0 < sampling_rate <= 1:
        raise ValueError(f"sampling_rate is {sampling_rate}, expected a number in (0, 1]")
    if steps != int(steps) or steps < 1:
        raise ValueError(f"steps is {steps}, expected a whole number >= 1")
    if not (math.isfinite(prior_rho) and prior_rho >= 0):
        raise ValueError(f"prior_rho is {prior_rho}, expected a finite number >= 0")
    if accountant not in _COST:
        raise ValueError(f"accountant is {accountant!r}, expected 'rdp' or 'pld'")

    if _COST[accountant](Tally(prior_rho, {}), delta) >= epsilon:
        raise ValueError(f"prior_rho {prior_rho} alone costs epsilon {epsilon} or more at delta {delta}")

    def excess(sigma: float) -> float:
        step = PoissonSampledDpEvent(sampling_rate, GaussianDpEvent(sigma))
        steps_alone = tally([SelfComposedDpEvent(step, steps)])
        plan = Tally(prior_rho + steps_alone.rho, steps_alone.sampled)
        return _COST[accountant](plan, delta) - epsilon

    return _least(excess, tolerance=1e-9 if accountant == "rdp" else 1e-4)


def _least(excess: Callable[[float], float], tolerance: float) -> float:
    """Least σ with excess(σ) ≤ 0, a decreasing function, approached from above to a relative tolerance."""
    upper = 1.0
    while excess(upper) > 0:
        upper *= 2
        if upper > 2**30:
            raise ValueError("no noise multiplier up to 2^30 meets the target: prior_rho leaves too little of epsilon")
    lower = upper / 2
    while excess(lower) <= 0:
        upper, lower = lower, lower / 2
    root = math.exp(brentq(lambda x: excess(math.exp(x)), math.log(lower), math.log(upper), xtol=tolerance / 4))
    while excess(root) > 0:
        root *= 1 + tolerance / 2
    return root


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta is {delta}, expected a number in (0, 1)")


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} is {value}, expected a positive finite number")
