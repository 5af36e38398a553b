"""What a released count says about the true count, by the public rule that it was made by.

A rule maps a true count n to a released one; an attacker turns it round. With limit L, and least(n) = 1 where zeros are
kept and 0 where they are lifted:

    unaltered                 r: n = r
    controlled                r = L − 1: least ≤ n ≤ L − 1;  r ≥ L: n = r
    coarsened  r = kL, k ≥ 1  nearest (half goes up): kL − ⌊L/2⌋ ≤ n ≤ kL + ⌈L/2⌉ − 1;  up: (k−1)L < n ≤ kL;
                              down: kL ≤ n ≤ kL + L − 1;  k = 1 reaches down to least, as counts below L go up to L
    adjusted                  r = max(kL + shift, floor), shift within declared bounds: every k that fits

A kept zero is n = 0 (under `adjusted` also any kL that a shift may have brought to nought). The intervals are tight:
their ends are true counts that the rule releases so.

An adjustment that is no shift, such as apportioning in proportion, has no rule here, and needs none: it is a function
of coarsened counts and a total, so whoever holds those knows at least as much. Audit the coarsened counts, with the
total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from synth_platform.contract.census_spec import Rounding, Variant, Zeros
from synth_platform.margins.margin import Counts

WholeCounts = NDArray[np.int64]
Made = Variant | Literal["unaltered"]
_SLACK = 1e-6  # of a count that was written as a decimal


@dataclass(frozen=True)
class ReleaseRule:
    """How released counts were made of true ones: all of it is taken to be public.

    limit: people that a count needs; for unaltered tables it is only what the audit flags below. zeros, rounding: see
    the module. shift: bounds [least, greatest] of what `adjusted` added to each count but a kept zero (below nought
    where it took away); both ends the same where the shift is known, as it is where the provenance or the last digits
    of a margin tell it. floor: count that a shift stops at. total: bounds [least, greatest] of people in the true
    table, where something is public of them. Raises ValueError for a limit below 2, bounds that are turned round, a
    shift or floor of a variant other than adjusted, or a negative total or floor.
    """

    variant: Made
    limit: int = 10
    zeros: Zeros = "kept"
    rounding: Rounding = "nearest"
    shift: tuple[float, float] = (0.0, 0.0)
    floor: float = 0.0
    total: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.limit < 2:
            raise ValueError(f"limit {self.limit}: a limit below 2 protects nobody")
        if self.shift[0] > self.shift[1]:
            raise ValueError("shift: the least shift stands first, the greatest second")
        if self.variant != "adjusted" and (self.shift != (0.0, 0.0) or self.floor != 0.0):
            raise ValueError(f"shift, floor: variant {self.variant} shifts no count")
        if self.floor < 0:
            raise ValueError("floor: a released count is not negative")
        if self.total is not None and not 0 <= self.total[0] <= self.total[1]:
            raise ValueError("total: the least number of people stands first, the greatest second, neither negative")

    @property
    def least(self) -> int:
        """The smallest true count behind a released count that is not nought."""
        return 0 if self.zeros == "lifted" else 1


@dataclass(frozen=True, eq=False)
class Intervals:
    """Least and greatest true counts of a table's cells, both [table shape]."""

    lower: WholeCounts
    upper: WholeCounts

    @property
    def width(self) -> WholeCounts:
        """Upper less lower; nought where the count is known."""
        return self.upper - self.lower


def count_intervals(counts: Counts, possible: NDArray[np.bool_], rule: ReleaseRule) -> Intervals:
    """Intervals of the true counts behind released counts of any shape; cells that are not possible are [0, 0].

    Raises ValueError where the rule makes no such count of any true count.
    """
    if rule.variant in {"coarsened", "adjusted"}:
        lower, upper, made = _of_multiples(counts, rule)
    else:
        lower = np.rint(counts).astype(np.int64)
        upper = lower.copy()
        made = np.abs(counts - lower) <= _SLACK
        if rule.variant == "controlled":
            small = lower == rule.limit - 1
            made &= small | (lower >= rule.limit) | ((lower == 0) & (rule.zeros == "kept"))
            lower[small] = rule.least
    if not made[possible].all():
        raise ValueError(f"a released count is none that the rule {rule.variant} with limit {rule.limit} makes")
    return Intervals(np.where(possible, lower, 0), np.where(possible, upper, 0))


def _of_multiples(counts: Counts, rule: ReleaseRule) -> tuple[WholeCounts, WholeCounts, NDArray[np.bool_]]:
    L = rule.limit
    first = np.maximum(np.ceil((counts - rule.shift[1] - _SLACK) / L), 1).astype(np.int64)
    last = np.floor((counts - rule.shift[0] + _SLACK) / L).astype(np.int64)
    nought = counts <= _SLACK
    first[counts <= rule.floor + _SLACK] = 1  # all smaller multiples were stopped there too
    reached = (last >= first) & (counts >= rule.floor - _SLACK)
    below, above = {"nearest": (L // 2, (L + 1) // 2 - 1), "up": (L - 1, 0), "down": (0, L - 1)}[rule.rounding]
    lower = np.where(first == 1, rule.least, first * L - below)
    upper = last * L + above
    if rule.zeros == "kept":
        lower = np.where(nought, 0, lower)
        upper = np.where(nought & ~reached, 0, upper)
        reached |= nought
    return lower, upper, reached
