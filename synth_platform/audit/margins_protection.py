"""G3, coarsened margins: every released count anew from the true one, in exact fractions, by the registered rule.

With limit L and a true count n, half going up: controlled n < L → L − 1, else n. Coarsened ⌊n/L + ½⌋ L, ⌈n/L⌉ L or
⌊n/L⌋ L, at least L. A zero stays where it is declared structural, and where the plan keeps zeros.

Adjusted to a total T: `apportion` fixes cells at one unit as long as their quota is below one, and gives the rest to
the largest remainders; `subtract` and its kin take off one number v, which is found as the root of Σ max(c − v, L) = T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from scipy.optimize import brentq

from synth_platform.audit.findings import Findings
from synth_platform.audit.margins_tables import Counted, Names, Space, title
from synth_platform.audit.reading import Document, FloatArray, item, sequence, text, whole

_RELATIVE = 1e-9  # of a count that was computed in float64 by another formula
_HALF = Fraction(1, 2)


def audit_protection(
    found: Findings,
    stage: str,
    registered: Document,
    space: Space,
    true: Sequence[Counted],
    released: Sequence[Counted],
) -> None:
    """Every released margin is what the plan makes of the true one, and says so."""
    name, plan = f"G3/{stage}/coarsened", registered["plan"]
    limit, variant = whole(plan, "limit"), text(plan, "variant")
    found.same(f"{name}/margins", "margins", [m.names for m in released], [m.names for m in true])
    audit_declared(found, name, registered, space, released)
    audit_zeros(found, name, registered, space)
    target = adjusted_total([m.counts for m in true], plan) if variant == "adjusted" else None
    least = limit - 1 if variant == "controlled" else limit
    if text(plan, "adjustment") == "subtract_below_limit" and variant == "adjusted":
        least = 1
        found.notes.append(f"{stage}/coarsened: released counts fall below the limit, as registered")
    for position, (before, after) in enumerate(zip(true, released, strict=True)):
        here = f"{name}/{position:02d}:{title(after.names)}"
        with found.section(here):
            possible = space.possible(after.names)
            found.holds(f"{here}/structural", "structural_zero", not after.counts[~possible].any(), "people in one")
            people = after.counts > 0
            small = people & (after.counts < least * (1 - _RELATIVE)) if least > 1 else np.zeros_like(people)
            found.holds(f"{here}/limit", "limit", not small.any(), f"a released count is below {least}")
            kept = possible & (before.counts == 0) if plan["zeros"] == "kept" else np.zeros_like(possible)
            found.holds(f"{here}/zeros", "zeros", bool((people == (possible & ~kept)).all()), "other cells are empty")
            own = protected(before.counts, possible, plan, target, after.names)
            same = np.allclose(own, after.counts, rtol=_RELATIVE, atol=1e-6)
            found.holds(f"{here}/counts", "released_count", same, "a released count is not by the registered rule")
            _provenance(found, f"{here}/provenance", before, after, plan, target)


def declared_margins(registered: Document, space: Space, released: Sequence[Counted]) -> list[Names]:
    """The margins that the recipe declares; of published tables, all that there are."""
    declared = item(registered, "margins")
    named = [] if isinstance(declared, str) else [tuple(names) for names in declared if not isinstance(names, str)]
    if text(registered, "source") == "tables":
        return [margin.names for margin in released]
    # "two_way" is the word itself, or stands at the head of a list.
    pairs = combinations(space.names, min(2, len(space.names))) if "two_way" in declared else ()
    return [*pairs, *named]


def audit_declared(found: Findings, name: str, registered: Document, space: Space, released: Sequence[Counted]) -> None:
    """Margins are those of the recipe."""
    due = declared_margins(registered, space, released)
    have = [margin.names for margin in released]
    found.same(f"{name}/declared", "margins", sorted(map(sorted, have)), sorted(map(sorted, due)))


def audit_zeros(found: Findings, name: str, registered: Document, space: Space) -> None:
    """Structural zeros are those of the recipe, and beside published tables those that were published with them."""
    zeros = sequence(registered, "structural_zeros")
    stated = [zero for zero in space.zeros if zero not in zeros]  # beside tables that were published
    same = [zero for zero in space.zeros if zero in zeros] == zeros
    allowed = not stated or text(registered, "source") == "tables"
    found.holds(f"{name}/structural_zeros", "structural_zero", same and allowed, "not those of the recipe")


def coarse(count: Fraction, limit: int, rounding: str) -> int:
    """A count of a cell that is not to stay nought, at a multiple of the limit and at least the limit."""
    units = count / limit
    whole_units = {"nearest": math.floor(units + _HALF), "up": math.ceil(units), "down": math.floor(units)}[rounding]
    return limit * max(1, whole_units)


def released_count(count: Fraction, plan: Document) -> Fraction:
    """What the rule makes of the count of a possible cell, before any adjustment."""
    if count == 0 and plan["zeros"] == "kept":
        return Fraction(0)
    if plan["variant"] == "controlled":
        return Fraction(plan["limit"] - 1) if count < plan["limit"] else count
    return Fraction(coarse(count, plan["limit"], plan["rounding"]))


def rounded(true: FloatArray, possible: np.ndarray, plan: Document) -> FloatArray:
    """A margin by the rule, before any adjustment."""
    values, where = np.unique(true, return_inverse=True)
    each = np.array([float(released_count(Fraction(value), plan)) for value in values.tolist()])
    return np.where(possible, each[where.reshape(true.shape)], 0.0)


def protected(
    true: FloatArray, possible: np.ndarray, plan: Document, target: Fraction | None, names: Sequence[str]
) -> FloatArray:
    """A whole margin by the rule. Ties of an adjustment go to the first cell, variables in the order of their names."""
    margin = rounded(true, possible, plan)
    if target is None:
        return margin
    order = sorted(range(len(names)), key=lambda axis: names[axis])
    laid_out = margin.transpose(order)
    adjusted = np.zeros_like(laid_out)
    adjusted[laid_out > 0] = _adjusted(laid_out[laid_out > 0], plan, target)
    back = [order.index(axis) for axis in range(len(names))]
    return adjusted.transpose(back)


def adjusted_total(true: Sequence[FloatArray], plan: Document) -> Fraction:
    """What margins are adjusted to: the registered total, or the mean of the true ones to the nearest multiple."""
    if plan["total"] is not None:
        return Fraction(plan["total"])
    mean = sum((Fraction(float(margin.sum())) for margin in true), Fraction()) / len(true)
    return Fraction(coarse(mean, plan["limit"], "nearest"))


def _adjusted(counts: FloatArray, plan: Document, target: Fraction) -> FloatArray:
    limit, how, total = plan["limit"], plan["adjustment"], float(target)
    if how == "apportion":
        seats = math.floor(target / limit + _HALF)
        units = [round(count / limit) for count in counts.tolist()]
        return np.array([limit * unit for unit in largest_remainders(units, seats)], dtype=np.float64)
    if how == "subtract_below_limit":
        return np.asarray(counts - (counts.sum() - total) / len(counts))

    def left(less: float) -> float:
        return float(np.maximum(counts - less, limit).sum()) - total

    low, high = -total, float(counts.max()) - limit
    root = high if left(high) >= 0 else brentq(left, low, high, xtol=1e-10)
    if how == "subtract":
        return np.asarray(np.maximum(counts - root, limit))
    middle = math.floor(root / limit)
    near = [limit * (middle + step) for step in range(-2, 4)]
    return np.asarray(np.maximum(counts - min(near, key=lambda less: (abs(left(less)), abs(less))), limit))


def largest_remainders(units: Sequence[int], seats: int) -> list[int]:
    """Whole numbers of at least 1 that sum to `seats`, in proportion to units where that is above 1."""
    floor: set[int] = set()
    while True:
        free = [at for at in range(len(units)) if at not in floor]
        share = Fraction(seats - len(floor), max(1, sum(units[at] for at in free)))
        below = {at for at in free if units[at] * share < 1}
        if not below:
            break
        floor |= below
    quota = [Fraction(1) if at in floor else units[at] * share for at in range(len(units))]
    given = [math.floor(value) for value in quota]
    order = sorted(range(len(units)), key=lambda at: (given[at] - quota[at], at))
    for at in order[: seats - sum(given)]:
        given[at] += 1
    return given


def _provenance(
    found: Findings, name: str, before: Counted, after: Counted, plan: Document, target: Fraction | None
) -> None:
    """A margin says where it comes from and what was done, in the words of the registered rule."""
    limit, zeros = plan["limit"], plan["zeros"]
    if plan["variant"] == "controlled":
        steps = [f"controlled: limit {limit}, zeros {zeros}"]
    else:
        steps = [f"coarsened: limit {limit}, zeros {zeros}, rounding {plan['rounding']}"]
    told = list(after.provenance)
    if target is not None:
        # What was taken off stands behind it, a figure that the counts above tell as well.
        steps.append(f"adjusted: {plan['adjustment']}, total {float(target):.12g}")
        told[-1:] = [", ".join(step.split(", ")[:2]) for step in told[-1:]]
    found.same(name, "provenance", told, [*before.provenance, *steps], public=False)
