"""The junction tree of margins that have none: it holds every margin, and as little else as greedy elimination adds."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.cliques import decomposable
from synth_platform.margins.fitting.triangulation import covering_cells, covering_cliques, covering_tree


def domain_of(*sizes):
    return Domain(tuple(Variable(chr(97 + at), tuple(map(str, range(n)))) for at, n in enumerate(sizes)))


def test_a_square_needs_one_chord_and_the_smaller_pair_of_triangles_is_taken():
    """By hand: a (5) is across from c (2), b (3) from d (7); the chord a-c costs 5·2·(3 + 7), b-d 3·7·(5 + 2)."""
    domain = domain_of(5, 3, 2, 7)
    square = ("ab", "bc", "cd", "da")
    assert set(covering_cliques(domain, square)) == {("a", "b", "c"), ("a", "c", "d")}
    assert covering_cells(domain, square) == 5 * 2 * (3 + 7)


def test_chains_and_lone_variables_stay_as_they_are():
    domain = domain_of(2, 3, 4, 5)
    assert set(covering_cliques(domain, ("ab", "cb"))) == {("a", "b"), ("b", "c"), ("d",)}
    assert set(covering_cliques(domain, ())) == {("a",), ("b",), ("c",), ("d",)}
    assert covering_cells(domain, ("abc", "ab", "a")) == 24 + 5


@pytest.mark.parametrize("seed", range(30))
def test_every_margin_is_in_a_clique_of_a_tree_with_running_intersection(seed):
    rng = np.random.default_rng(seed)
    domain = domain_of(*rng.integers(2, 6, 9))
    pairs = list(combinations(domain.names, 2))
    margins = [pairs[at] for at in rng.choice(len(pairs), rng.integers(1, 25), replace=False)] + [("a", "e", "i")]
    tree = covering_tree(domain, margins)
    assert tree == decomposable(covering_cliques(domain, margins))
    assert all(any(set(margin) <= set(clique) for clique in tree.cliques) for margin in margins)
    assert {name for clique in tree.cliques for name in clique} == set(domain.names)
    assert covering_cells(domain, margins) == sum(math.prod(domain.project(c).shape) for c in tree.cliques)


def test_an_unknown_variable_is_named():
    with pytest.raises(ValueError, match="unknown variable z"):
        covering_tree(domain_of(2, 2), ("az",))
