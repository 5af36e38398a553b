"""Aggregation: sensitivities by brute force over movements, the cost of a product from the laws it is told apart by."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from synth_platform.discovery.aggregate import (
    average_after,
    average_before,
    composed_mu,
    product_mu,
    product_of_disjoint,
)
from synth_platform.discovery.canonical import Canonical, PrivateLogE, privatise
from synth_platform.discovery.threshold import FixedRule, SelectedAfterwardsError, log_p_value
from synth_platform.privacy.noise import SeededNoise

DELTAS, MUS = [0.4, 0.1, 0.7], [1.0, 0.3, 2.0]


def private(log_e: np.ndarray, sensitivity: float, mu: float, *, selected: bool = False) -> PrivateLogE:
    return PrivateLogE(log_e, sensitivity, mu, selected)


def law_of_the_product(log_e: list[float], step: float) -> tuple[int, np.ndarray]:
    """The law of the sum of log e-values with their noise, by convolution: (index of the first cell, masses)."""
    first, law = 0, np.ones(1)
    for value, delta, mu in zip(log_e, DELTAS, MUS, strict=True):
        scale = delta / mu
        low = math.floor((value - 9 * scale) / step)
        grid = np.arange(low, math.ceil((value + 9 * scale) / step) + 1)
        mass = norm.pdf(grid * step, value, scale)
        first, law = first + low, np.convolve(law, mass / mass.sum())
    return first, law


def mu_between(log_e: list[float], moved: list[float], step: float = 1e-3) -> float:
    """Largest μ that any likelihood-ratio test between the two products shows, over its thresholds."""
    (a, first), (b, second) = law_of_the_product(log_e, step), law_of_the_product(moved, step)
    size = max(a + len(first), b + len(second)) - min(a, b)
    p, q = np.zeros(size), np.zeros(size)
    p[a - min(a, b) :][: len(first)] = first
    q[b - min(a, b) :][: len(second)] = second
    order = np.argsort(-np.log(q + 1e-300) + np.log(p + 1e-300))
    false_positive, true_positive = np.cumsum(p[order]), np.cumsum(q[order])
    seen = (false_positive > 1e-3) & (true_positive < 1 - 1e-3)
    return float((norm.ppf(true_positive[seen]) - norm.ppf(false_positive[seen])).max())


def test_the_cost_of_a_product_is_what_the_best_test_between_neighbours_shows() -> None:
    """Every data set in turn loses a record that moves its log e-value by all of its sensitivity, either way."""
    log_e = [0.3, -1.0, 2.0]
    shown = []
    for k, sign in itertools.product(range(3), (-1, 1)):
        moved = list(log_e)
        moved[k] += sign * DELTAS[k]
        shown.append(mu_between(log_e, moved))
    assert max(shown) == pytest.approx(product_mu(DELTAS, MUS), rel=1e-3)


def test_a_product_never_costs_more_than_its_dearest_factor_and_falls_with_their_number() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        deltas, mus = np.exp(rng.normal(size=(2, rng.integers(1, 6))))
        assert product_mu(list(deltas), list(mus)) <= mus.max() * (1 + 1e-12)
    assert product_mu([0.3] * 9, [1.5] * 9) == pytest.approx(0.5)
    assert product_mu([0.3], [1.5]) == pytest.approx(1.5)


def test_the_product_is_a_canonical_e_value_of_its_own() -> None:
    parts = [private(np.array([value, 0.0]), d, m) for value, d, m in zip([1.0, 2.0, 3.5], DELTAS, MUS, strict=True)]
    product = product_of_disjoint(parts)
    scale = math.sqrt(sum((d / m) ** 2 for d, m in zip(DELTAS, MUS, strict=True)))
    assert product.log_e == pytest.approx([6.5, 0.0])
    assert product.sensitivity == 0.7
    assert product.mu == product_mu(DELTAS, MUS)
    assert product.scale == pytest.approx(scale, rel=1e-14)
    assert FixedRule(0.05, scale).rejects(product).tolist() == [True, False]
    # Given E, a product is shifted by Σ s²/2 and has noise of variance Σ s²: the law its own p-value assumes.
    shifted = private(np.array([-(scale**2) / 2 + 1.7 * scale]), 0.7, product.mu)
    assert np.exp(log_p_value(shifted)) >= norm.sf(1.7)


def test_a_product_with_a_selected_factor_counts_as_selected() -> None:
    product = product_of_disjoint([private(np.zeros(1), 0.4, 1.0), private(np.zeros(1), 0.4, 1.0, selected=True)])
    with pytest.raises(SelectedAfterwardsError):
        log_p_value(product)


def test_an_average_moves_by_at_most_the_largest_sensitivity_and_can_move_by_all_of_it() -> None:
    """All corners of the movements of three dependent statistics, at 300 places."""
    rng = np.random.default_rng(6)
    log_e = list(rng.normal(0, 2, (3, 300)))
    log_e[0][0] = 400.0  # one statistic carries the average: it moves with that one
    average, sensitivity = average_before(log_e, [0.7, 0.1, 0.4])
    assert sensitivity == 0.7
    moves = []
    for signs in itertools.product((-1, 0, 1), repeat=3):
        moved = [values + sign * delta for values, sign, delta in zip(log_e, signs, [0.7, 0.1, 0.4], strict=True)]
        moves.append(np.abs(average_before(moved, [0.7, 0.1, 0.4])[0] - average))
    assert np.max(moves) <= 0.7 + 1e-12
    assert np.max(moves) == pytest.approx(0.7)


def test_averages_are_those_of_the_e_values() -> None:
    log_e = [np.array([0.0, 1.0]), np.array([2.0, -3.0]), np.array([-1.0, 0.5])]
    expected = np.log(np.mean(np.exp(log_e), axis=0))
    assert average_before(log_e, DELTAS)[0] == pytest.approx(expected)
    after, mu = average_after([private(values, 0.1, m) for values, m in zip(log_e, MUS, strict=True)])
    assert after == pytest.approx(expected)
    assert mu == pytest.approx(math.sqrt(1 + 0.09 + 4))
    huge, _ = average_before([np.array([5000.0]), np.array([4000.0])], [1.0, 1.0])
    assert huge == pytest.approx(5000 - math.log(2))


def test_costs_of_releases_about_the_same_people_add_in_squares() -> None:
    assert composed_mu([0.3] * 16) == pytest.approx(4 * 0.3)
    assert composed_mu([0.7]) == 0.7


def test_at_one_total_cost_averaging_before_privatising_keeps_more_growth() -> None:
    """K = 16 alike statistics, Δ = 1, μ = 1 in all: s²/2 = .5 nats are lost before, several after with s = 4 each."""
    log_e, noise = [np.full(2000, 3.0)] * 16, SeededNoise(3)
    average, sensitivity = average_before(log_e, [1.0] * 16)
    before = privatise(average, sensitivity, 1.0, noise)
    each = Canonical(1.0, 1.0 / 4)
    after, cost = average_after(
        [PrivateLogE.of(each, privatise(values, 1.0, 1.0 / 4, noise), selected=False) for values in log_e]
    )
    assert cost == pytest.approx(1.0)
    assert 3.0 - before.mean() == pytest.approx(0.5, abs=5 / math.sqrt(2000))
    assert 3.0 - after.mean() > 2.0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_constants_out_of_range_are_named(bad: float) -> None:
    with pytest.raises(ValueError, match="sensitivities has an entry"):
        product_mu([0.1, bad], [1.0, 1.0])
    with pytest.raises(ValueError, match="mus has an entry"):
        product_mu([0.1, 0.1], [1.0, bad])
    with pytest.raises(ValueError, match="mus has an entry"):
        composed_mu([bad])
    with pytest.raises(ValueError, match="sensitivities has an entry"):
        average_before([np.zeros(1)], [bad])


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ValueError, match="mus is empty"):
        composed_mu([])
    with pytest.raises(ValueError, match="2 sensitivities and 1 mus"):
        product_mu([0.1, 0.1], [1.0])
    with pytest.raises(ValueError, match="2 sensitivities for 1 arrays"):
        average_before([np.zeros(1)], [0.1, 0.1])
    with pytest.raises(ValueError, match="different shapes"):
        average_before([np.zeros(1), np.zeros(2)], [0.1, 0.1])
    with pytest.raises(ValueError, match="no e-values"):
        product_of_disjoint([])
    with pytest.raises(ValueError, match="log_e has a NaN"):
        average_before([np.array([math.nan])], [0.1])
