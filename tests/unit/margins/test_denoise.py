"""Noisy tables made margins: against least squares over the full table, bisection, and what must hold of any input."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.noise.denoise import NoisyTable, TooNoisyError, denoise
from synth_platform.margins.structural_zeros import StructuralZero

SHAPE = (3, 2, 4)
DOMAIN = Domain(
    tuple(Variable(name, tuple(f"{name}{i}" for i in range(n))) for name, n in zip("abc", SHAPE, strict=True))
)


def noisy(names, sigma, people=1000.0, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.normal(people, sigma, DOMAIN.project(names).shape)
    return NoisyTable(tuple(names), counts, sigma)


def least_squares(tables):
    """Fitted tables of min over full tables x of Σ |A x − y|²/σ², by numpy's solver."""
    full = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    rows, right = [], []
    for table in tables:
        axes = DOMAIN.axes(table.names)
        for at in np.ndindex(*table.counts.shape):
            inside = np.zeros(SHAPE)
            inside[tuple(at[axes.index(axis)] if axis in axes else slice(None) for axis in range(3))] = 1
            rows.append(inside.ravel() / table.sigma)
            right.append(table.counts[at] / table.sigma)
    x = np.linalg.lstsq(np.array(rows), np.array(right))[0][full]
    return {
        table.names: x.sum(axis=tuple(axis for axis in range(3) if axis not in DOMAIN.axes(table.names))).transpose(
            np.argsort(np.argsort(DOMAIN.axes(table.names)))
        )
        for table in tables
    }


@pytest.mark.parametrize(
    "names",
    [
        ["ab", "ac", "bc"],
        ["ab", "bc"],
        ["bca", "ab"],
        ["abc", "a", "bc"],
        ["cba", "ca", "b", "c", "ac", "ac"],
        ["a", "b", "c"],
        ["ca", "ab", "ca"],
    ],
    ids="+".join,
)
def test_tables_with_many_people_are_the_weighted_least_squares_estimate(names):
    """Claim: with nothing below nought, the margins are those of the full table nearest to all tables in units of their
    noise, for overlapping tables of any order, unequal noise, and tables asked twice."""
    sigmas = np.random.default_rng(7).uniform(0.5, 9, len(names))
    tables = [noisy(name, sigma, seed=at) for at, (name, sigma) in enumerate(zip(names, sigmas, strict=True))]
    expected = least_squares(tables)
    margins = denoise(DOMAIN, tables)
    seen = {}
    for table in tables:
        seen.setdefault(frozenset(table.names), table.names)
    assert [margin.names for margin in margins] == list(seen.values())
    for margin in margins:
        np.testing.assert_allclose(margin.counts, expected[margin.names], rtol=1e-9)


def test_negative_counts_go_without_people_being_added():
    """Claim: one table becomes the nearest without negatives and of its total: max(x − t, 0) with t by bisection."""
    counts = np.array([[40.0, -7.0, 3.0, -1.0], [0.5, 12.0, -30.0, 9.0], [2.0, 1.0, -0.5, 25.0]])
    domain = DOMAIN.project("ac")
    [margin] = denoise(domain, [NoisyTable(("a", "c"), counts, 5.0)])
    taken = brentq(lambda t: np.maximum(counts - t, 0).sum() - counts.sum(), -50, 50, xtol=1e-12)
    np.testing.assert_allclose(margin.counts, np.maximum(counts - taken, 0), atol=1e-9)
    assert margin.total == pytest.approx(counts.sum())


@pytest.mark.parametrize("seed", range(5))
def test_sparse_tables_agree_have_one_total_and_nobody_below_nought(seed):
    """Claim: what a fit needs. The margins of one variable in different tables are within two percent of each other,
    which they were not before, and the counts are a fifth nearer to the people."""
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(Variable(name, tuple(map(str, range(8)))) for name in "abcd"))
    codes = rng.geometric(0.4, size=(2000, 4)).clip(1, 8) - 1
    true = {
        pair: np.histogram2d(*codes[:, list(pair)].T, bins=(range(9), range(9)))[0]
        for pair in combinations(range(4), 2)
    }
    tables = [
        NoisyTable((("abcd")[a], ("abcd")[b]), counts + rng.normal(0, 15, (8, 8)), 15.0)
        for (a, b), counts in true.items()
    ]
    margins = denoise(domain, tables)
    totals = [margin.total for margin in margins]
    weights = [table.counts.sum() for table in tables]
    np.testing.assert_allclose(totals, np.mean(weights), rtol=1e-12)

    def apart(tables):
        ones = {}
        for table in tables:
            for axis, name in enumerate(table.names):
                ones.setdefault(name, []).append(table.counts.sum(axis=1 - axis))
        return max(np.abs(np.array(one) - np.mean(one, axis=0)).sum(axis=1).max() for one in ones.values()) / 2000

    assert apart(margins) < 0.02 < apart(tables)
    assert min(margin.counts.min() for margin in margins) == 0.0

    def error(tables):
        return np.mean(
            [np.abs(table.counts - counts).sum() for table, counts in zip(tables, true.values(), strict=True)]
        )

    assert error(margins) < 0.8 * error(tables)


def test_structural_zeros_are_empty_and_count_for_nothing():
    """Claim: noise in impossible cells is thrown away: the total is the mean of the tables' possible cells, weighted by
    the inverse of their number."""
    zeros = (StructuralZero.of({"a": ["a0"], "c": ["c1", "c2"]}),)
    tables = [noisy("ac", 3.0, 50, seed=1), noisy("ba", 3.0, 100, seed=2)]
    tables[0].counts[0, 1:3] = 900.0
    margins = denoise(DOMAIN, tables, zeros)
    counts = margins.margins[0].counts
    assert counts[0, 1:3].tolist() == [0.0, 0.0]
    assert (counts > 0).sum() == 10
    own = tables[0].counts.sum() - 1800
    total = (own / 10 + tables[1].counts.sum() / 6) / (1 / 10 + 1 / 6)
    assert [margin.total for margin in margins] == pytest.approx([total] * 2)


def test_provenance_tells_the_mechanism_and_the_noise_of_all_draws():
    once = denoise(DOMAIN, [noisy("abc", 3.0), noisy("a", 1.25)])
    assert once.margins[0].provenance[0] == "noisy counts: discrete Gaussian of standard deviation 3 on each cell"
    twice = denoise(DOMAIN, [noisy("abc", 3.0), noisy("cab", 4.0)])
    assert len(twice.margins) == 1
    assert "standard deviation 2.4 on" in twice.margins[0].provenance[0]


@pytest.mark.parametrize("counts", [np.zeros(SHAPE), np.full(SHAPE, -3.0), np.full(SHAPE, 0.9 / 24)])
def test_noise_that_leaves_nobody_is_an_error_without_a_figure(counts):
    with pytest.raises(TooNoisyError, match="raise epsilon") as refused:
        denoise(DOMAIN, [NoisyTable(("a", "b", "c"), counts, 5.0)])
    assert not re.search("[0-9]", str(refused.value))


def test_the_same_tables_give_the_same_margins_to_the_last_bit():
    tables = [noisy(names, 300.0, seed=3) for names in ("ab", "bc", "ca")]
    first, second = (denoise(DOMAIN, tables) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert one.counts.tobytes() == other.counts.tobytes()
