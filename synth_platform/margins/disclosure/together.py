"""Bounds on cells by all released margins together, as tight as the size of their joint table lets them be.

- linear_programming: whole people, up to MOST_WHOLE_CELLS joint cells and MOST_BOUNDED_CELLS cells to bound: every
  bound of a released margin, a variable or a pair is attained. Threes of variables too, or in fractions if they are
  many.
- relaxation: people in fractions, up to MOST_RELAXED_CELLS joint cells: what can turn the verdict, of the same tables.
- triples: beyond, fractions in the joint table of each three variables with what is known of tables among them, the
  smallest first. Threes that were not released are not bounded, and more than three variables are not put together.
- shuttle: intervals passed between tables, which the others begin with too; of released margins, variables and pairs.

Relaxations are stopped after EFFORT; how many cells some program was left out for is told. Joint cells of four
variables and more are bounded only where they were released or asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import prod
from typing import Literal

import numpy as np

from synth_platform.margins.disclosure.bounds_lp import linear_programming_bounds
from synth_platform.margins.disclosure.bounds_relaxed import Effort, relaxed_bounds, undecided
from synth_platform.margins.disclosure.bounds_shuttle import Axes, Tables, shuttle_bounds
from synth_platform.margins.disclosure.intervals import Intervals
from synth_platform.margins.domain import Domain
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.structural_zeros import possible

Together = Literal["linear_programming", "relaxation", "triples", "shuttle"]
MOST_WHOLE_CELLS = 200  # about ten seconds of programs; with 256 joint cells some take minutes
MOST_BOUNDED_CELLS = 150
MOST_RELAXED_CELLS = 2_100
EFFORT = 150_000_000  # 15 to 20 seconds of relaxations
OF_THREES: frozenset[str] = frozenset({"linear_programming", "relaxation"})


def method_for(domain: Domain, released: Iterable[Axes]) -> Together:
    """The tightest method that a release of these tables has room for."""
    if domain.cells > MOST_RELAXED_CELLS:
        return "triples"
    cells = sum(prod(_shape(domain, table)) for table in {*released, *_sets(domain, 1), *_sets(domain, 2)})
    return "linear_programming" if domain.cells <= MOST_WHOLE_CELLS and cells <= MOST_BOUNDED_CELLS else "relaxation"


def bounds_together(
    released: MarginSet,
    known: Tables,
    asked: Iterable[Axes],
    total: Intervals | None,
    limit: int,
    method: Together,
) -> tuple[Tables, int]:
    """Bounds on released tables, single variables, pairs and the tables asked for, and of threes where `OF_THREES`.

    known: intervals of the released tables, by their variables. total: bounds on the number of people, if known. With
    the bounds goes the number of cells that a relaxation was left out for. Raises ContradictoryMarginsError where no
    table of people fits.
    """
    domain = released.domain
    singly = {*known, *asked, *_sets(domain, 1), *_sets(domain, 2)}
    threes = set(_sets(domain, 3)) - singly if method in OF_THREES else set()
    said = dict(known)
    if total is not None:
        said[()] = total
    people = min(int(intervals.upper.sum()) for intervals in said.values())
    for table in sorted(singly | threes):
        if table not in said:  # a structural zero speaks of tables that were not released too
            cells = _possible(released, table)
            said[table] = Intervals(np.zeros(cells.shape, np.int64), np.where(cells, people, 0))
    bounds = shuttle_bounds(domain.shape, said)
    order = sorted(singly, key=lambda axes: (axes not in known, len(axes), axes))  # what was released stands first
    singles = {table: bounds[table] for table in order}
    wide = {table: bounds[table] for table in sorted(threes)}
    told = {table: bounds[table] for table in (*known, ())}
    if method == "triples":
        return _by_triples(released, bounds, singles, limit)
    effort = Effort(EFFORT if method in OF_THREES else 0)
    if method == "linear_programming":
        joint = possible(domain, released.zeros)
        fits = sum(intervals.lower.size for intervals in (*singles.values(), *wide.values())) <= MOST_BOUNDED_CELLS
        singles = linear_programming_bounds(joint, told, singles | wide if fits else singles)
        wide = {} if fits else relaxed_bounds(joint, told | singles, wide, limit, effort)
    elif method == "relaxation":
        joint = possible(domain, released.zeros)
        singles = relaxed_bounds(joint, told, singles, limit, effort)
        wide = relaxed_bounds(joint, told, wide, limit, effort)
    found = singles | wide
    left = _undecided(found.values(), limit) if effort.exhausted else 0
    return found, left


def _by_triples(released: MarginSet, bounds: Tables, asked: Tables, limit: int) -> tuple[Tables, int]:
    """The asked tables narrowed by the joint tables of three variables that hold them, the smallest first."""
    domain, found, effort, short = released.domain, dict(asked), Effort(EFFORT), set[Axes]()
    for triple in sorted(
        _sets(domain, min(3, len(domain.variables))), key=lambda axes: (prod(_shape(domain, axes)), axes)
    ):
        inside = [table for table in bounds if set(table) <= set(triple)]
        local = {table: tuple(triple.index(axis) for axis in table) for table in inside}
        given = {local[table]: found.get(table, bounds[table]) for table in inside}
        outer = {local[table]: found[table] for table in inside if table in found}
        if not effort.exhausted:
            narrowed = relaxed_bounds(_possible(released, triple), given, outer, limit, effort)
            found |= {table: narrowed[local[table]] for table in inside if table in found}
        if effort.exhausted:
            short.update(table for table in inside if table in found)
    return found, _undecided((found[table] for table in short), limit)


def _undecided(tables: Iterable[Intervals], limit: int) -> int:
    return sum(int(undecided(table, limit).sum()) for table in tables)


def _sets(domain: Domain, size: int) -> Sequence[Axes]:
    return list(combinations(range(len(domain.variables)), size))


def _shape(domain: Domain, table: Axes) -> tuple[int, ...]:
    return tuple(domain.shape[axis] for axis in table)


def _possible(released: MarginSet, table: Axes) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return possible(released.domain.project([released.domain.names[axis] for axis in table]), released.zeros)
