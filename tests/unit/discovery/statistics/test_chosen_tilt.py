"""The price of a tilt chosen with knowledge of the data, against exact null distributions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from synth_platform.discovery.statistics.chosen_tilt import ChosenTilt
from synth_platform.discovery.statistics.mann_whitney import MannWhitney, log_moment


def best_of(n_case: int, n_control: int, values: np.ndarray, tilts: np.ndarray, *, two_sided: bool) -> float:
    """E[max over tilts of E_t] under the exact permutation null of `values`, by enumeration."""
    n = n_case + n_control
    choices = list(itertools.combinations(range(n), n_case))
    largest = np.full(len(choices), -np.inf)
    for tilt in tilts:
        statistic = MannWhitney(n_case, n_control, float(tilt), two_sided)
        for at, chosen in enumerate(choices):
            case = np.zeros(n, dtype=np.bool_)
            case[list(chosen)] = True
            largest[at] = max(largest[at], statistic.log_e(values[:, np.newaxis], case)[0])
    return float(np.exp(largest).mean())


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize("values", [np.arange(7.0), np.array([0.0, 0, 1, 1, 1, 2, 2]), np.zeros(7)])
def test_the_best_choice_costs_no_more_than_the_price(values: np.ndarray, two_sided: bool) -> None:
    """Claim: who picks the best tilt with the data in hand still has mean at most 1 after the price, ties or not."""
    tilts = np.geomspace(0.05, 1.5, 25)
    price = math.exp(ChosenTilt(MannWhitney(3, 4, 0.3), 0.05, 1.5).log_price)
    assert best_of(3, 4, values, tilts, two_sided=two_sided) <= price


def test_without_the_price_a_chosen_tilt_is_no_e_value_and_the_price_is_not_far_above_what_is_needed() -> None:
    needed = best_of(4, 4, np.arange(8.0), np.geomspace(0.02, 1.0, 40), two_sided=False)
    price = math.exp(ChosenTilt(MannWhitney(4, 4, 0.3), 0.02, 1.0).log_price)
    assert 1.2 < needed < price < 2 * needed


@pytest.mark.parametrize(("n_case", "n_control"), [(1, 5), (10, 10), (95, 442)])
def test_the_variance_is_largest_without_a_tilt(n_case: int, n_control: int) -> None:
    """psi'' by finite differences of the log moment, at tilts up to where U is nearly constant."""
    most = n_case * n_control * (n_case + n_control + 1) / 12
    for tilt in np.geomspace(1e-2, 20, 30) / math.sqrt(most):
        h = tilt * 1e-2
        second = sum(c * log_moment(tilt + k * h, n_case, n_control) for k, c in ((-1, 1), (0, -2), (1, 1))) / h**2
        assert second <= most * (1 + 1e-5)


def test_the_price_is_public_and_moves_nothing() -> None:
    statistic = MannWhitney(3, 4, 0.3)
    chosen = ChosenTilt(statistic, 0.1, 0.9)
    case = np.array([1, 0, 1, 0, 0, 1, 0], dtype=np.bool_)
    values = np.arange(14.0).reshape(7, 2)
    assert chosen.sensitivity == statistic.sensitivity
    assert chosen.log_e(values, case) == pytest.approx(statistic.log_e(values, case) - chosen.log_price)
    assert ChosenTilt(statistic, 0.3, 0.3).log_price == 0, "no choice, no price"


@pytest.mark.parametrize(("lowest", "highest"), [(0.0, 1.0), (0.4, 1.0), (0.1, 0.2), (0.1, math.inf)])
def test_a_tilt_outside_its_range_is_refused(lowest: float, highest: float) -> None:
    with pytest.raises(ValueError, match="lowest, highest"):
        ChosenTilt(MannWhitney(3, 4, 0.3), lowest, highest)
