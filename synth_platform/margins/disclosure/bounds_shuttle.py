"""Bounds on the cells of overlapping tables by passing intervals between them: the shuttle of Buzzigoli and Giusti.

Every table is bounded together with all of its margins down to the number of people. With n_T a cell of a table T, n_S
that of its margin without variable i, and sums over the categories of i:

    Σ L_T ≤ n_S ≤ Σ U_T        L_S − Σ' U_T ≤ n_T ≤ U_S − Σ' L_T        (Σ': the other categories of i)
    n_T ≥ n_{T−i} + n_{T−j} − n_{T−ij}                                                          (Fréchet, Bonferroni)
    Σ_c max(0, n_ac + n_bc − n_c) ≤ n_ab ≤ Σ_c min(n_ac, n_bc)                        (through a third variable c)

Each is true of every table of people, so bounds are valid whenever the passes stop, and never wider than they began.
They are outer bounds: an attacker with linear programming may know more. Source: L. Buzzigoli, A. Giusti, "An algorithm
to calculate the lower and upper bounds of the elements of an array given its marginals" (1999); A. Dobra, S. Fienberg,
PNAS 97 (2000) for Fréchet bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

import numpy as np

from synth_platform.margins.disclosure.intervals import Intervals, WholeCounts

Axes = tuple[int, ...]  # positions of variables in the domain, ascending
Tables = dict[Axes, Intervals]
_MOST_PASSES = 20
_BLOCK = 2_000_000  # cells of three variables held at a time


class ContradictoryMarginsError(ValueError):
    """No table of people has counts in all of the intervals: they are of different people, or the rule is wrong."""

    def __init__(self) -> None:
        super().__init__(
            "the margins contradict each other under the release rule: they count different people, or limit, variant, "
            "zeros, rounding or total are not those that they were released by"
        )


def shuttle_bounds(shape: tuple[int, ...], known: Mapping[Axes, Intervals], wanted: Iterable[Axes] = ()) -> Tables:
    """Valid bounds on every table in `known` and `wanted` and on all of their margins, the total at ().

    shape: categories of each variable. known: intervals of released tables, of the total too if () is among them.
    Raises ContradictoryMarginsError where an interval runs empty.
    """
    axes = sorted({sub for table in (*known, *wanted) for sub in _subsets(table)}, key=lambda sub: (len(sub), sub))
    people = min(int(table.upper.sum()) for table in known.values())
    lower: dict[Axes, WholeCounts] = {}
    upper: dict[Axes, WholeCounts] = {}
    for table in axes:
        dimensions = tuple(shape[axis] for axis in table)
        given = known.get(table)
        lower[table] = np.zeros(dimensions, np.int64) if given is None else given.lower.copy()
        upper[table] = np.full(dimensions, people, np.int64) if given is None else np.minimum(given.upper, people)
    tables = [table for table in reversed(axes) if table]
    triangles = list(_triangles(axes))
    for _ in range(_MOST_PASSES):
        before = _looseness(lower, upper)
        for table in tables:
            _pass_down(table, lower, upper)
        for table in reversed(tables):
            _pass_up(table, lower, upper)
        for first, second, third in triangles:
            _through_third(first, second, third, lower, upper)
        if any((lower[table] > upper[table]).any() for table in axes):
            raise ContradictoryMarginsError
        if _looseness(lower, upper) == before:
            break
    return {table: Intervals(lower[table], upper[table]) for table in axes}


def _subsets(table: Axes) -> Iterable[Axes]:
    return (sub for size in range(len(table) + 1) for sub in combinations(table, size))


def _triangles(axes: list[Axes]) -> Iterable[tuple[Axes, Axes, Axes]]:
    """Pairs ab with the pairs ac and bc that bound them through c, where all three are bounded."""
    pairs = {table for table in axes if len(table) == 2}
    singles = [table[0] for table in axes if len(table) == 1]
    for a, b in sorted(pairs):
        for c in singles:
            ac, bc = (min(a, c), max(a, c)), (min(b, c), max(b, c))
            if c not in (a, b) and ac in pairs and bc in pairs:
                yield (a, b), ac, bc


def _looseness(lower: dict[Axes, WholeCounts], upper: dict[Axes, WholeCounts]) -> int:
    return sum(int((upper[table] - lower[table]).sum()) for table in lower)


def _pass_down(table: Axes, lower: dict[Axes, WholeCounts], upper: dict[Axes, WholeCounts]) -> None:
    """Sums of a table bound its margins."""
    for at in range(len(table)):
        margin = table[:at] + table[at + 1 :]
        lower[margin] = np.maximum(lower[margin], lower[table].sum(axis=at))
        upper[margin] = np.minimum(upper[margin], upper[table].sum(axis=at))


def _pass_up(table: Axes, lower: dict[Axes, WholeCounts], upper: dict[Axes, WholeCounts]) -> None:
    """Margins less the other cells bound a table's cells, and so do two margins that overlap."""
    for at in range(len(table)):
        margin = table[:at] + table[at + 1 :]
        low, high = lower[table], upper[table]
        others_low = low.sum(axis=at, keepdims=True) - low
        others_high = high.sum(axis=at, keepdims=True) - high
        lower[table] = np.maximum(low, np.expand_dims(lower[margin], at) - others_high)
        upper[table] = np.minimum(high, np.expand_dims(upper[margin], at) - others_low)
    for i, j in combinations(range(len(table)), 2):
        without_i, without_j = table[:i] + table[i + 1 :], table[:j] + table[j + 1 :]
        common = tuple(axis for at, axis in enumerate(table) if at not in (i, j))
        both = np.expand_dims(lower[without_i], i) + np.expand_dims(lower[without_j], j)
        lower[table] = np.maximum(lower[table], both - np.expand_dims(upper[common], (i, j)))


def _through_third(
    ab: Axes, ac: Axes, bc: Axes, lower: dict[Axes, WholeCounts], upper: dict[Axes, WholeCounts]
) -> None:
    """Cells of ab are sums over c of cells that are at most n_ac and n_bc and at least n_ac + n_bc − n_c."""
    (a, b), c = ab, next(axis for axis in ac if axis not in ab)
    low_a, high_a = (side[ac] if a < c else side[ac].T for side in (lower, upper))
    low_b, high_b = (side[bc] if b < c else side[bc].T for side in (lower, upper))
    least, most = np.zeros_like(lower[ab]), np.zeros_like(upper[ab])
    step = max(1, _BLOCK // max(1, least.size))
    for start in range(0, low_a.shape[1], step):
        some = slice(start, start + step)
        most += np.minimum(high_a[:, None, some], high_b[None, :, some]).sum(axis=2)
        both = (low_a[:, some] - upper[(c,)][some])[:, None] + low_b[None, :, some]
        least += np.maximum(both, 0).sum(axis=2)
    lower[ab] = np.maximum(lower[ab], least)
    upper[ab] = np.minimum(upper[ab], most)
