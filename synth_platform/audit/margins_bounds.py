"""What released tables say of true counts: the rule inverted count by count, sums, Fréchet's bounds, linear programs.

A released count stands for every count that the rule turns into it, found by trying them. Tables that share variables
count the same people there, so that each category of what they share lies in all of their sums; the rest of a sum then
bounds a cell. Through a third variable, Σ_c max(0, n_ac + n_bc − n_c) ≤ n_ab ≤ Σ_c min(n_ac, n_bc). For some threes of
variables linear programs over their joint cells give the tightest bounds that all released tables among them allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from synth_platform.audit.findings import MalformedError
from synth_platform.audit.margins_protection import released_count
from synth_platform.audit.margins_tables import Names, Space
from synth_platform.audit.reading import Document, FloatArray

Whole = NDArray[np.int64]
Bounds = tuple[Whole, Whole]

MOST_THREES, MOST_JOINT_CELLS, MOST_PROGRAMS = 3, 200, 24
MOST_CELLS = 400_000  # of joint cells of three variables that Fréchet's bounds go through at a time
_TOLERANCE = 1e-6  # of an end of a linear program, which is a fraction


def interval(count: float, plan: Document) -> tuple[int, int]:
    """Least and greatest true count that the rule releases so, of all within two steps. MalformedError if none is."""
    around = range(max(0, math.floor(count) - 2 * plan["limit"]), math.ceil(count) + 2 * plan["limit"] + 1)
    fits = [n for n in around if released_count(Fraction(n), plan) == Fraction(count)]
    if not fits:
        raise MalformedError("counts")
    return fits[0], fits[-1]


def intervals(released: FloatArray, possible: NDArray[np.bool_], plan: Document) -> Bounds:
    """`interval` of every possible cell of a table by the rule without adjustment; others are empty."""
    values, where = np.unique(released[possible], return_inverse=True)
    inverted = _inverted(*(plan[key] for key in ("variant", "limit", "zeros", "rounding")))
    each = np.array([inverted(value) for value in values.tolist()], dtype=np.int64).reshape(-1, 2)
    lower, upper = np.zeros(released.shape, np.int64), np.zeros(released.shape, np.int64)
    lower[possible], upper[possible] = each[where, 0], each[where, 1]
    return lower, upper


@cache
def _inverted(variant: str, limit: int, zeros: str, rounding: str) -> Callable[[float], tuple[int, int]]:
    """`interval` by one rule, of every count once."""
    plan = {"variant": variant, "limit": limit, "zeros": zeros, "rounding": rounding}
    return cache(lambda count: interval(count, plan))


def joint_bounds(space: Space, known: Mapping[Names, Bounds]) -> dict[Names, Bounds]:
    """Bounds on the released tables, on every pair and every one variable, by sums and Fréchet's bounds of all of them.

    known: tables by their variables, in the order of the space. There may be tighter bounds.
    """
    bounds = {names: (low.copy(), high.copy()) for names, (low, high) in known.items()}
    for _ in range(2):
        margins = _margins(bounds)
        bounds = {names: _by_margins(names, own, margins) for names, own in bounds.items()}
    people = min(int(high.sum()) for _, high in bounds.values())
    pairs: dict[Names, Bounds] = {}
    for pair in combinations(space.names, 2):
        pairs[pair] = _of_larger(space, pair, people, bounds)
    for names, own in pairs.items():
        through = [_through(space, names, third, pairs) for third in space.names if third not in names]
        ends = [own, *(found for found in through if found is not None)]
        most = np.minimum.reduce([high for _, high in ends])
        bounds[names] = np.maximum.reduce([low for low, _ in ends]), np.where(space.possible(names), most, 0)
    for name in space.names:
        bounds.setdefault((name,), _of_larger(space, (name,), people, bounds))
    return bounds


def of_three(space: Space, three: Names, bounds: Mapping[Names, Bounds]) -> Bounds:
    """Bounds on the joint cells of three variables by each pair among them: its cell, less what the others can hold."""
    pairs = [
        (axis, [np.expand_dims(end, axis) for end in bounds[three[:axis] + three[axis + 1 :]]]) for axis in range(3)
    ]
    most = np.where(space.possible(three), np.minimum.reduce(np.broadcast_arrays(*(high for _, (_, high) in pairs))), 0)
    rest = [low - (most.sum(axis=axis, keepdims=True) - most) for axis, (low, _) in pairs]
    return np.maximum(np.maximum.reduce(rest), 0), most


def _of_larger(space: Space, names: Names, people: int, bounds: Mapping[Names, Bounds]) -> Bounds:
    """Bounds on a table by sums of the tables that hold it; anything up to everybody where none does."""
    sums = [_summed(names, table, ends) for table, ends in bounds.items() if set(names) <= set(table)]
    shape = space.shape(names)
    sums.append((np.zeros(shape, np.int64), np.where(space.possible(names), people, 0)))
    return np.maximum.reduce([low for low, _ in sums]), np.minimum.reduce([high for _, high in sums])


def narrowed(space: Space, known: Mapping[Names, Bounds], bounds: Mapping[Names, Bounds]) -> dict[Names, Bounds]:
    """The bounds with some cells at the ends of linear programs."""
    own = {names: (low.copy(), high.copy()) for names, (low, high) in bounds.items()}
    for three in _threes(space, known):
        _program(space, three, known, own)
    return own


def _margins(bounds: Mapping[Names, Bounds]) -> dict[Names, Bounds]:
    """Bounds on all that at least two tables share, and on the total: the narrowest sums of any table."""
    shared = {tuple(name for name in a if name in b) for a, b in combinations(bounds, 2)} | {()}
    margins: dict[Names, Bounds] = {}
    for names in shared:
        sums = [_summed(names, table, ends) for table, ends in bounds.items() if set(names) <= set(table)]
        margins[names] = np.maximum.reduce([low for low, _ in sums]), np.minimum.reduce([high for _, high in sums])
    return margins


def _summed(names: Names, table: Names, ends: Bounds) -> Bounds:
    over = tuple(at for at, name in enumerate(table) if name not in names)
    return ends[0].sum(axis=over), ends[1].sum(axis=over)


def _by_margins(table: Names, own: Bounds, margins: Mapping[Names, Bounds]) -> Bounds:
    low, high = own
    for names, (least, most) in margins.items():
        if set(names) <= set(table):
            over = tuple(at for at, name in enumerate(table) if name not in names)
            others_high = high.sum(axis=over, keepdims=True) - high
            others_low = low.sum(axis=over, keepdims=True) - low
            low = np.maximum(low, np.expand_dims(least, over) - others_high)
            high = np.minimum(high, np.expand_dims(most, over) - others_low)
    return low, high


def _through(space: Space, pair: Names, third: str, bounds: Mapping[Names, Bounds]) -> Bounds | None:
    """Bounds on a pair from the pairs that each of its two is in with a third variable."""
    if math.prod(space.shape((*pair, third))) > MOST_CELLS:
        return None
    sides = []
    for name in pair:
        key = tuple(n for n in space.names if n in (name, third))
        sides.append([ends if key[0] == name else ends.T for ends in bounds[key]])
    (low_a, high_a), (low_b, high_b) = sides
    most_c = np.minimum(high_a.sum(axis=0), high_b.sum(axis=0))
    least = np.maximum(low_a[:, None] + low_b[None] - most_c, 0).sum(axis=2)
    return least, np.minimum(high_a[:, None], high_b[None]).sum(axis=2)


def _threes(space: Space, known: Mapping[Names, Bounds]) -> Sequence[Names]:
    """Some threes of variables that at least two released tables are among, spread evenly over all small ones."""
    small = [
        three
        for three in combinations(space.names, 3)
        if math.prod(space.shape(three)) <= MOST_JOINT_CELLS and len(list(_among(three, known))) > 1
    ]
    return small[:: max(1, -(-len(small) // MOST_THREES))]


def _among(three: Names, known: Mapping[Names, Bounds]) -> Iterator[Names]:
    return (names for names in known if set(names) <= set(three))


def _program(space: Space, three: Names, known: Mapping[Names, Bounds], bounds: dict[Names, Bounds]) -> None:
    """Narrows some cells of the pairs among three variables, evenly spread, to the ends of linear programs."""
    shape, possible = space.shape(three), space.possible(three).ravel()
    codes = np.array(np.unravel_index(np.flatnonzero(possible), shape))

    def rows(names: Names) -> NDArray[np.float64]:
        cells = np.ravel_multi_index(tuple(codes[three.index(name)] for name in names), space.shape(names))
        return np.asarray(cells == np.arange(math.prod(space.shape(names)))[:, None], dtype=np.float64)

    said = [(rows(names), known[names]) for names in _among(three, known)]
    sums = np.concatenate([matrix for matrix, _ in said] + [-matrix for matrix, _ in said])
    most = np.concatenate([ends[1].ravel() for _, ends in said] + [-ends[0].ravel() for _, ends in said])
    asked = [
        (pair, cell)
        for pair in combinations(three, 2)
        if pair in bounds
        for cell in np.flatnonzero(space.possible(pair).ravel()).tolist()
    ]
    for pair, cell in asked[:: max(1, -(-len(asked) // (MOST_PROGRAMS // 2)))]:
        objective = rows(pair)[cell]
        low, high = (ends.reshape(-1) for ends in bounds[pair])
        for sign, ends, narrower in ((1, low, max), (-1, high, min)):
            answer = linprog(sign * objective, A_ub=sums, b_ub=most, bounds=(0, None), method="highs")
            if answer.status == 0 and answer.fun is not None:
                end = math.ceil(answer.fun - _TOLERANCE) if sign == 1 else math.floor(-answer.fun + _TOLERANCE)
                ends[cell] = narrower(int(ends[cell]), end)
