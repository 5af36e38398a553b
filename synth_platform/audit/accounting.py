"""Privacy costs by other roads than the accountant takes: quadrature, numerical minimisation, bisection.

An event is its JSON document. Gaussian mechanisms compose through sum(1/z^2), selections through the mu they have, and
Poisson-sampled mechanisms through their Rényi curve, integrated from its definition (8-1 §2.5) instead of expanded in
binomials.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.integrate import quad, trapezoid
from scipy.optimize import minimize_scalar

from synth_platform.audit.findings import MalformedError
from synth_platform.audit.reading import number, sequence, text, whole

ORDERS = (*range(2, 65), 128, 256, 512, 1024, 2048, 4096)
_STEPS_PER_SIGMA, _TAIL = 10, 40
_SMALL_LOG = 30.0
_BISECTIONS = 100


@dataclass
class Composed:
    """What mechanisms add up to: precision = sum mu^2 of the unsampled ones, (q, z) -> steps of the sampled ones."""

    precision: float = 0.0
    sampled: Counter[tuple[float, float]] = field(default_factory=Counter)

    @property
    def mu(self) -> float | None:
        """mu of the Gaussian trade-off curve; None where something is sampled."""
        return None if self.sampled else math.sqrt(self.precision)


def compose(events: Iterable[Mapping[str, Any]]) -> Composed:
    """Compose event documents. Raises MalformedError for a type that is not one of the ledger's."""
    total = Composed()
    for event in events:
        _add(total, event, 1)
    return total


def _add(total: Composed, event: Mapping[str, Any], times: int) -> None:
    kind = text(event, "type")
    if kind == "GaussianDpEvent":
        total.precision += times / _positive(event, "noise_multiplier") ** 2
    elif kind == "BoundedRangeDpEvent":
        total.precision += times * bounded_range_mu(_positive(event, "eta")) ** 2
    elif kind == "PoissonSampledDpEvent":
        inner = event["event"]
        q, z = number(event, "sampling_probability"), _positive(inner, "noise_multiplier")
        if text(inner, "type") != "GaussianDpEvent" or not 0 <= q <= 1:
            raise MalformedError("event")
        if q == 1:
            total.precision += times / z**2
        elif q > 0:
            total.sampled[q, z] += times
    elif kind == "SelfComposedDpEvent":
        _add(total, event["event"], times * whole(event, "count"))
    elif kind == "ComposedDpEvent":
        for part in sequence(event, "events"):
            _add(total, part, times)
    elif kind != "NoOpDpEvent":
        raise MalformedError("event.type")


def bounded_range_mu(eta: float) -> float:
    """The mu at which two Gaussians are as far apart as the two answers of randomised response with log odds eta/2.

    Both differ by tanh(eta/4) in total variation; for Gaussians that is erf(mu / (2 sqrt 2)), solved by bisection.
    """
    apart = math.exp(-eta / 2) / (1 + math.exp(-eta / 2))  # (1 - tanh(eta/4)) / 2: keeps its digits at large eta
    low, high = 0.0, 80.0
    for _ in range(2 * _BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle / (2 * math.sqrt(2))) / 2 > apart else (low, middle)
    return high


def _positive(event: Mapping[str, Any], name: str) -> float:
    value = number(event, name)
    if value <= 0:
        raise MalformedError(f"event.{name}")
    return value


def sampled_gaussian_rdp(order: int, q: float, sigma: float) -> float:
    """1/(a-1) log E_{z ~ N(0, sigma^2)} ((1-q) + q exp((2z-1)/2 sigma^2))^a by the trapezoid rule (8-1 §2.5).

    The integrand is analytic and decays like a Gaussian around 0 and around the order, so the rule converges faster
    than any power of its step.
    """
    points = math.ceil((order + 2 * _TAIL * sigma) * _STEPS_PER_SIGMA / sigma) + 1
    z = np.linspace(-_TAIL * sigma, order + _TAIL * sigma, points)
    log_density = -(z**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))
    shift = (2 * z - 1) / (2 * sigma**2)
    log_power = np.asarray(order * np.logaddexp(math.log1p(-q), math.log(q) + shift))
    if log_power.max() < _SMALL_LOG:
        # E(.)^a - 1 directly, so that a step which costs next to nothing keeps its digits.
        excess = trapezoid(np.exp(log_density) * np.expm1(order * np.log1p(q * np.expm1(shift))), z)
        return math.log1p(float(excess)) / (order - 1)
    log_integrand = log_density + log_power
    top = float(log_integrand.max())
    return float(top + math.log(float(trapezoid(np.exp(log_integrand - top), z)))) / (order - 1)


def epsilon_rdp(plan: Composed, delta: float) -> float:
    """Least epsilon of the Rényi curve at delta: over all orders for Gaussian plans, over the integer grid else."""
    budget, rho = math.log(1 / delta), plan.precision / 2
    if not plan.sampled:
        if rho == 0:
            return 0.0
        least = minimize_scalar(
            lambda x: (1 + math.exp(x)) * rho + budget / math.exp(x), bounds=(-20, 30), options={"xatol": 1e-10}
        )
        return float(least.fun)

    def cost(order: int) -> float:
        sampled = math.fsum(steps * sampled_gaussian_rdp(order, q, z) for (q, z), steps in plan.sampled.items())
        return sampled + order * rho + budget / (order - 1)

    return min(map(cost, ORDERS))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """delta(epsilon) = E (1 - exp(epsilon - L))+ over the privacy loss L ~ N(mu^2/2, mu^2), by quadrature."""

    def integrand(t: float) -> float:
        return -math.expm1(epsilon - mu * mu / 2 - mu * t) * math.exp(-t * t / 2) / math.sqrt(2 * math.pi)

    start = epsilon / mu - mu / 2
    value, _ = quad(integrand, start, max(start, 0.0) + _TAIL, epsabs=0, epsrel=1e-11, limit=500, points=[start + 1])
    return float(value)


def epsilon_gaussian(mu: float, delta: float) -> float:
    """The epsilon at which a mu-GDP mechanism has exactly this delta, by bisection."""
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(mu, middle) > delta else (low, middle)
        if high - low <= 1e-12 * high:
            break
    return high


def epsilon_tight(plan: Composed, delta: float) -> tuple[float, float]:
    """Lower and upper end of what the tight epsilon can be: equal for Gaussian plans, bracketed by PLDs else."""
    if plan.mu is not None:
        epsilon = epsilon_gaussian(plan.mu, delta)
        return epsilon, epsilon
    interval = 1e-4 * epsilon_rdp(plan, delta)
    parts = [(q, z, steps) for (q, z), steps in plan.sampled.items()]
    parts += [(1.0, 1 / math.sqrt(plan.precision), 1)] if plan.precision else []

    def end(*, pessimistic: bool) -> float:
        losses = [
            pld.from_gaussian_mechanism(
                z,
                sampling_prob=q,
                value_discretization_interval=interval,
                pessimistic_estimate=pessimistic,
                use_connect_dots=pessimistic,
            ).self_compose(steps)
            for q, z, steps in parts
        ]
        return float(reduce(lambda total, one: total.compose(one), losses).get_epsilon_for_delta(delta))

    return end(pessimistic=False), end(pessimistic=True)


def auroc_bound(epsilon: float, delta: float) -> float:
    """Area under min(e^eps x + delta, 1 - e^-eps (1 - delta - x)), cut at [0, 1], by quadrature (8-1 §2.6)."""
    if epsilon > 600:
        return 1.0
    meeting = (1 - delta) / (1 + math.exp(epsilon))

    def power(x: float) -> float:
        return min(1.0, math.exp(epsilon) * x + delta, 1 - math.exp(-epsilon) * (1 - delta - x))

    left, _ = quad(power, 0.0, meeting, epsabs=1e-13, epsrel=1e-12)
    right, _ = quad(power, meeting, 1.0, epsabs=1e-13, epsrel=1e-12, points=[1 - delta], limit=200)
    return float(left + right)
