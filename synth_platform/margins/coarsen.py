"""Coarsened margins: counts made so rough that a statistics office lets them go (Raab 2026, arXiv 2606.02101).

Three variants, for a limit L and a cell that counts n:

- controlled: 0 < n < L becomes L − 1, every other count stays exact. No released non-zero count is below L − 1, and
  L − 1 says 1 … L − 1. Counts from L on are the true ones: a small cell can be had by subtracting them from a total.
- coarsened: 0 < n < L becomes L, every other count a multiple of L. No released non-zero count is below L. Rounding to
  the nearest, half up: kL with k ≥ 2 says kL − L/2 ≤ n < kL + L/2, and L says 1 ≤ n < 3L/2. Rounding up:
  (k − 1)L < n ≤ kL. Rounding down: kL ≤ n < (k + 1)L, and L says 1 ≤ n < 2L.
- adjusted: coarsened, then brought towards the sample size, since small cells lifted to L make the total too large.

Coarsening is not differential privacy. Each count is rounded by itself, so tables that share variables intersect to
narrower intervals than those above. An adjustment is computed from coarsened counts and the target total alone: whoever
knows the coarsened margins and the total learns nothing more from it, and it hides nothing more either.

A zero that is declared structural stays 0 in every variant. Of an observed zero, zeros="kept" releases "nobody here",
an exact statement about people (of those in the row, nobody is in this column); zeros="lifted" treats it as any small
count, which hides it, and puts L − 1 or L people into every possible cell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from synth_platform.contract.census_spec import Adjustment, Rounding, Variant, Zeros
from synth_platform.margins.fitting.targets import common_total
from synth_platform.margins.margin import Counts, Margin, MarginSet

_WHOLE: dict[Rounding, Callable[[Counts], Counts]] = {
    "nearest": lambda units: np.floor(units + 0.5),
    "up": np.ceil,
    "down": np.floor,
}


def coarsen(
    margins: MarginSet,
    limit: int = 10,
    variant: Variant = "adjusted",
    *,
    zeros: Zeros = "kept",
    rounding: Rounding = "nearest",
    adjustment: Adjustment = "apportion",
    total: int | None = None,
) -> MarginSet:
    """The margins under a variant of the module's text, each by itself; the step is added to their provenance.

    rounding: of the coarsened and the adjusted variant. adjustment and total: of the adjusted one alone.

    adjustment, for coarsened counts c > 0 of m cells and a target T (see total); cells of 0 stay 0:

    - apportion: in proportion to c, to multiples of L and at least L each, by largest remainders (Hamilton's method).
      The total is T to the nearest multiple. Of cells with equal c, some may end one step above the others, the first
      in the order of the categories.
    - subtract: max(c − v, L) with the one v that makes the total T. No multiples; v is written to the provenance, and
      whoever reads it has c back from every cell above L.
    - subtract_multiple: max(c − v, L) with the multiple v of L that comes closest to T. Often v = 0, which is the
      coarsened margin; the total stays off T by up to half a step of all cells above L.
    - subtract_below_limit: c − v for every cell, without a floor, so that the total is T. No multiples, and **released
      counts fall below the limit**, to L − v > 0; none of them is a true count, since c has been rounded before. What
      was lifted too high is what is lowered, which the other three cannot do: they take it from the large cells.

    apportion keeps both promises of the coarsened variant, no non-zero count below L and multiples of L; so does
    subtract_multiple. subtract keeps the first alone, subtract_below_limit neither.

    A fit looks at shares, not at totals. An adjustment with a floor takes people from large cells and leaves the lifted
    ones, whose share of a smaller total grows: where small cells are many, it is further from the true shares than the
    coarsened margin is.

    total: T. None takes the `adjustment_target`, so the released counts tell the sample size to within L/2. A number is
    taken as it stands and goes out, in the counts and in the provenance: give the exact sample size where it is public.
    Every margin is adjusted to the same T.

    Raises ValueError for a limit that is no whole number above 1, an unknown option, an option of another variant, a
    total that is not positive, and an adjustment that cannot hold the limit since a margin has too many cells.
    """
    _check(limit, variant, zeros, rounding, adjustment, total)
    if variant == "controlled":
        step = f"controlled: limit {limit}, zeros {zeros}"
        return margins.with_margins(
            tuple(m.became(_controlled(_seen(margins, m, zeros), limit), step) for m in margins)
        )
    step = f"coarsened: limit {limit}, zeros {zeros}, rounding {rounding}"
    coarse = tuple(m.became(_coarsened(_seen(margins, m, zeros), limit, rounding), step) for m in margins)
    if variant == "adjusted":
        target = float(total) if total is not None else adjustment_target(margins, limit)
        coarse = tuple(_adjusted(margin, limit, adjustment, target) for margin in coarse)
    return margins.with_margins(coarse)


def adjustment_target(margins: MarginSet, limit: int) -> float:
    """The number of people that margins stand for, to the nearest multiple of the limit, and one multiple at least."""
    return max(1.0, float(np.floor(common_total(margins) / limit + 0.5))) * limit


def _check(limit: int, variant: str, zeros: str, rounding: str, adjustment: str, total: int | None) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit <= 1:
        raise ValueError(f"the limit is a whole number above 1, such as 10; {limit!r} is none")
    given = (("variant", variant, Variant), ("zeros", zeros, Zeros), ("rounding", rounding, Rounding))
    for name, value, options in (*given, ("adjustment", adjustment, Adjustment)):
        if value not in get_args(options):
            raise ValueError(f"{name} {value!r} is none of {', '.join(get_args(options))}")
    if variant == "controlled" and rounding != "nearest":
        raise ValueError("the controlled variant rounds nothing: leave rounding out, or take coarsened or adjusted")
    if variant != "adjusted" and (adjustment != "apportion" or total is not None):
        raise ValueError(f"the {variant} variant is not adjusted: leave adjustment and total out, or take adjusted")
    if total is not None and total <= 0:
        raise ValueError("the total that margins are adjusted to has to be above 0")


def _seen(margins: MarginSet, margin: Margin, zeros: Zeros) -> Counts:
    """Counts with NaN where a zero stays one."""
    stays = ~margins.possible(margin) if zeros == "lifted" else margin.counts == 0
    return np.where(stays, np.nan, margin.counts)


def _controlled(seen: Counts, limit: int) -> Counts:
    exact_or_small: Counts = np.nan_to_num(np.where(seen < limit, limit - 1, seen))
    return exact_or_small


def _coarsened(seen: Counts, limit: int, rounding: Rounding) -> Counts:
    multiples: Counts = np.nan_to_num(np.maximum(_WHOLE[rounding](seen / limit), 1) * limit)
    return multiples


def _adjusted(margin: Margin, limit: int, adjustment: Adjustment, target: float) -> Margin:
    by_name = tuple(int(axis) for axis in np.argsort(np.array(margin.names)))
    laid_out = margin.counts.transpose(by_name)  # equal cells are told apart by it: not by the order of the variables
    occupied = laid_out > 0
    counts, said = laid_out[occupied], ""
    if adjustment != "subtract_below_limit" and len(counts) * limit > target:
        raise ValueError(
            f"margin {margin.title}: its cells, at {limit} people each, are too many for the total; combine categories "
            "in the recipe, lower the limit, or take the coarsened variant"
        )
    if adjustment == "apportion":
        counts = limit * _apportion(counts / limit, int(np.floor(target / limit + 0.5)))
    else:
        less = _less(counts, limit, adjustment, target, margin.title)
        floor = 0 if adjustment == "subtract_below_limit" else limit
        counts, said = np.maximum(counts - less, floor), f", {less + 0.0:.12g} off each cell"
    adjusted = np.zeros_like(laid_out)
    adjusted[occupied] = counts
    return margin.became(
        np.ascontiguousarray(adjusted.transpose(tuple(np.argsort(by_name)))),
        f"adjusted: {adjustment}, total {target:.12g}{said}",
    )


def _apportion(units: Counts, seats: int) -> Counts:
    """Whole numbers of at least 1 that sum to `seats`, in proportion to units ≥ 1, by largest remainders."""
    size = np.sort(units)[::-1]
    largest = np.arange(1, len(size) + 1)
    scale = (seats - (len(size) - largest)) / np.cumsum(size)  # if the k largest are above the floor, for each k
    quota = np.maximum(units * scale[_above(size * scale >= 1)], 1)
    whole: Counts = np.floor(quota + 1e-9)
    rest = seats - int(whole.sum())
    whole[np.argsort(-np.round(quota - whole, 9), kind="stable")[:rest]] += 1
    return whole


def _less(counts: Counts, limit: int, adjustment: Adjustment, target: float, title: str) -> float:
    """The value v to subtract from every cell; negative where the total is below its target."""
    if adjustment == "subtract_below_limit":
        less = float(counts.sum() - target) / len(counts)
        if less >= counts.min():
            raise ValueError(f"margin {title}: subtracting one value leaves cells without people; give a larger total")
        return less
    size = np.sort(counts)[::-1]
    largest = np.arange(1, len(size) + 1)
    value = (np.cumsum(size) - (target - (len(size) - largest) * limit)) / largest
    less = float(value[_above(size - value >= limit)])
    if adjustment == "subtract":
        return less
    near = (np.floor(less / limit) * limit, np.ceil(less / limit) * limit)
    return float(min(near, key=lambda v: (abs(np.maximum(counts - v, limit).sum() - target), abs(v))))


def _above(holds: NDArray[np.bool_]) -> int:
    """Position of the smallest of the cells, largest first, that is still above its floor."""
    return int(np.flatnonzero(holds)[-1]) if holds.any() else 0
