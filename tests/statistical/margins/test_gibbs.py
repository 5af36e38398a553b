"""Gibbs sweeps against the full table of the distribution. Seeds are fixed; each test states its false alarms."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting import gibbs
from synth_platform.margins.fitting.gibbs import LogLinear
from synth_platform.margins.fitting.junction_tree import fit_junction_tree
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero

pytestmark = pytest.mark.statistical

SHAPE = (3, 2, 4, 2, 3)
NAMES = "abcde"
ROWS = 30_000
FALSE_ALARM = 1e-6
DOMAIN = Domain(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip(NAMES, SHAPE, strict=True)))


def model_and_table(zeros=()):
    """A tree of a triple, a pair of it and two others, times a table of every pair, and the same cell by cell."""
    generator = np.random.default_rng(1)
    full = generator.gamma(1.0, size=SHAPE) + 0.2
    full[:, 1] *= 2
    cliques = ("cab", "bd", "e")
    margins = []
    for clique in cliques:
        axes = [NAMES.index(name) for name in clique]
        kept = full.sum(axis=tuple(axis for axis in range(5) if axis not in axes))
        margins.append(Margin(tuple(clique), np.transpose(kept, np.argsort(np.argsort(axes))), ()))
    tree = fit_junction_tree(MarginSet(DOMAIN, tuple(margins)))
    table = tree.probabilities(NAMES).copy()
    model = LogLinear(DOMAIN, tree, zeros)
    for axes in combinations(range(5), 2):
        factor = generator.uniform(0.4, 1.6, [SHAPE[axis] for axis in axes])
        if axes == (1, 4):
            factor[1, 2] = 0
        table *= np.expand_dims(factor, tuple(axis for axis in range(5) if axis not in axes))
        model.multiply(axes[::-1], factor.T)
    for zero in zeros:
        table = table * ~zero.cells(DOMAIN)
    return model, table / table.sum()


def pearson(rows, table):
    counts = np.bincount(np.ravel_multi_index(tuple(rows.T.astype(np.int64)), SHAPE), minlength=table.size)
    expected = len(rows) * table.ravel()
    possible = expected > 0
    assert not counts[~possible].any()
    assert expected[possible].min() > 5
    return ((counts - expected)[possible] ** 2 / expected[possible]).sum(), possible.sum() - 1


ZERO = StructuralZero.of({"a": ["1", "2"], "c": ["3"], "d": ["1"]})


@pytest.mark.parametrize("zeros", [(), (ZERO,)])
@pytest.mark.parametrize("tables", [2**14, 1])
def test_rows_that_start_alike_end_as_the_table(monkeypatch, zeros, tables):
    """30,000 chains of 25 sweeps from one cell: Pearson's statistic over all cells; false alarm 1e-6 a case."""
    monkeypatch.setattr(gibbs, "TABLE", tables)
    model, table = model_and_table(zeros)
    rows = np.zeros((ROWS, 5), dtype=np.int16)
    generator = np.random.default_rng(2)
    for _ in range(25):
        model.sweep(rows, generator)
    statistic, freedom = pearson(rows, table)
    assert statistic < chi2.isf(FALSE_ALARM, freedom)


def test_one_sweep_leaves_draws_as_they_are_distributed_though_a_variable_is_not_moved(monkeypatch):
    """Pearson's statistic after a sweep that skips the variable of four categories; false alarm 1e-6."""
    monkeypatch.setattr(gibbs, "MOST_MOVED", 3)
    model, table = model_and_table((ZERO,))
    generator = np.random.default_rng(3)
    drawn = np.unravel_index(generator.choice(table.size, ROWS, p=table.ravel()), SHAPE)
    rows = np.stack(drawn, axis=1).astype(np.int16)
    before = rows.copy()
    model.sweep(rows, generator)
    assert (rows[:, 2] == before[:, 2]).all()
    assert (rows != before).any(axis=0).sum() == 4
    statistic, freedom = pearson(rows, table)
    assert statistic < chi2.isf(FALSE_ALARM, freedom)
