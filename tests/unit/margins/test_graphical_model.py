"""The model near noisy margins, against sums over the whole table, its equations and the engine of the full table."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.dense import fit_dense
from synth_platform.margins.noise.denoise import NoisyTable
from synth_platform.margins.noise.graphical_model import RELAXATION, estimate
from synth_platform.margins.rows import Rows, count_margins
from synth_platform.margins.structural_zeros import StructuralZero, possible

SIZES = (3, 4, 2, 5, 3)
DOMAIN = Domain(tuple(Variable(name, tuple(map(str, range(n)))) for name, n in zip("abcde", SIZES, strict=True)))
SQUARE = (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("e",))
NEVER = StructuralZero.of({"a": ["0"], "c": ["1"]})


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    hidden = rng.normal(size=4000)
    codes = [np.clip(np.round(hidden + rng.normal(size=4000) + n / 2), 0, n - 1) for n in SIZES]
    return Rows(DOMAIN, np.stack(codes, axis=1).astype(np.int64))


def noisy(rows, margins, sigma, seed=2):
    rng = np.random.default_rng(seed)
    return [NoisyTable(m, rows.count(m) + rng.normal(0, sigma, rows.domain.project(m).shape), sigma) for m in margins]


def whole_table(potentials, zeros=()):
    """p ∝ exp(Σ θ) over all 360 cells, by the formula."""
    log_p = np.zeros(SIZES)
    for names, theta in potentials.items():
        log_p += np.expand_dims(theta, tuple(at for at, name in enumerate("abcde") if name not in names))
    p = np.exp(log_p) * possible(DOMAIN, zeros)
    return p / p.sum()


def summed(table, names):
    return table.sum(axis=tuple(at for at, name in enumerate("abcde") if name not in names))


@pytest.mark.parametrize("zeros", [(), (NEVER,)])
def test_the_tree_has_the_margins_of_the_whole_table(rows, zeros):
    """Every margin of one to three variables, within cliques and across; a-c of the zero is no margin of its own."""
    model = estimate(DOMAIN, noisy(rows, SQUARE, 20.0), zeros)
    whole = whole_table(model.potentials, zeros)
    for size in (1, 2, 3):
        for names in combinations("abcde", size):
            np.testing.assert_allclose(model.fitted.probabilities(names), summed(whole, names), atol=1e-12)
    assert (model.fitted.probabilities(("a", "c"))[0, 1] == 0) == bool(zeros)


@pytest.mark.parametrize("zeros", [(), (NEVER,)])
def test_margins_miss_noisy_counts_by_what_the_dual_says(rows, zeros):
    """n M(p) = y − c θ in every cell, which no other p fulfils: the problem is strictly convex."""
    tables = noisy(rows, SQUARE, 20.0)
    model = estimate(DOMAIN, tables, zeros, tolerance=1e-6)
    assert model.fitted.report.status == "matched"
    for table in tables:
        expected = table.counts - RELAXATION * 20.0 * model.potentials[table.names]
        np.testing.assert_allclose(model.counts(table.names), expected, atol=1e-3)
    again = estimate(DOMAIN, tables, zeros, {n: t + 1.0 for n, t in model.potentials.items()}, tolerance=1e-6)
    np.testing.assert_allclose(again.counts(("a", "e")), model.counts(("a", "e")), atol=1e-3)


def test_without_noise_it_is_the_distribution_of_maximum_entropy(rows):
    """Against iterative proportional fitting of the full table, to one person in 10,000."""
    model = estimate(DOMAIN, noisy(rows, SQUARE, 1e-3), tolerance=1e-3)
    dense = fit_dense(count_margins(rows, SQUARE, "rows"))
    for names in combinations("abcde", 3):
        missed = np.abs(model.fitted.probabilities(names) - dense.probabilities(names)).sum() / 2
        assert missed < 1e-4


def test_its_own_margins_fix_it(rows):
    """The claim that margins of the model can be handed on instead of the model: the dense engine finds it again."""
    model = estimate(DOMAIN, noisy(rows, SQUARE, 20.0))
    whole = whole_table(model.potentials)
    codes = np.stack(np.unravel_index(np.arange(whole.size), SIZES), axis=1)
    margins = count_margins(Rows(DOMAIN, codes), SQUARE, "model")
    margins = margins.with_margins(tuple(m.became(model.counts(m.names), "model") for m in margins))
    np.testing.assert_allclose(fit_dense(margins, 1e-9).probabilities("abcde"), whole, atol=1e-8)


def test_people_are_the_mean_of_totals_by_precision(rows):
    """Totals 100 (2 cells, σ 1: variance 2) and 130 (3 cells, σ 2: variance 12): (100·6 + 130)/7."""
    tables = [NoisyTable(("c",), np.array([60.0, 40.0]), 1.0), NoisyTable(("a",), np.array([60.0, 40.0, 30.0]), 2.0)]
    assert estimate(DOMAIN, tables).people == pytest.approx(730 / 7)
    assert estimate(DOMAIN, [NoisyTable(("c",), np.array([-9.0, -4.0]), 1.0)]).people == 1.0


def test_a_margin_measured_twice_counts_as_its_mean_by_precision(rows):
    one, other = NoisyTable(("c",), np.array([60.0, 40.0]), 1.0), NoisyTable(("c",), np.array([90.0, 10.0]), 2.0)
    both = estimate(DOMAIN, [one, other], tolerance=1e-8)
    mean = estimate(DOMAIN, [NoisyTable(("c",), np.array([66.0, 34.0]), 0.8**0.5)], tolerance=1e-8)
    np.testing.assert_allclose(both.counts(("c",)), mean.counts(("c",)), rtol=1e-9)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "at least one noisy margin"),
        ([NoisyTable(("b", "a"), np.ones((4, 3)), 1.0)], "b × a: .* in the order of the domain"),
        ([NoisyTable(("z",), np.ones(3), 1.0)], "unknown variable z"),
    ],
)
def test_what_cannot_be_modelled_is_refused(tables, message):
    with pytest.raises(ValueError, match=message):
        estimate(DOMAIN, tables)
