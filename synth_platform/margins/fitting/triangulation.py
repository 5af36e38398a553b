"""A junction tree for margins that have none of their own: what greedy elimination adds to them to make one.

Variables are eliminated one by one, each time the one whose clique, itself with its neighbours, has the fewest cells,
after which the neighbours count as joined (Koller & Friedman 2009, §9.4.3). The cliques that were met cover every
margin and have running intersection. Only names and numbers of categories are looked at, never a count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

from synth_platform.margins.domain import Domain
from synth_platform.margins.fitting.cliques import JunctionTree, decomposable

Names = tuple[str, ...]


def covering_cliques(domain: Domain, margins: Iterable[Sequence[str]]) -> tuple[Names, ...]:
    """Largest cliques of the triangulated graph, their variables in the order of the domain.

    Every variable of the domain is in one of them, alone if no margin joins it to another. Raises ValueError for an
    unknown variable.
    """
    size = dict(zip(range(len(domain.shape)), domain.shape, strict=True))
    joined: dict[int, set[int]] = {axis: set() for axis in size}
    for names in margins:
        for one, other in combinations(domain.axes(names), 2):
            joined[one].add(other)
            joined[other].add(one)
    cliques: list[frozenset[int]] = []
    cells = {axis: _cells(size, axis, others) for axis, others in joined.items()}
    while joined:
        axis = min(cells, key=lambda axis: (cells[axis], axis))
        del cells[axis]
        neighbours = joined.pop(axis)
        clique = frozenset((axis, *neighbours))
        if not any(clique <= larger for larger in cliques):
            cliques.append(clique)
        for other in neighbours:
            joined[other] |= neighbours
            joined[other] -= {axis, other}
            cells[other] = _cells(size, other, joined[other])
    return tuple(tuple(domain.names[axis] for axis in sorted(clique)) for clique in cliques)


def covering_tree(domain: Domain, margins: Iterable[Sequence[str]]) -> JunctionTree:
    """The cliques as a junction tree."""
    tree = decomposable(covering_cliques(domain, margins))
    assert tree is not None  # elimination leaves a chordal graph
    return tree


def covering_cells(domain: Domain, margins: Iterable[Sequence[str]]) -> int:
    """Cells of all cliques together: the numbers that a model of the margins keeps."""
    return sum(math.prod(domain.project(clique).shape) for clique in covering_cliques(domain, margins))


def _cells(size: dict[int, int], axis: int, others: Iterable[int]) -> int:
    return size[axis] * math.prod(size[other] for other in others)
