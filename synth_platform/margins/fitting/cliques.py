"""Junction trees: cliques of variables in a tree with running intersection.

Whatever two cliques share stands in every clique between them. Over any tree Σ|separator| ≤ Σ|clique| − variables, with
equality only under running intersection (the cliques of one variable span a forest of at most one edge fewer than there
are of them), so a spanning tree of the heaviest separators tells (Bernstein & Goodman 1981, SIAM J. Comput. 10).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

Names = tuple[str, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, each after its parent; the first is the root, its parent is itself.

    separators: what a clique shares with its parent, () for the root and between components that share nothing.
    """

    cliques: tuple[Names, ...]
    parents: tuple[int, ...]
    separators: tuple[Names, ...]

    def walk(self) -> Iterator[tuple[int, int]]:
        """Steps (from, to) along edges: from the root down every branch and back."""
        children = self.children()
        path, unseen = [0], [iter(children[0])]
        while path:
            down = next(unseen[-1], None)
            if down is not None:
                yield path[-1], down
                path.append(down)
                unseen.append(iter(children[down]))
            else:
                unseen.pop()
                here = path.pop()
                if path:
                    yield here, path[-1]

    def children(self) -> list[list[int]]:
        """Positions of the children of each clique."""
        children: list[list[int]] = [[] for _ in self.cliques]
        for clique, parent in enumerate(self.parents[1:], start=1):
            children[parent].append(clique)
        return children


def decomposable(margins: Iterable[Sequence[str]]) -> JunctionTree | None:
    """A junction tree of the largest margins' variables, or None where they have none.

    Margins that share nothing are joined by empty separators: they are independent.
    """
    cliques = _largest(margins)
    names = sorted({name for clique in cliques for name in clique})
    if not cliques or len(cliques) > len(names):  # in a junction tree each clique brings a variable of its own
        return None
    position = {name: axis for axis, name in enumerate(names)}
    holds = np.zeros((len(cliques), len(names)), dtype=np.float32)
    for row, clique in enumerate(cliques):
        holds[row, [position[name] for name in clique]] = 1

    order, parents = [0], {0: 0}
    shared, nearest = holds @ holds[0], np.zeros(len(cliques), dtype=np.int64)
    weight, shared[0] = 0.0, -1
    while len(order) < len(cliques):
        new = int(shared.argmax())
        weight += float(shared[new])
        parents[new] = int(nearest[new])
        order.append(new)
        shared[new] = -1
        overlap = holds @ holds[new]
        closer = (overlap > shared) & (shared >= 0)
        shared[closer], nearest[closer] = overlap[closer], new
    if weight != sum(map(len, cliques)) - len(names):
        return None
    place = {clique: at for at, clique in enumerate(order)}
    return JunctionTree(
        tuple(cliques[clique] for clique in order),
        tuple(place[parents[clique]] for clique in order),
        ((), *(tuple(n for n in cliques[c] if n in cliques[parents[c]]) for c in order[1:])),
    )


def _largest(margins: Iterable[Sequence[str]]) -> list[Names]:
    """Margins that no other contains, of equal ones the first."""
    distinct = list({frozenset(names): tuple(names) for names in margins}.values())
    holders: dict[str, set[int]] = {}
    for at, names in enumerate(distinct):
        for name in names:
            holders.setdefault(name, set()).add(at)
    return [names for names in distinct if len(set.intersection(*(holders[name] for name in names))) == 1]
