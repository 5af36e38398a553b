"""Every engine against an independent optimiser of the dual, and against answers of mbi, ipfn and humanleague.

Maximum entropy under Ap = b has p = exp(Aᵀλ) / Z with λ minimising log Z(λ) − λ·b. It is found by Newton steps on at
most 200 cells, which shares nothing with proportional fitting but the answer.
"""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.dense import fit_dense
from synth_platform.margins.fitting.fit import fit
from synth_platform.margins.fitting.junction_tree import fit_junction_tree
from synth_platform.margins.fitting.weighted_rows import fit_weighted_rows
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero

NAMES = "abcde"
SHAPE = (3, 4, 2, 5)
FROZEN = Path(__file__).with_name("peers.json")
CANDIDATES = 100_000


def sums(table, axes):
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in axes))


def margins_of(table, names, zeros=()):
    domain = Domain(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip(NAMES, table.shape, strict=False)))
    margins = (Margin(tuple(n), sums(table, [NAMES.index(name) for name in n]), ("table",)) for n in names)
    return MarginSet(domain, tuple(margins), zeros)


def maximum_entropy(margins):
    """Probabilities of the full table that the dual gives, over the cells that no structural zero covers."""
    domain = margins.domain
    possible = np.ones(domain.shape, dtype=bool)
    for zero in margins.zeros:
        possible &= ~zero.cells(domain)
    cells = np.eye(domain.cells).reshape(domain.cells, *domain.shape)
    rows = [[sums(cell, domain.axes(margin.names)).ravel() for cell in cells] for margin in margins]
    design = np.hstack(rows)[possible.ravel()]
    wanted = np.concatenate([(margin.counts / margin.total).ravel() for margin in margins])

    def dual(at):
        probabilities = softmax(design @ at)
        return logsumexp(design @ at) - at @ wanted, design.T @ probabilities - wanted

    def curvature(at):
        probabilities = softmax(design @ at)
        mean = design.T @ probabilities
        return design.T @ (probabilities[:, None] * design) - np.outer(mean, mean)

    found = minimize(
        dual, np.zeros(design.shape[1]), jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-11}
    )
    table = np.zeros(domain.shape)
    table[possible] = softmax(design @ found.x)
    assert np.abs(dual(found.x)[1]).max() < 1e-9
    return table


def people(seed=1):
    generator = np.random.default_rng(seed)
    return generator.poisson(generator.gamma(0.7, 20.0, SHAPE)).astype(float) + 1


def pairs(count=4):
    return ["".join(pair) for pair in combinations(NAMES[:count], 2)]


def apart(one, other):
    return np.abs(one - other).sum() / 2


NEVER = (StructuralZero.of({"a": ["0"], "b": ["1", "2"], "d": ["4"]}), StructuralZero.of({"b": ["3"], "c": ["1"]}))


@pytest.mark.parametrize("names", [pairs(), ["abc", "cd", "ad"], ["abcd"], list("abcd")])
@pytest.mark.parametrize("zeros", [(), NEVER])
def test_the_full_table_is_the_optimisers(names, zeros):
    table = people()
    for zero in zeros:
        table[np.broadcast_to(zero.cells(margins_of(table, pairs()).domain), SHAPE)] = 0
    margins = margins_of(table, names, zeros)
    exact = maximum_entropy(margins)
    fitted = fit_dense(margins, 1e-11).probabilities(NAMES[:4])
    assert apart(fitted, exact) < 1e-8
    if names != ["abcd"]:
        assert apart(exact, table / table.sum()) > 0.01


def test_the_junction_tree_is_the_optimisers():
    margins = margins_of(people(2), ["abc", "cd"])
    assert apart(fit_junction_tree(margins).probabilities(NAMES[:4]), maximum_entropy(margins)) < 1e-8


def test_weighted_rows_approach_the_optimisers():
    """120 cells of 100,000 candidates: half the mean absolute deviations sum to .4 √(120 / 100,000) = .014 at most."""
    margins = margins_of(people(3), pairs())
    fitted = fit_weighted_rows(margins, np.random.default_rng(4), CANDIDATES, 1e-6)
    exact = maximum_entropy(margins)
    assert apart(fitted.probabilities(NAMES[:4]), exact) < 0.014
    for margin in margins:
        assert fitted.probabilities(margin.names) == pytest.approx(margin.counts / margin.total, abs=3e-6)


@pytest.mark.parametrize("peer", json.loads(FROZEN.read_text()), ids=lambda peer: f"{peer['tool']}, {peer['case']}")
def test_the_fit_is_the_peers(peer):
    """Answers of `python -m benchmarks.margins_fit --freeze`, each as close as its own residual."""
    names = ["".join(NAMES[axis] for axis in axes) for axes in peer["axes"]]
    domain = Domain(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip(NAMES, peer["shape"], strict=False)))
    counts = [
        np.array(counts).reshape(domain.project(n).shape) for n, counts in zip(names, peer["counts"], strict=True)
    ]
    margins = MarginSet(domain, tuple(Margin(tuple(n), c, ()) for n, c in zip(names, counts, strict=True)))
    theirs = np.array(peer["table"]).reshape(domain.shape)
    ours = fit(MarginSet(domain, margins), np.random.default_rng(1))
    assert ours.report.engine == peer["engine"]
    assert ours.report.status == "matched"
    assert apart(ours.probabilities(domain.names), theirs) < 10 * peer["residual"] + 5e-5
