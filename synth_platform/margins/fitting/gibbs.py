"""A log-linear distribution of rows that is learnt by raking, and fresh rows of it by Gibbs sampling.

log p = Σ terms + a constant, a term being a table over few variables. A sweep gives each variable of every row in turn
a value drawn given the row's others (Geman & Geman 1984), which needs no full table and no constant, and leaves p as it
is: rows that stand for p, however often they repeat each other, stand for it afterwards and are nearly all different.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.domain import Domain
from synth_platform.margins.fitting.junction_tree import JunctionTreeFit
from synth_platform.margins.margin import Counts
from synth_platform.margins.structural_zeros import StructuralZero

CHUNK = 2**20  # numbers of a chunk: rows × categories
TABLE = 2**14  # numbers of a table that several terms are added up in, to look them up at once
MOST_MOVED = 512  # categories of a variable beyond which it stays as it is, which costs time and no correctness

Axes = tuple[int, ...]
Rows = NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class _Given:
    """Terms of one variable: logarithms [categories, cells], and the axes whose cells they are."""

    axes: Axes
    logs: NDArray[np.float32]


class LogLinear:
    """A distribution of rows; raking multiplies it, sweeps draw from it."""

    def __init__(self, domain: Domain, start: JunctionTreeFit, zeros: Sequence[StructuralZero]) -> None:
        self.shape = domain.shape
        self.terms: dict[Axes, Counts] = {}
        for table, clique, separator in zip(start.tables, start.tree.cliques, start.tree.separators, strict=True):
            self.multiply(domain.axes(clique), table)
            shared = table.sum(axis=tuple(at for at, name in enumerate(clique) if name not in separator))
            below = np.divide(1.0, shared, out=np.ones_like(shared), where=shared > 0)
            self.multiply(domain.axes([name for name in clique if name in separator]), below)
        self.zeros = [
            {axis: np.isin(domain.variables[axis].categories, labels) for axis, labels in zip(axes, kept, strict=True)}
            for zero in zeros
            for axes, kept in [(domain.axes(zero.names), [labels for _, labels in zero.categories])]
        ]

    def multiply(self, axes: Axes, factor: Counts) -> None:
        """Multiplies the distribution by a table over some axes, [categories of the first, …]."""
        with np.errstate(divide="ignore"):
            log = np.log(np.transpose(factor, np.argsort(axes)))
        sought = tuple(sorted(axes))
        holder = next((held for held in self.terms if set(sought) <= set(held)), None)
        if holder is None:
            self.terms[sought] = log
        else:
            missing = tuple(at for at, axis in enumerate(holder) if axis not in sought)
            self.terms[holder] = self.terms[holder] + np.expand_dims(log, missing)

    def sweep(self, rows: Rows, generator: np.random.Generator) -> None:
        """Draws every variable of rows [rows, variables] given the others, in place.

        A value that a structural zero rules out is not taken, and the row keeps the one it has.
        """
        moved = [axis for axis, size in enumerate(self.shape) if 1 < size <= MOST_MOVED]
        given = {axis: self._given(axis) for axis in moved}
        length = CHUNK // max((self.shape[axis] for axis in moved), default=1)
        for first in range(0, len(rows), length):
            columns = rows[first : first + length].T.astype(np.int64)
            for axis in moved:
                new = self._drawn(columns, self.shape[axis], given[axis], generator)
                for zero in self.zeros:
                    if axis in zero:
                        others = (inside[columns[other]] for other, inside in zero.items() if other != axis)
                        ruled_out = np.logical_and.reduce([zero[axis][new], *others])
                        new[ruled_out] = columns[axis][ruled_out]
                columns[axis] = new
            rows[first : first + length] = columns.T

    def _drawn(
        self, columns: NDArray[np.int64], size: int, given: Sequence[_Given], generator: np.random.Generator
    ) -> NDArray[np.int64]:
        logs = np.zeros((size, columns.shape[1]), dtype=np.float32)
        for terms in given:
            logs += terms.logs[:, _cells(columns, terms.axes, self.shape)]
        logs -= logs.max(axis=0)
        steps = np.cumsum(np.exp(logs, out=logs), axis=0, out=logs)
        # A multiple of 2^-24 below one, times the last step, may round up to it: the last category with mass is meant.
        levels = np.minimum(generator.random(logs.shape[1], dtype=np.float32) * steps[-1], np.nextafter(steps[-1], 0))
        found: NDArray[np.int64] = (steps <= levels).sum(axis=0)
        return found

    def _given(self, axis: int) -> list[_Given]:
        """Terms with a variable, added up in tables over as many others as fit."""
        size, groups = self.shape[axis], list[tuple[Axes, list[tuple[Axes, Counts]]]]()
        for axes in sorted((axes for axes in self.terms if axis in axes), key=len, reverse=True):
            others = tuple(other for other in axes if other != axis)
            term = (others, np.moveaxis(self.terms[axes], axes.index(axis), 0))
            for at, (held, members) in enumerate(groups):
                union = tuple(sorted({*held, *others}))
                if size * math.prod(self.shape[other] for other in union) <= TABLE:
                    groups[at] = (union, [*members, term])
                    break
            else:
                groups.append((others, [term]))
        return [self._added(size, axes, members) for axes, members in groups]

    def _added(self, size: int, axes: Axes, members: list[tuple[Axes, Counts]]) -> _Given:
        logs = np.zeros((size, *(self.shape[axis] for axis in axes)), dtype=np.float32)
        for others, log in members:
            logs += np.expand_dims(log, tuple(1 + at for at, axis in enumerate(axes) if axis not in others))
        return _Given(axes, logs.reshape(size, -1))


def _cells(columns: NDArray[np.int64], axes: Axes, shape: Sequence[int]) -> NDArray[np.int64]:
    cells: NDArray[Any] = np.zeros(columns.shape[1], dtype=np.int64)
    for axis in axes:
        cells *= shape[axis]
        cells += columns[axis]
    return cells
