"""Disclosure audit of released margins: what somebody who knows them and the public rule they were made by can infer.

Each released count gives an interval of the true count; the intervals of overlapping tables narrow each other. The gate
fails by name where

- small_cell_recoverable: a cell is bounded within 1 … limit − 1. A release under `controlled` says so of its small
  cells outright, and an unaltered table of its own.
- attribute_disclosed: all people of a group, and there are some, stand in one category though others are possible.
- zero_inferred: a cell of a released table, which by itself may have people, is found to be empty. Of tables that were
  not released nothing was said, so that an empty cell of theirs takes nothing back.
- differencing: two tables differ by fewer than `limit` people.
- margins_contradict: no one table of people fits them all; then each margin is bounded by itself alone.

Figures are of released margins and public rules only; nothing of microdata is read, and the report may be public.
Which margins and rule a plan's release is judged by, `plan` says.

Bounded are the released margins, single variables and pairs, and threes of variables by "linear_programming" and
"relaxation" (`together` says which method when). Cells of more variables are not, nor are those of three by "triples"
and "shuttle", though they may be known to be few where all pairs pass. Bounds but those of "linear_programming" are
outer ones: an attacker with more time may narrow them, so that a pass is weaker.

Not covered either: probable counts (how likely each count within its interval is, from several rounded versions or from
the fit), an attacker who knows some of the people, releases that are not given, sets of cells that are small together
though none of them is, and the synthetic rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.disclosure.bounds_shuttle import Axes, ContradictoryMarginsError, Tables, shuttle_bounds
from synth_platform.margins.disclosure.differencing import Difference, differences
from synth_platform.margins.disclosure.intervals import Intervals, ReleaseRule, count_intervals
from synth_platform.margins.disclosure.together import Together, bounds_together, method_for
from synth_platform.margins.domain import Domain
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.structural_zeros import possible

Method = Together | Literal["each_alone"]


@dataclass(frozen=True)
class TableBounds:
    """What is inferred of one table.

    released: False for a table that is only inferred from others. cells: those that no structural zero covers. small:
    cells whose own released count says 1 … limit − 1. recoverable: cells inferred to be within 1 … limit − 1. exact:
    cells that are known and not empty. zeros: cells known to be empty; zeros_inferred: those of them of which the
    table's own released counts did not say it (none for a table that was not released). groups_disclosed: groups of
    which everybody is known to be in one category. narrowest: least upper − lower over cells that may hold people, None
    where there are none.
    """

    title: str
    released: bool
    cells: int
    small: int
    recoverable: int
    exact: int
    zeros: int
    zeros_inferred: int
    groups_disclosed: int
    narrowest: int | None


@dataclass(frozen=True, eq=False)
class CellBounds:
    """Least and greatest true counts of every cell, by the positions of the table's variables in the domain, ascending.

    own: what each released margin says by itself, by its title, with its variables. consistent: whether one table of
    people fits all margins; where none does, bounds are of each margin by itself. unsettled: cells that a program was
    left out for, which might have turned the verdict.
    """

    method: Method
    limit: int
    consistent: bool
    unsettled: int
    own: dict[str, tuple[Axes, Intervals]]
    tables: Tables


@dataclass(frozen=True)
class DisclosureReport:
    """Bounds by table, tables that differ by fewer than `limit` people, and why the gate fails, if it does.

    unsettled: as `CellBounds` has it.
    """

    method: Method
    limit: int
    consistent: bool
    unsettled: int
    tables: tuple[TableBounds, ...]
    differences: tuple[Difference, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Names of what fails, as the module tells them; none where the gate passes."""
        failed = {
            "small_cell_recoverable": any(table.recoverable for table in self.tables),
            "attribute_disclosed": any(table.groups_disclosed for table in self.tables),
            "zero_inferred": any(table.zeros_inferred for table in self.tables),
            "differencing": bool(self.differences),
            "margins_contradict": not self.consistent,
        }
        return tuple(name for name, fails in failed.items() if fails)

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.reasons

    def document(self) -> dict[str, Any]:
        """The report in JSON values, as public as the margins are; status is PASS or FAIL."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {"status": "PASS" if self.passed else "FAIL", "reasons": list(self.reasons), **found}


def disclosure_bounds(
    released: MarginSet,
    rule: ReleaseRule | Mapping[str, ReleaseRule],
    method: Literal["auto"] | Method = "auto",
    also: Iterable[Sequence[str]] = (),
) -> DisclosureReport:
    """Audit released margins made by one rule, or by a rule for each margin's title: `cell_bounds`, judged."""
    bounds = cell_bounds(released, rule, method, also)
    own, limit = dict(bounds.own.values()), bounds.limit
    tables = tuple(_judged(released, table, cells, own.get(table), limit) for table, cells in bounds.tables.items())
    found = differences(released.domain, bounds.own, released.zeros, limit)
    return DisclosureReport(bounds.method, limit, bounds.consistent, bounds.unsettled, tables, found)


def cell_bounds(
    released: MarginSet,
    rule: ReleaseRule | Mapping[str, ReleaseRule],
    method: Literal["auto"] | Method = "auto",
    also: Iterable[Sequence[str]] = (),
) -> CellBounds:
    """What is inferred of every cell of released margins made by one rule, or by a rule for each margin's title.

    Bounds cover every released margin, single variable and pair, the tables named in `also`, and threes as `together`
    says; by "each_alone", or where margins contradict each other, the released margins only. method: auto takes the
    tightest that there is room for. Raises ValueError for a margin without a rule, limits that differ, counts that the
    rule does not make, or an unknown variable.
    """
    domain = released.domain
    rules = {m.title: rule if isinstance(rule, ReleaseRule) else _rule_of(m, rule) for m in released}
    if len({each.limit for each in rules.values()}) > 1:
        raise ValueError("rules of one release share their limit: it is what every table is judged by")
    limit = rules[released.margins[0].title].limit
    own = {margin.title: _own_intervals(released, margin, rules[margin.title]) for margin in released}
    known: Tables = dict(own.values())
    asked = {tuple(sorted(domain.axes(names))) for names in also}
    if method == "auto":
        method = method_for(domain, {*known, *asked})
    consistent = True
    if method != "each_alone":
        try:
            tables, unsettled = bounds_together(released, known, asked, _total(rules.values()), limit, method)
            return CellBounds(method, limit, consistent, unsettled, own, tables)
        except ContradictoryMarginsError:
            consistent = False
    alone = {table: shuttle_bounds(domain.shape, {table: known[table]})[table] for table in sorted(known)}
    return CellBounds(method, limit, consistent, 0, own, alone)


def _total(rules: Iterable[ReleaseRule]) -> Intervals | None:
    totals = [each.total for each in rules if each.total is not None]
    if not totals:
        return None
    return Intervals(np.array(max(low for low, _ in totals)), np.array(min(high for _, high in totals)))


def _rule_of(margin: Margin, rules: Mapping[str, ReleaseRule]) -> ReleaseRule:
    if margin.title not in rules:
        raise ValueError(f"margin {margin.title} has no release rule: give one by its title")
    return rules[margin.title]


def _own_intervals(released: MarginSet, margin: Margin, rule: ReleaseRule) -> tuple[Axes, Intervals]:
    """A margin's variables, ascending, and its intervals in that order."""
    try:
        intervals = count_intervals(margin.counts, released.possible(margin), rule)
    except ValueError as wrong:
        raise ValueError(f"margin {margin.title}: {wrong}") from None
    axes = released.domain.axes(margin.names)
    order = tuple(np.argsort(axes).tolist())
    ascending = Intervals(intervals.lower.transpose(order), intervals.upper.transpose(order))
    return tuple(sorted(axes)), ascending


def _possible(released: MarginSet, table: Axes) -> NDArray[np.bool_]:
    return possible(_over(released.domain, table), released.zeros)


def _over(domain: Domain, table: Axes) -> Domain:
    return domain.project([domain.names[axis] for axis in table])


def _judged(released: MarginSet, table: Axes, bounds: Intervals, own: Intervals | None, limit: int) -> TableBounds:
    cells = _possible(released, table)
    zero = cells & (bounds.upper == 0)
    people = cells & (bounds.upper > 0)
    return TableBounds(
        title=next((m.title for m in released if tuple(sorted(released.domain.axes(m.names))) == table), None)
        or " × ".join(_over(released.domain, table).names),
        released=own is not None,
        cells=int(cells.sum()),
        small=0 if own is None else int(_small(own, limit).sum()),
        recoverable=int(_small(bounds, limit).sum()),
        exact=int((people & (bounds.width == 0)).sum()),
        zeros=int(zero.sum()),
        zeros_inferred=0 if own is None else int((zero & (own.upper > 0)).sum()),
        groups_disclosed=_groups_disclosed(bounds, cells),
        narrowest=int(bounds.width[people].min()) if people.any() else None,
    )


def _small(intervals: Intervals, limit: int) -> NDArray[np.bool_]:
    return (intervals.lower >= 1) & (intervals.upper < limit)


def _groups_disclosed(bounds: Intervals, cells: NDArray[np.bool_]) -> int:
    """Groups by all variables of a table but one, of which everybody is in one category of that one."""
    if bounds.upper.ndim < 2:
        return 0
    disclosed = 0
    for along in range(bounds.upper.ndim):
        alone = ((bounds.upper > 0).sum(axis=along) == 1) & (cells.sum(axis=along) > 1)
        disclosed += int((alone & (bounds.lower.sum(axis=along) > 0)).sum())
    return disclosed
