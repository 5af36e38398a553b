"""The utility of sizes: its definition by counting, its sensitivity by brute force, and what it is best at."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from scipy.stats import norm

from synth_platform.discovery.adaptive import SizeChoice

LOGS = st.floats(-50, 50) | st.sampled_from([0.0, 3.0])


def choice(m: int, mu: float = 1.0, alpha: float = 0.05, sensitivity: float = 0.2) -> SizeChoice:
    return SizeChoice.of(m, alpha, sensitivity, *[lambda size: mu / math.sqrt(2 * size)] * 2)


def largest(log_e: list[float], rank: int) -> float:
    """E_(rank) by counting: the greatest t that at least `rank` of them reach; −inf beyond the last."""
    return (
        max((t for t in log_e if sum(e >= t for e in log_e) >= rank), default=-math.inf)
        if rank <= len(log_e)
        else -math.inf
    )


@settings(deadline=None)
@given(st.integers(1, 10**7))
def test_the_grid_covers_every_size_within_a_fifth(m: int) -> None:
    """Claim: from 1 to m, each at most a fifth (or one) above the one before, and few."""
    sizes = choice(m).sizes
    assert (sizes[0], sizes[-1]) == (1, m)
    assert all(a < b <= max(a + 1, math.ceil(1.2 * a)) for a, b in itertools.pairwise(sizes))
    assert len(sizes) < 100


@settings(deadline=None, max_examples=200)
@given(st.lists(LOGS, min_size=1, max_size=14))
def test_it_is_the_definition(log_e: list[float]) -> None:
    """Claim: min(log E_(⌈k/2⌉) − level, level − log E_(k+1)) with ties; so few are never lifted by selection."""
    m = len(log_e)
    sizes = choice(m)
    for size, level, u in zip(sizes.sizes, sizes.levels, sizes.utility(np.array(log_e)), strict=True):
        assert level == pytest.approx(math.log(m / (0.05 * size)) + 0.2**2 * 2 * size / 2)
        expected = min(largest(log_e, math.ceil(size / 2)) - level, level - largest(log_e, size + 1))
        assert u == pytest.approx(expected)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_no_utility_moves_more_than_a_log_e_value(data: st.DataObject) -> None:
    """Claim: sensitivity Δ for any movements within ±Δ, ties and changes of order included."""
    log_e = np.array(data.draw(st.lists(LOGS, min_size=1, max_size=30)))
    delta = data.draw(st.floats(0.01, 5))
    moves = st.floats(-delta, delta) | st.sampled_from([-delta, delta])
    moved = log_e + np.array(data.draw(st.lists(moves, min_size=log_e.size, max_size=log_e.size)))
    sizes = choice(log_e.size)
    assert np.abs(sizes.utility(moved) - sizes.utility(log_e)).max() <= delta * (1 + 1e-12) + 1e-12


def test_levels_grow_with_the_noise_of_either_kind() -> None:
    """Claim: at 40 of 2,000 the noise of values decides, at 200 of 6,200,000 that of the selection; both in numbers."""
    for m, near, by_selection in ((2000, 40, False), (6_200_000, 200, True)):
        sizes = choice(m, sensitivity=0.182)
        at = int(np.argmin(np.abs(np.array(sizes.sizes) - near)))
        k = sizes.sizes[at]
        passing = math.log(m / (0.05 * k))
        b = 0.182 / special.logit(norm.cdf(1 / math.sqrt(2 * k) / 2))
        lines = passing + 0.182**2 * 2 * k / 2, b * math.log(m / k) - (1 - 1 / b) * passing / 2
        assert sizes.levels[at] == pytest.approx(lines[by_selection])
        assert lines[by_selection] > lines[not by_selection] + 1


def test_nulls_are_lifted_as_the_level_says() -> None:
    """Claim: the k-th largest noisy key of nulls with log E ~ N(−a, 2a) is b·log(m/k) − (1 − 1/b)·a, within .1 b."""
    m, k, b, a = 200_000, 100, 4.0, 6.0
    rng = np.random.default_rng(0)
    keys = rng.normal(-a, math.sqrt(2 * a), m) + b * rng.gumbel(size=m)
    assert np.sort(keys)[-k] == pytest.approx(b * math.log(m / k) - (1 - 1 / b) * a, abs=0.1 * b)


def test_the_sensitivity_is_attained() -> None:
    """Claim: no smaller bound holds; all log e-values that rise by Δ move utilities of either sign by Δ."""
    log_e = np.linspace(20, -5, 40)
    sizes = choice(40)
    moves = sizes.utility(log_e + 0.7) - sizes.utility(log_e)
    assert moves.max() == pytest.approx(0.7)
    assert moves.min() == pytest.approx(-0.7)


@pytest.mark.parametrize("signals", [1, 4, 45, 200])
def test_a_gap_is_found(signals: int) -> None:
    """Claim: with a gap after a size of the grid that size is best, and right by half the gap at the worst."""
    m = 5000
    sizes = choice(m, sensitivity=0.05)
    at = int(np.argmin(np.abs(np.array(sizes.sizes) - signals)))
    k, level = sizes.sizes[at], sizes.levels[at]
    log_e = np.full(m, level - 6)
    log_e[:k] = level + 6
    utility = sizes.utility(log_e)
    assert int(np.argmax(utility)) == at
    assert utility[at] == pytest.approx(6)
    if at:
        assert utility[at - 1] < -5


def test_nothing_to_find_gives_a_small_size() -> None:
    """Claim: without signals sizes above a few are far from right."""
    utility = choice(2000).utility(np.full(2000, -3.0))
    assert np.argmax(utility) == 0 or utility.max() < 0


@pytest.mark.parametrize("sensitivity", [1.001e100, 1e200, math.inf, 0.0, -1.0, math.nan])
def test_a_sensitivity_that_cannot_be_squared_is_named(sensitivity: float) -> None:
    with pytest.raises(ValueError, match=r"sensitivity is .* at most 1e100"):
        choice(20, sensitivity=sensitivity)


def test_the_largest_sensitivity_has_finite_levels() -> None:
    assert np.isfinite(choice(10**6, mu=1e-6, sensitivity=1e100).levels).all()


def test_levels_stay_within_what_a_selection_can_compare() -> None:
    """Claim: at a tiny budget, where the noise of many values is beyond all measure, levels end at 2^20 Δ."""
    sizes = choice(10**7, mu=1e-6, sensitivity=3.0)
    assert max(sizes.levels) == 3.0 * 2**20
    assert np.isfinite(sizes.levels).all()
