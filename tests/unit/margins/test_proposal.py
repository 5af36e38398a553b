"""The proposal is log-linear in pairs that margins hold, which raking from equal weights rests on."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.proposal import proposal
from synth_platform.margins.margin import Margin, MarginSet

SIZES = dict(zip("abcdef", (2, 3, 4, 2, 3, 2), strict=True))
DOMAIN = Domain(tuple(Variable(name, tuple(map(str, range(size)))) for name, size in SIZES.items()))
PAIRS = tuple(combinations(SIZES, 2))


def margins_of(full, names):
    order = list(SIZES)
    kept = [full.sum(axis=tuple(at for at, name in enumerate(order) if name not in wanted)) for wanted in names]
    return MarginSet(DOMAIN, tuple(Margin(tuple(n), table, ()) for n, table in zip(names, kept, strict=True)))


def interactions(log, axes):
    """Largest difference of differences along the axes: nought unless a term of log is of all these variables."""
    for axis in axes:
        log = np.diff(log, axis=axis)
    return np.abs(log).max()


@pytest.mark.parametrize("rounded", [False, True])
def test_no_relation_of_three_variables_and_none_of_a_pair_without_a_margin(rounded):
    full = 100 * np.random.default_rng(1).gamma(0.5, size=DOMAIN.shape)
    names = [pair for pair in PAIRS if pair not in {("a", "c"), ("b", "f")}]
    margins = margins_of(full, names)
    if rounded:
        tens = (margin.became(np.maximum(10 * np.round(margin.counts / 300), 10), "rounded") for margin in margins)
        margins = margins.with_margins(tuple(tens))
    tree = proposal(margins)
    assert max(map(len, tree.tree.cliques)) == 3
    log = np.log(tree.probabilities(tuple(SIZES)))
    assert max(interactions(log, axes) for axes in combinations(range(6), 3)) < 1e-9
    assert interactions(log, (0, 2)) < 1e-9
    assert interactions(log, (1, 5)) < 1e-9


def test_the_distribution_of_a_chain_is_found():
    steps = [np.random.default_rng(at).gamma(0.5, size=DOMAIN.shape[at : at + 2]) + 0.01 for at in range(5)]
    chain = np.einsum("ab,bc,cd,de,ef->abcdef", *steps)
    tree = proposal(margins_of(chain, PAIRS))
    assert all(any(set(pair) <= set(clique) for clique in tree.tree.cliques) for pair in pairwise(SIZES))
    apart = np.abs(tree.probabilities(tuple(SIZES)) - chain / chain.sum()).sum() / 2
    assert apart < 0.08  # two per cent of each table are spread


def test_without_triples_it_is_the_tree_of_largest_mutual_information():
    """Pairs round a ring: the one that tells least is left out."""
    full = np.random.default_rng(3).gamma(0.3, size=DOMAIN.shape)
    ring = [*pairwise(SIZES), ("a", "f")]
    margins = margins_of(full, ring)

    def information(margin):
        p = margin.counts / margin.total
        return (p * np.log(p / np.outer(p.sum(1), p.sum(0)))).sum()

    weakest = min(margins, key=information).names
    assert {frozenset(clique) for clique in proposal(margins).tree.cliques} == set(map(frozenset, ring)) - {
        frozenset(weakest)
    }


def test_variables_of_their_own_margin_only_are_independent():
    full = np.random.default_rng(4).gamma(0.5, size=DOMAIN.shape)
    tree = proposal(margins_of(full, ["a", "bc", "d", "e", "f"]))
    assert {frozenset(clique) for clique in tree.tree.cliques} == set(map(frozenset, ("a", "bc", "d", "e", "f")))
    assert tree.probabilities("d") == pytest.approx(full.sum((0, 1, 2, 4, 5)) / full.sum())
