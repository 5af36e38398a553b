"""G3, the disclosure gate: its status follows from its figures, and its figures miss nothing that others find.

Figures of a table are numbers of cells. The gate may find more than the audit, which has other bounds; it may not find
less. Nor can it be right about more cells than there are: of what it infers, the true counts tell whether it is so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth_platform.audit.findings import Findings
from synth_platform.audit.margins_bounds import Bounds, Whole, intervals, joint_bounds, narrowed, of_three
from synth_platform.audit.margins_protection import rounded
from synth_platform.audit.margins_tables import Counted, Space, title
from synth_platform.audit.reading import Document, FloatArray, item, mapping, sequence, text, whole

PASS, FAIL = "PASS", "FAIL"
# Which figure of a table is which reason.
REASONS: Mapping[str, str] = {
    "recoverable": "small_cell_recoverable",
    "groups_disclosed": "attribute_disclosed",
    "zeros_inferred": "zero_inferred",
}
ALONE = "each_alone"
OF_THREES = frozenset({"linear_programming", "relaxation"})  # methods that bound all threes of variables too
CONTRADICT, DIFFERENCING = "margins_contradict", "differencing"


def audit_disclosure(
    found: Findings, stage: str, registered: Document, space: Space, true: Sequence[Counted], gate: Document
) -> None:
    """The gate's document against own bounds on the coarsened counts."""
    name, plan = f"G3/{stage}/disclosure_gate", registered["plan"]
    tables = [mapping({"tables": table}, "tables") for table in sequence(gate, "tables")]
    found.same(f"{name}/limit", "limit", whole(gate, "limit"), whole(plan, "limit"))
    reasons = {str(reason) for reason in sequence(gate, "reasons")}
    due = {reason for figure, reason in REASONS.items() if any(whole(table, figure) for table in tables)}
    due |= {DIFFERENCING} if sequence(gate, "differences") else set()
    # Whether margins contradict each other is no figure: of one table of people they cannot.
    microdata = text(registered, "source") == "microdata"
    due |= set() if microdata else reasons & {CONTRADICT}
    found.same(f"{name}/reasons", "reasons", sorted(reasons), sorted(due))
    found.same(f"{name}/status", "status", text(gate, "status"), FAIL if reasons else PASS)
    alone, differ = text(gate, "method") == ALONE, text(registered, "totals") == "differ"
    found.holds(f"{name}/method", "method", differ or not alone, "totals are equal")
    if microdata:
        found.same(f"{name}/differences", "differences", len(sequence(gate, "differences")), 0)

    known, people = {}, {}
    for margin in true:
        order = sorted(range(len(margin.names)), key=lambda axis: space.names.index(margin.names[axis]))
        names = tuple(margin.names[axis] for axis in order)
        counts, possible = margin.counts.transpose(order), space.possible(names)
        people[names] = counts
        known[names] = intervals(rounded(counts, possible, plan), possible, plan)
        low, high = known[names]
        inside = (counts > low - 1) & (counts < high + 1) if (counts % 1).any() else (counts >= low) & (counts <= high)
        found.holds(
            f"{name}/{title(margin.names)}/truth", "interval", bool(inside[possible].all()), "outside the rule's"
        )
    titles = {tuple(sorted(margin.names)): " × ".join(margin.names) for margin in true}
    claimed = {text(table, "title"): table for table in tables}
    found.same(f"{name}/titles", "tables", len(claimed), len(tables))
    together = not alone and CONTRADICT not in reasons
    outer = joint_bounds(space, known) if together else known
    bounded = narrowed(space, known, outer) if together else known
    if together and text(gate, "method") in OF_THREES:
        threes = [three for three in combinations(space.names, 3) if three not in known]
        outer = outer | {three: of_three(space, three, outer) for three in threes}
        bounded = bounded | {three: outer[three] for three in threes}
    found.same(f"{name}/tables", "tables", len(tables), len(outer))
    for names, bounds in bounded.items():
        here = f"{name}/{title(names)}"
        with found.section(here):
            table = mapping(claimed, titles.get(tuple(sorted(names)), " × ".join(names)))
            own = known.get(names)
            found.same(f"{here}/released", "tables", item(table, "released"), own is not None)
            found.same(f"{here}/cells", "cells", whole(table, "cells"), int(space.possible(names).sum()))
            small = 0 if own is None else int(small_cells(own, plan["limit"]).sum())
            found.same(f"{here}/small", "cells", whole(table, "small"), small, public=False)
            possible = space.possible(names)
            # Programs of the gate may be of what turns its verdict alone; widths are then those of sums.
            by_sums = figures(outer[names], own, possible, plan["limit"])
            _missed(found, here, table, figures(bounds, own, possible, plan["limit"]) | {"exact": by_sums["exact"]})
            _narrowest(found, f"{here}/narrowest", table, by_sums)
            if own is not None and (alone or not differ):  # one table of people need not fit tables that differ
                _unsound(found, here, table, people[names], space.possible(names), plan["limit"])


def small_cells(bounds: Bounds, limit: int) -> NDArray[np.bool_]:
    """Cells that are known to hold somebody, and fewer than the limit."""
    return (bounds[0] >= 1) & (bounds[1] < limit)


def figures(bounds: Bounds, own: Bounds | None, possible: NDArray[np.bool_], limit: int) -> dict[str, Any]:
    """The figures of one table from bounds on its cells; narrowest is None where nobody can be."""
    low, high = bounds
    people = possible & (high > 0)
    return {
        "recoverable": int(small_cells(bounds, limit).sum()),
        "exact": int((people & (low == high)).sum()),
        "zeros": int((possible & (high == 0)).sum()),
        "zeros_inferred": 0 if own is None else int((possible & (high == 0) & (own[1] > 0)).sum()),
        "groups_disclosed": groups(low, high, possible),
        "narrowest": int((high - low)[people].min()) if people.any() else None,
    }


def groups(low: Whole, high: Whole, possible: NDArray[np.bool_]) -> int:
    """Groups known to have people, all of them in one category of the variable left, though there are others."""
    disclosed = 0
    for axis in range(low.ndim if low.ndim > 1 else 0):
        lows, highs, cells = (
            np.moveaxis(side, axis, -1).reshape(-1, side.shape[axis]) for side in (low, high, possible)
        )
        for group in range(len(lows)):
            one = np.count_nonzero(highs[group]) == 1 and np.count_nonzero(cells[group]) > 1
            disclosed += bool(one and lows[group].any())
    return disclosed


def _missed(found: Findings, name: str, table: Document, own: Document) -> None:
    for figure in ("recoverable", "exact", "zeros", "zeros_inferred", "groups_disclosed"):
        found.holds(f"{name}/{figure}", "bound_missed", whole(table, figure) >= own[figure], "the gate found fewer")


def _narrowest(found: Findings, name: str, table: Document, own: Document) -> None:
    """The gate's narrowest interval is no wider, unless it was found to be empty since."""
    if item(table, "narrowest") is not None and own["narrowest"] is not None and table["zeros"] == own["zeros"]:
        found.holds(name, "bound_missed", whole(table, "narrowest") <= own["narrowest"], "the gate's bounds are wider")


def _unsound(
    found: Findings, name: str, table: Document, true: FloatArray, possible: NDArray[np.bool_], limit: int
) -> None:
    """No more cells are small, empty or alone in their group than there are."""
    there = {
        "recoverable": int(((true >= 1) & (true < limit)).sum()),
        "zeros": int((possible & (true < 1)).sum()),
        "groups_disclosed": groups(np.ceil(true).astype(np.int64), np.ceil(true).astype(np.int64), possible),
    }
    for figure, most in there.items():
        found.holds(f"{name}/{figure}/true", "bound_unsound", whole(table, figure) <= most, "more than there are")
