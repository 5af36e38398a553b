"""The tight figure for a plan fixed beforehand: privacy loss distributions, rounded pessimistically."""

from __future__ import annotations

import math
from functools import lru_cache

from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from synth_platform.privacy.events import Tally
from synth_platform.privacy.rdp import epsilon_from_rdp

_RESOLUTION = 1e-4


def epsilon_from_pld(plan: Tally, delta: float) -> float:
    """Upper bound on the ε of a plan at δ, add/remove adjacency, within about 1e-3 of itself.

    Losses lie on a grid of about 1e-4 of the plan's RDP figure. A fraction of a second for each distinct
    sampled mechanism; repeated steps of one mechanism are free.
    """
    sampled = tuple(sorted((q, sigma, steps) for (q, sigma), steps in plan.sampled.items()))
    interval = 2.0 ** round(math.log2(_RESOLUTION * epsilon_from_rdp(plan, delta)))
    return _epsilon(plan.rho, sampled, interval, delta)


@lru_cache(maxsize=256)
def _epsilon(rho: float, sampled: tuple[tuple[float, float, int], ...], interval: float, delta: float) -> float:
    total: PrivacyLossDistribution = privacy_loss_distribution.identity(value_discretization_interval=interval)
    if rho > 0:
        total = total.compose(_gaussian(1 / math.sqrt(2 * rho), 1.0, interval))
    for sampling_rate, sigma, steps in sampled:
        total = total.compose(_gaussian(sigma, sampling_rate, interval).self_compose(steps))
    return float(total.get_epsilon_for_delta(delta))


def _gaussian(sigma: float, sampling_rate: float, interval: float) -> PrivacyLossDistribution:
    return privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=sampling_rate, value_discretization_interval=interval
    )
