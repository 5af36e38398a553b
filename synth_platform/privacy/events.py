"""Mechanism events: their JSON form in the ledger, and the tally that the accountants work on.

A selection by Gumbel noise (the exponential mechanism) is η-bounded range (Durfee and Rogers 2019). Its worst case is
randomised response with log odds t and t − η, of which t = η/2 is the least private in Gaussian terms: the mechanism is
μ-GDP with μ = 2Φ⁻¹(1/(1 + e^{−η/2})), no smaller μ will do, and so it composes with Gaussian mechanisms through Σ μ².
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import attrs
from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from scipy.special import erfinv, ndtri_exp


class UnsupportedEventError(ValueError):
    """An event that is not one of ours; the message names it."""


@attrs.frozen
class BoundedRangeDpEvent(DpEvent):  # type: ignore[misc]
    """A mechanism whose log probabilities under neighbours differ by values in an interval of length `eta`.

    Adding Gumbel noise of scale b to scores of sensitivity Δ and telling the largest has eta = 2Δ/b.
    """

    eta: float


@dataclass(frozen=True)
class Tally:
    """A composed plan up to order, which no accountant here depends on.

    rho:     Σ μ²/2 over the unsampled mechanisms: μ = 1/z of a Gaussian one with noise multiplier z.
    sampled: (sampling rate, noise multiplier) of Poisson-sampled Gaussian mechanisms -> how many times.
    """

    rho: float
    sampled: Mapping[tuple[float, float], int]

    @property
    def mu(self) -> float | None:
        """μ = √(2ρ) of a plan without sampling, exact if all of it is Gaussian; None where anything is sampled."""
        return None if self.sampled else math.sqrt(2 * self.rho)


def tally(events: Iterable[DpEvent]) -> Tally:
    """Flatten events, nested to any depth.

    Raises UnsupportedEventError naming an event that is not Gaussian, Poisson-sampled Gaussian, bounded range, composed
    or no-op, and ValueError for a parameter out of range.
    """
    rhos: list[float] = []
    sampled: Counter[tuple[float, float]] = Counter()
    pending = [(event, 1) for event in events]
    while pending:
        event, count = pending.pop()
        match event:
            case NoOpDpEvent():
                pass
            case GaussianDpEvent():
                rhos.append(count / (2 * _noise_multiplier(event) ** 2))
            case BoundedRangeDpEvent():
                rhos.append(count * bounded_range_mu(event.eta) ** 2 / 2)
            case PoissonSampledDpEvent(sampling_probability=q, event=GaussianDpEvent() as inner):
                if _sampling_rate(q) == 1:
                    rhos.append(count / (2 * _noise_multiplier(inner) ** 2))
                elif q > 0:
                    sampled[q, _noise_multiplier(inner)] += count
            case SelfComposedDpEvent():
                pending.append((event.event, count * _count(event.count)))
            case ComposedDpEvent():
                pending.extend((part, count) for part in event.events)
            case _:
                raise UnsupportedEventError(_refusal(event))
    return Tally(math.fsum(rhos), {plan: count for plan, count in sampled.items() if count})


def event_to_json(event: DpEvent) -> dict[str, object]:
    """JSON document of an event: {"type": class name, fields...}. Raises as `tally` does."""
    match event:
        case NoOpDpEvent():
            return {"type": "NoOpDpEvent"}
        case GaussianDpEvent():
            return {"type": "GaussianDpEvent", "noise_multiplier": _noise_multiplier(event)}
        case BoundedRangeDpEvent():
            bounded_range_mu(event.eta)
            return {"type": "BoundedRangeDpEvent", "eta": float(event.eta)}
        case PoissonSampledDpEvent(event=GaussianDpEvent()):
            return {
                "type": "PoissonSampledDpEvent",
                "sampling_probability": _sampling_rate(event.sampling_probability),
                "event": event_to_json(event.event),
            }
        case SelfComposedDpEvent():
            return {"type": "SelfComposedDpEvent", "event": event_to_json(event.event), "count": _count(event.count)}
        case ComposedDpEvent():
            return {"type": "ComposedDpEvent", "events": [event_to_json(part) for part in event.events]}
        case _:
            raise UnsupportedEventError(_refusal(event))


def event_from_json(document: Mapping[str, object]) -> DpEvent:
    """The event of a JSON document; refuses unknown types, other fields and parameters out of range."""
    match document:
        case {"type": "NoOpDpEvent", **rest}:
            event = NoOpDpEvent()
        case {"type": "GaussianDpEvent", "noise_multiplier": float() | int() as z, **rest}:
            event = GaussianDpEvent(float(z))
        case {"type": "BoundedRangeDpEvent", "eta": float() | int() as eta, **rest}:
            event = BoundedRangeDpEvent(float(eta))
        case {
            "type": "PoissonSampledDpEvent",
            "sampling_probability": float() | int() as q,
            "event": Mapping() as inner,
            **rest,
        }:
            event = PoissonSampledDpEvent(float(q), event_from_json(inner))
        case {"type": "SelfComposedDpEvent", "event": Mapping() as inner, "count": int() as count, **rest}:
            event = SelfComposedDpEvent(event_from_json(inner), count)
        case {"type": "ComposedDpEvent", "events": list() as parts, **rest}:
            event = ComposedDpEvent([event_from_json(part) for part in parts])
        case {"type": str() as name, **rest}:
            raise UnsupportedEventError(f"no event is called {name} with the fields {sorted(rest)}")
        case _:
            raise UnsupportedEventError("not the JSON document of an event: it has no type")
    if rest:
        raise UnsupportedEventError(f"{document['type']} has no fields {sorted(rest)}")
    event_to_json(event)  # checks the parameters
    return event


def bounded_range_mu(eta: float) -> float:
    """The least μ such that every η-bounded-range mechanism is μ-GDP, 2Φ⁻¹(σ(η/2)), rounded up by 1e-12 of itself."""
    if not (math.isfinite(eta) and eta > 0):
        raise ValueError(f"BoundedRangeDpEvent has eta {eta}, expected a positive finite number")
    if eta < 2:  # σ near 1/2: its distance from 1/2 is tanh(η/4)/2
        return 2 * math.sqrt(2) * float(erfinv(math.tanh(eta / 4))) * (1 + 1e-12)
    return -2 * float(ndtri_exp(-eta / 2 - math.log1p(math.exp(-eta / 2)))) * (1 + 1e-12)


def _noise_multiplier(event: GaussianDpEvent) -> float:
    z = event.noise_multiplier
    if not (math.isfinite(z) and z > 0):
        raise ValueError(f"GaussianDpEvent has noise_multiplier {z}, expected a positive finite number")
    return float(z)


def _sampling_rate(q: float) -> float:
    if not 0 <= q <= 1:
        raise ValueError(f"PoissonSampledDpEvent has sampling_probability {q}, expected a number in [0, 1]")
    return float(q)


def _count(count: int) -> int:
    if count != int(count) or count < 0:
        raise ValueError(f"SelfComposedDpEvent has count {count}, expected a whole number >= 0")
    return int(count)


def _refusal(event: DpEvent) -> str:
    inner = getattr(event, "event", None)
    name = type(event).__name__ + (f" of {type(inner).__name__}" if inner is not None else "")
    return (
        f"{name} cannot be accounted: use Gaussian, Poisson-sampled Gaussian, bounded-range, composed or no-op events"
    )
