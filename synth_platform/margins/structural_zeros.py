"""Combinations that cannot occur, declared by a person and never guessed from a count of nought.

A declared zero names a set of categories for each of some variables; every cell with all of them is impossible. A cell
that merely was empty says "nobody here", which is a statement about people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.domain import Domain


@dataclass(frozen=True)
class StructuralZero:
    """Categories by variable that never stand together, such as {"age": ("0-15",), "marital": ("married",)}."""

    categories: tuple[tuple[str, tuple[str, ...]], ...]

    @staticmethod
    def of(categories: Mapping[str, Sequence[str]]) -> StructuralZero:
        """Raises ValueError for no variable, or a variable without categories."""
        empty = next((name for name, labels in categories.items() if not labels), None)
        if empty is not None or not categories:
            raise ValueError(f"a structural zero needs categories{f' of {empty}' if empty else ' of some variables'}")
        return StructuralZero(tuple((name, tuple(labels)) for name, labels in categories.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """Variables that the combination is of."""
        return tuple(name for name, _ in self.categories)

    def cells(self, domain: Domain) -> NDArray[np.bool_]:
        """Impossible cells, broadcastable to `domain.shape`. Raises ValueError for an unknown variable or category."""
        impossible = np.ones((1,) * len(domain.variables), dtype=bool)
        for (name, labels), axis in zip(self.categories, domain.axes(self.names), strict=True):
            known = domain.variables[axis].categories
            unknown = next((label for label in labels if label not in known), None)
            if unknown is not None:
                raise ValueError(f"structural zero: variable {name} has no category {unknown!r}")
            along = [1] * len(domain.variables)
            along[axis] = -1
            impossible = impossible & np.isin(np.array(known), labels).reshape(along)
        return impossible


def possible(domain: Domain, zeros: Sequence[StructuralZero]) -> NDArray[np.bool_]:
    """Cells of a table that no declared zero covers, bool [domain.shape].

    Only zeros whose variables are all in `domain` speak of its cells: a margin without one of them also counts
    people outside the impossible combination.
    """
    cells = np.ones(domain.shape, dtype=bool)
    for zero in zeros:
        if set(zero.names) <= set(domain.names):
            cells &= ~zero.cells(domain)
    return cells
