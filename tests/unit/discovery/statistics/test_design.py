"""The designed tilts against the closed form and a grid of what they are to maximise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

from synth_platform.discovery.statistics.design import log_passing_threshold
from synth_platform.discovery.statistics.dosage import DosageStatistic
from synth_platform.discovery.statistics.mann_whitney import MannWhitney, log_moment
from synth_platform.discovery.statistics.tilted_permutation import TiltedPermutation
from synth_platform.discovery.statistics.z_score import ZScore

PLAN = {"features": 200, "size": 10, "alpha": 0.05}


@pytest.mark.parametrize(("n1", "n0"), [(100, 437), (1000, 1000), (1500, 300)])
@pytest.mark.parametrize("value_mu", [0.05, 0.2, 1.0, math.inf])
def test_mann_whitney_is_near_its_closed_form(n1: int, n0: int, value_mu: float) -> None:
    """Claim: t* = √(L / [n1 n0 (n + 1) / 24 + max(n1, n0)² / (2 μ_v²)]), up to the moments beyond the second."""
    threshold = math.log(200 / (0.05 * 10)) + math.log(2)
    closed = math.sqrt(threshold / (n1 * n0 * (n1 + n0 + 1) / 24 + (max(n1, n0) / value_mu) ** 2 / 2))
    assert MannWhitney.designed(n1, n0, **PLAN, value_mu=value_mu).tilt == pytest.approx(closed, rel=0.03)
    one_sided = MannWhitney.designed(n1, n0, **PLAN, value_mu=value_mu, two_sided=False).tilt
    assert one_sided == pytest.approx(closed * math.sqrt(1 - math.log(2) / threshold), rel=0.03)


@pytest.mark.parametrize("auc", [0.65, 0.717, 0.8, 0.95])
def test_no_tilt_passes_more_often_whatever_the_auc(auc: float) -> None:
    """Claim: on a grid around it, P(log E − ξ >= L) under a normal U of that AUC is largest at the designed tilt."""
    n1, n0, value_mu = 100, 437, 0.2
    designed = MannWhitney.designed(n1, n0, **PLAN, value_mu=value_mu).tilt
    threshold = math.log(2 * 200 / (0.05 * 10))

    def passing(t: float) -> float:
        s = t * max(n1, n0) / value_mu
        mean = t * n1 * n0 * auc - log_moment(t, n1, n0) - s**2 / 2
        return float(norm.sf(threshold, mean, math.sqrt(t**2 * n1 * n0 * (n1 + n0 + 1) / 12 + s**2)))

    others = [passing(designed * factor) for factor in np.geomspace(0.3, 3, 41)]
    assert max(others) <= passing(designed) + 1e-7
    assert norm.isf(passing(designed)) < norm.isf(max(passing(designed * 0.7), passing(designed * 1.4))) - 0.05


@pytest.mark.parametrize("value_mu", [0.1, 1.0, math.inf])
def test_the_others_are_near_theirs(value_mu: float) -> None:
    """Claim: √(L / (V/2 + (Δ'/μ_v)²/2)) for small κ, with V the variance under the null and Δ' the slope of Δ at 0."""
    n1, n0 = 700, 1300
    threshold = math.log(2 * 200 / (0.05 * 10))
    closed: Callable[[float, float], float] = lambda variance, slope: math.sqrt(  # noqa: E731
        2 * threshold / (variance + (slope / value_mu) ** 2)
    )
    tilted = TiltedPermutation.designed(n1, n0, **PLAN, lower=-3.0, upper=3.0, spread=1.0, value_mu=value_mu)
    assert tilted.kappa == pytest.approx(closed(n1 * n0 / 2000, 6 * n0 / 2000), rel=0.15)
    dosage = DosageStatistic.designed(n1, n0, **PLAN, frequency=0.3, value_mu=value_mu)
    assert dosage.kappa == pytest.approx(closed(0.42 * n1 * n0 / 2000, 2 * n0 / 2000), rel=0.15)
    z = ZScore.designed(n1, n0, **PLAN, lower=0.0, upper=2.0, value_mu=value_mu)
    assert z.spread == 1.0
    assert z.tilt == pytest.approx(closed(1.0, 2 / (n1 * math.sqrt(1 / n1 + 1 / n0))), rel=1e-4)


def test_less_budget_a_smaller_tilt() -> None:
    tilts = [MannWhitney.designed(100, 437, **PLAN, value_mu=mu).tilt for mu in (0.01, 0.1, 1.0, 10.0)]
    assert tilts == sorted(tilts)


@pytest.mark.parametrize(("n1", "n0"), [(1, 1), (2, 3), (20, 1)])
@pytest.mark.parametrize("value_mu", [1e-3, math.inf])
def test_tiny_groups_have_a_tilt_too(n1: int, n0: int, value_mu: float) -> None:
    assert MannWhitney.designed(n1, n0, **PLAN, value_mu=value_mu).tilt > 0
    assert DosageStatistic.designed(n1, n0, **PLAN, frequency=1e-5, value_mu=value_mu).kappa > 0
    tilted = TiltedPermutation.designed(n1, n0, **PLAN, lower=0.0, upper=1e3, spread=0.5, value_mu=value_mu)
    assert 0 < tilted.kappa * 1e3 <= 100


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"size": 201}, "size is 201"),
        ({"alpha": 0.0}, "alpha is 0"),
        ({"alpha": 1.0}, "alpha is 1"),
        ({"value_mu": 0.0}, "value_mu is 0"),
        ({"value_mu": math.nan}, "value_mu is nan"),
    ],
)
def test_a_plan_out_of_range_is_refused(change: dict[str, float], message: str) -> None:
    plan = {**PLAN, "value_mu": 0.5, **change}
    with pytest.raises(ValueError, match=message):
        MannWhitney.designed(5, 5, **plan)
    with pytest.raises(ValueError, match=message):
        ZScore.designed(5, 5, lower=0.0, upper=1.0, **plan)
    with pytest.raises(ValueError, match=message):
        DosageStatistic.designed(5, 5, frequency=0.2, **plan)


def test_a_frequency_out_of_range_is_refused() -> None:
    for frequency in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="frequency is"):
            DosageStatistic.designed(5, 5, frequency=frequency, **PLAN, value_mu=1.0)


def test_the_threshold_is_that_of_e_bh() -> None:
    assert log_passing_threshold(features=200, size=10, alpha=0.05, two_sided=False) == pytest.approx(math.log(400))
