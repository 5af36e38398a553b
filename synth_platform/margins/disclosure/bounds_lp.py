"""The tightest bounds on cells that released intervals allow: integer linear programming over the joint table.

Unknowns are the counts x ≥ 0, whole, of the joint cells that no structural zero covers; each released cell says
l ≤ Σ x ≤ u. For each cell asked for, min and max of its sum of x. Every end is attained by some table of people that
would have been released so (or, where the search stops at its limit of nodes, is the proven bound outside it).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array, vstack

from synth_platform.margins.disclosure.bounds_shuttle import Axes, ContradictoryMarginsError, Tables
from synth_platform.margins.disclosure.intervals import Intervals, WholeCounts

_INFEASIBLE = 2
_NODES = 200
TOLERANCE = 1e-5  # of a bound that is a whole number in exact arithmetic


def linear_programming_bounds(
    possible: NDArray[np.bool_], known: Mapping[Axes, Intervals], outer: Mapping[Axes, Intervals]
) -> Tables:
    """Tightest whole bounds on every table in `outer`, given the intervals of the tables in `known`.

    possible: joint cells, bool [categories of each variable]. outer: valid bounds to begin with, such as those of
    the shuttle; they spare the search what they settle. Two programs a cell at most, fewer where an earlier answer
    already attains an end. Raises ContradictoryMarginsError where no table of people fits.
    """
    joint = np.flatnonzero(possible)
    sums = {table: cell_sums(joint, possible.shape, table) for table in {*known, *outer}}
    given = [(sums[table], intervals) for table, intervals in known.items()]
    said = LinearConstraint(
        vstack([matrix for matrix, _ in given], format="csr"),
        np.concatenate([intervals.lower.ravel() for _, intervals in given]),
        np.concatenate([intervals.upper.ravel() for _, intervals in given]),
    )
    bounds = {table: (cells.lower.ravel().copy(), cells.upper.ravel().copy()) for table, cells in outer.items()}
    found = _Found({table: sums[table] for table in outer})
    for table, (lower, upper) in bounds.items():
        for cell in range(len(lower)):
            objective = sums[table][[cell]].toarray()[0]
            if found.least[table][cell] > lower[cell]:
                lower[cell] = max(lower[cell], _minimum(objective, said, found, int(found.least[table][cell])))
            if found.most[table][cell] < upper[cell]:
                upper[cell] = min(upper[cell], -_minimum(-objective, said, found, -int(found.most[table][cell])))
    return {
        table: Intervals(lower.reshape(outer[table].lower.shape), upper.reshape(outer[table].upper.shape))
        for table, (lower, upper) in bounds.items()
    }


class _Found:
    """The least and greatest count of every cell among tables that were found to fit."""

    def __init__(self, sums: dict[Axes, csr_array]) -> None:
        self._sums = sums
        self.least: dict[Axes, WholeCounts] = {
            table: np.full(matrix.shape[0], np.iinfo(np.int64).max) for table, matrix in sums.items()
        }
        self.most: dict[Axes, WholeCounts] = {
            table: np.full(matrix.shape[0], -1, np.int64) for table, matrix in sums.items()
        }

    def add(self, joint: NDArray[np.float64]) -> None:
        whole = np.rint(joint)
        for table, matrix in self._sums.items():
            cells = np.rint(matrix @ whole).astype(np.int64)
            np.minimum(self.least[table], cells, out=self.least[table])
            np.maximum(self.most[table], cells, out=self.most[table])


def cell_sums(joint: NDArray[np.int64], shape: tuple[int, ...], table: Axes) -> csr_array:
    """Zeros and ones [cells of the table, possible joint cells]: which joint cells each cell adds up."""
    codes = np.unravel_index(joint, shape)
    dimensions = tuple(shape[axis] for axis in table)
    cells = np.ravel_multi_index(tuple(codes[axis] for axis in table), dimensions) if table else np.zeros_like(joint)
    entries = (np.ones(len(joint)), (cells, np.arange(len(joint))))
    return csr_array(entries, shape=(int(np.prod(dimensions, dtype=np.int64)), len(joint)))


def _minimum(objective: NDArray[np.float64], said: LinearConstraint, found: _Found, attained: int) -> int:
    """A proven lower bound on a sum of joint cells; the least that a table of people has, nodes permitting.

    attained: the least sum found so far. Fractions come first, being cheap: where their answer is whole, or rounds up
    to what is attained already, it is the answer in people too.
    """
    relaxed = solved(objective, said, whole=False)
    if relaxed.x is not None and np.abs(relaxed.x - np.rint(relaxed.x)).max() < TOLERANCE:
        found.add(relaxed.x)
        return int(np.rint(relaxed.fun))
    if relaxed.x is not None and np.ceil(relaxed.fun - TOLERANCE) >= attained:
        return attained
    answer = solved(objective, said, whole=True)
    if answer.x is not None:
        found.add(answer.x)
    bounds = (relaxed.fun, answer.mip_dual_bound)
    proven = [bound for bound in bounds if bound is not None and np.isfinite(bound)]
    # where nothing was proven, the bound that was given stands
    return int(np.ceil(max(proven) - TOLERANCE)) if proven else int(np.iinfo(np.int64).min + 1)


def solved(objective: NDArray[np.float64], said: LinearConstraint, *, whole: bool) -> OptimizeResult:
    """The least sum of joint cells, whole ones or fractions. Raises ContradictoryMarginsError where nothing fits."""
    answer = milp(
        objective,
        integrality=np.full(len(objective), int(whole)),
        bounds=Bounds(0, np.inf),
        constraints=said,
        options={"mip_rel_gap": 0.0, "node_limit": _NODES},
    )
    if answer.status == _INFEASIBLE:
        raise ContradictoryMarginsError
    return answer
