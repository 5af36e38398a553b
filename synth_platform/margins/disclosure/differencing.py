"""Differencing: two released tables that count nearly the same people give away those whom only one of them counts.

Tables are compared over all variables that they share, a variable and a coarser version of it counting as shared: the
declared structural zeros say that a coarser version it is (each category stands with one category of the other alone).
Of true counts within [l₁, u₁] and [l₂, u₂] the difference is within [l₁ − u₂, u₁ − l₂]; where that lies within
1 … limit − 1, or within −(limit − 1) … −1, a group of fewer than `limit` people is isolated.

Margins of one and the same population never differ, so that only tables over other populations (a year, a region, a
missing value left out) can be flagged. Not covered: bands that overlap without nesting (linear programming covers them
within one release), differences of three tables or more, tables of an earlier release that are not given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.disclosure.bounds_shuttle import Axes
from synth_platform.margins.disclosure.intervals import Intervals
from synth_platform.margins.domain import Domain
from synth_platform.margins.structural_zeros import StructuralZero, possible


@dataclass(frozen=True)
class Difference:
    """Two released tables whose difference over the named variables isolates small groups, and in how many cells."""

    first: str
    second: str
    over: tuple[str, ...]
    cells: int


@dataclass(frozen=True, eq=False)
class _View:
    """A released table as it stands or with variables made coarser."""

    title: str
    axes: Axes
    intervals: Intervals


def differences(
    domain: Domain,
    released: Mapping[str, tuple[Axes, Intervals]],
    zeros: tuple[StructuralZero, ...],
    limit: int,
) -> tuple[Difference, ...]:
    """Every pair of released tables, by title, whose difference isolates fewer than `limit` people in a cell.

    released: variables of each table, ascending positions in the domain, and its intervals, axes in that order.
    """
    views = [view for title, (axes, table) in released.items() for view in _views(title, axes, table, domain, zeros)]
    by_shared: dict[Axes, list[_View]] = defaultdict(list)
    for shared in {tuple(sorted(set(a.axes) & set(b.axes))) for a, b in combinations(views, 2)}:
        by_shared[shared] = [view for view in views if set(shared) <= set(view.axes)]
    found: dict[tuple[str, str], Difference] = {}
    for shared, holders in by_shared.items():
        lower, upper = (np.stack(side) for side in zip(*(_margin(view, shared) for view in holders), strict=True))
        for at, view in enumerate(holders[:-1]):
            least, most = lower[at] - upper[at + 1 :], upper[at] - lower[at + 1 :]
            cells = (((least >= 1) & (most < limit)) | ((most <= -1) & (least > -limit))).sum(axis=1)
            for other, number in zip(holders[at + 1 :], cells.tolist(), strict=True):
                pair = (view.title, other.title)
                if number and (pair not in found or len(shared) > len(found[pair].over)):
                    found[pair] = Difference(*pair, tuple(domain.names[axis] for axis in shared), number)
    return tuple(found.values())


def _views(title: str, axes: Axes, table: Intervals, domain: Domain, zeros: tuple[StructuralZero, ...]) -> list[_View]:
    views = [_View(title, axes, table)]
    for view in views:  # grows as it goes: a table is made coarser in one variable after the other
        for at, fine in enumerate(view.axes):
            for coarse in range(len(domain.variables)):
                steps = None if coarse in view.axes else coarser(domain, fine, coarse, zeros)
                if steps is not None:
                    views.append(_made_coarser(view, at, coarse, steps, len(domain.variables[coarse])))
    return views


def coarser(domain: Domain, fine: int, coarse: int, zeros: tuple[StructuralZero, ...]) -> NDArray[np.int64] | None:
    """For each category of one variable the only category of another that it can stand with; None if it has more.

    None too if no two categories are put together, which makes neither of the two the coarser.
    """
    names = {domain.names[fine], domain.names[coarse]}
    between = tuple(zero for zero in zeros if set(zero.names) <= names)
    if not between or len(domain.variables[coarse]) >= len(domain.variables[fine]):
        return None
    cells = possible(domain.project((domain.names[fine], domain.names[coarse])), between)
    return cells.argmax(axis=1) if (cells.sum(axis=1) == 1).all() else None


def _made_coarser(view: _View, at: int, coarse: int, steps: NDArray[np.int64], categories: int) -> _View:
    axes = (*view.axes[:at], coarse, *view.axes[at + 1 :])
    ascending = tuple(np.argsort(axes).tolist())

    def summed(side: NDArray[np.int64]) -> NDArray[np.int64]:
        total = np.zeros((*side.shape[:at], categories, *side.shape[at + 1 :]), np.int64)
        np.add.at(np.moveaxis(total, at, 0), steps, np.moveaxis(side, at, 0))
        return total.transpose(ascending)

    intervals = Intervals(summed(view.intervals.lower), summed(view.intervals.upper))
    return _View(view.title, tuple(sorted(axes)), intervals)


def _margin(view: _View, shared: Axes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    over = tuple(at for at, axis in enumerate(view.axes) if axis not in shared)
    return view.intervals.lower.sum(axis=over).ravel(), view.intervals.upper.sum(axis=over).ravel()
