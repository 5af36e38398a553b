"""Bounds on the cells that can turn the audit's verdict, by linear programs over a joint table, people in fractions.

Unknowns are x ≥ 0 of the joint cells that no structural zero covers; each bounded cell says l ≤ Σ x ≤ u. A cell can
still turn the verdict while it might be found to be within 1 … limit − 1, or to be empty. One program minimises the sum
of all cells whose least count is 0: whichever of them its answer leaves at nought is settled, and most are. Another
maximises those that no answer has lifted to the limit, or to one person. Only what such programs leave open is bounded
cell by cell, its minimum first, and its maximum only where the minimum is a person or more.

Whole people are among the fractions, so that a least count may be rounded up and a greatest one down: bounds are valid.
They may be wider than those of whole people. With the variables of a joint table fewer than those released, what the
others say enters by the bounds that are given alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array, vstack

from synth_platform.margins.disclosure.bounds_lp import TOLERANCE, cell_sums, solved
from synth_platform.margins.disclosure.bounds_shuttle import Axes, Tables
from synth_platform.margins.disclosure.intervals import Intervals, WholeCounts

Cells = NDArray[np.bool_]
_EACH = 20_000  # rows × columns that take as long as a program's setting up


@dataclass
class Effort:
    """What may still be spent on programs, in rows × columns: the same on every machine, which time is not.

    exhausted: whether a program was left out for want of it.
    """

    left: int
    exhausted: bool = False


def undecided(bounds: Intervals, limit: int) -> Cells:
    """Cells that narrower bounds could find to be within 1 … limit − 1, or empty."""
    empty = (bounds.lower == 0) & (bounds.upper >= 1)
    few = (bounds.lower >= 1) & (bounds.lower < limit) & (bounds.upper >= limit)
    return np.asarray(empty | few)


def relaxed_bounds(
    possible: NDArray[np.bool_],
    given: Mapping[Axes, Intervals],
    outer: Mapping[Axes, Intervals],
    limit: int,
    effort: Effort,
) -> Tables:
    """The bounds in `outer` with every cell narrowed that turns the verdict of an audit with this limit.

    possible: joint cells, bool [categories of each variable]. given: bounds that every table of people keeps to.
    Tables are named by positions among the variables of `possible`. Raises ContradictoryMarginsError where nothing
    fits, not even in fractions.
    """
    if not outer:
        return {}
    program = _Program(possible, given, outer, limit, effort)
    program.narrow()
    return program.tables()


class _Program:
    def __init__(
        self,
        possible: NDArray[np.bool_],
        given: Mapping[Axes, Intervals],
        outer: Mapping[Axes, Intervals],
        limit: int,
        effort: Effort,
    ) -> None:
        joint = np.flatnonzero(possible)
        sums = {table: cell_sums(joint, possible.shape, table) for table in {*given, *outer}}
        rows = vstack([sums[table] for table in given], format="csr")
        self._said = LinearConstraint(rows, _ends(given, "lower"), _ends(given, "upper"))
        self._outer, self._limit, self._effort, self._cost = outer, limit, effort, int(np.prod(rows.shape)) + _EACH
        self._asked: csr_array = vstack([sums[table] for table in outer], format="csr")
        self._lower, self._upper = _ends(outer, "lower"), _ends(outer, "upper")
        # Of the answers so far, the least and the greatest of each cell.
        self._least = np.full(len(self._lower), np.inf)
        self._most = np.full(len(self._lower), -np.inf)

    def narrow(self) -> None:
        self._until_settled(self._somebody, 1)
        self._until_settled(self._few, -1)
        self._until_settled(self._nobody, -1)

    def tables(self) -> Tables:
        made, at = {}, 0
        for table, intervals in self._outer.items():
            size, shape = intervals.lower.size, intervals.lower.shape
            lower, upper = (side[at : at + size].reshape(shape) for side in (self._lower, self._upper))
            made[table], at = Intervals(lower, upper), at + size
        return made

    def _somebody(self) -> Cells:
        """Cells that may be found to hold somebody."""
        return np.asarray((self._lower == 0) & (self._upper >= 1) & (self._least > TOLERANCE))

    def _few(self) -> Cells:
        """Cells with somebody in them that may be found to hold fewer than the limit."""
        people = (self._lower >= 1) & (self._lower < self._limit) & (self._upper >= self._limit)
        return np.asarray(people & (self._most < self._limit - TOLERANCE))

    def _nobody(self) -> Cells:
        """Cells that may be found to be empty."""
        return np.asarray((self._lower == 0) & (self._upper >= 1) & (self._most < 1 - TOLERANCE))

    def _until_settled(self, unsettled: Callable[[], Cells], sign: int) -> None:
        """Least (sign 1) or greatest (sign −1) counts of cells until none is left that the question is about."""
        together = True
        while (cells := unsettled()).any():
            if self._effort.left < self._cost:
                self._effort.exhausted = True
                return
            self._effort.left -= self._cost
            if not together:
                cells &= np.cumsum(cells) == 1
            end = self._least_sum(sign * (cells @ self._asked))
            if not together and sign > 0:
                self._lower[cells] = np.maximum(self._lower[cells], np.ceil(end - TOLERANCE).astype(np.int64))
            elif not together:
                self._upper[cells] = np.minimum(self._upper[cells], np.floor(TOLERANCE - end).astype(np.int64))
            together &= bool((cells & ~unsettled()).any())

    def _least_sum(self, objective: NDArray[np.float64]) -> float:
        answer = solved(objective, self._said, whole=False)
        if answer.x is None:  # nothing was proven
            return -np.inf
        counts = self._asked @ answer.x
        np.minimum(self._least, counts, out=self._least)
        np.maximum(self._most, counts, out=self._most)
        return float(answer.fun)


def _ends(tables: Mapping[Axes, Intervals], side: Literal["lower", "upper"]) -> WholeCounts:
    return np.concatenate([getattr(intervals, side).ravel() for intervals in tables.values()])
