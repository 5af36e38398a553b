"""Two success rates and the interval of their difference: does an attack succeed more often on one side?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.optimize import brentq

from synth_platform.evaluation.statistics import normal_quantile, six

RateStatus = Literal["PASS", "FAIL", "UNDECIDED"]
POWER = 0.9


@dataclass(frozen=True)
class RateDifference:
    """Success on training rows against success on control rows.

    excess: train - control, between lower and upper, each one-sided. risk: excess / (1 - control), at least 0: the
    share of what is left to be guessed (Giomi et al. 2023); None where nothing is left. detectable: the smallest true
    excess that these rows would find above the margin with 90 % power; None where no excess would be found. status:
    FAIL if even `lower` is above the margin, PASS if even `upper` is not, else UNDECIDED: too few rows to tell.
    """

    train: float
    control: float
    excess: float
    lower: float
    upper: float
    risk: float | None
    detectable: float | None
    status: RateStatus


def wilson(share: float, trials: float, z: float) -> tuple[float, float]:
    """The score interval of a binomial share at normal quantile z (Wilson 1927); `trials` may be effective ones."""
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    centre, scale = share + z * z / (2 * trials), 1 + z * z / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def newcombe(first: float, first_trials: float, second: float, second_trials: float, z: float) -> tuple[float, float]:
    """The interval of first - second from both score intervals (Newcombe 1998, method 10)."""
    first_low, first_high = wilson(first, first_trials, z)
    second_low, second_high = wilson(second, second_trials, z)
    difference = first - second
    return (
        difference - math.hypot(first - first_low, second_high - second),
        difference + math.hypot(first_high - first, second - second_low),
    )


def detectable_excess(
    control: float, train_trials: float, control_trials: float, *, margin: float, z: float
) -> float | None:
    """The excess over a control rate whose lower bound at z lies above `margin` with 90 % power; None if there is none.

    At the excess sought, the bound expected is 1.28 standard errors of the difference above the margin.
    """

    def surplus(excess: float) -> float:
        train = min(1.0, control + excess)
        lower, _ = newcombe(train, train_trials, control, control_trials, z)
        error = math.sqrt(train * (1 - train) / train_trials + control * (1 - control) / control_trials)
        return lower - margin - normal_quantile(POWER) * error

    largest = 1 - control
    if largest <= margin or surplus(largest) < 0:
        return None
    return round(float(brentq(surplus, margin, largest)), 6)


def compare_rates(
    train: float, train_trials: float, control: float, control_trials: float, *, margin: float, error: float
) -> RateDifference:
    """Judge the excess of `train` over `control` by `margin`; each bound errs with probability `error`."""
    z = normal_quantile(1 - error)
    lower, upper = newcombe(train, train_trials, control, control_trials, z)
    excess = train - control
    lower, upper = round(lower, 6), round(upper, 6)
    return RateDifference(
        train=round(train, 6),
        control=round(control, 6),
        excess=round(excess, 6),
        lower=lower,
        upper=upper,
        risk=round(max(0.0, excess / (1 - control)), 6) if control < 1 else None,
        detectable=detectable_excess(control, train_trials, control_trials, margin=margin, z=z),
        status="FAIL" if six(lower) > six(margin) else "PASS" if six(upper) <= six(margin) else "UNDECIDED",
    )
