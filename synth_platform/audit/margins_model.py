"""G3, the model: residuals, totals and status of a fit anew from its own probabilities and the margins it was given.

Residual of a margin: total variation, here as one less the overlap Σ min(p, q). A fit has matched where no residual is
above its tolerance. Tables of one distribution agree on the variables that they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from synth_platform.audit.findings import Findings
from synth_platform.audit.margins_tables import Counted, Names, Space, title
from synth_platform.audit.reading import Document, FloatArray, array, mapping, number, text, whole

ENGINES = ("dense", "junction_tree", "weighted_rows")
STATUSES = ("matched", "limit_cycle", "iteration_limit")
_ROUNDING = 1e-9  # of probabilities that were added in another order
MOST_TOLERANCE = 0.01


def audit_model(
    found: Findings, stage: str, evidence: Document, space: Space, released: Sequence[Counted]
) -> dict[Names, FloatArray]:
    """Fitted probabilities by table, and of every variable alone, whose agreement shows that they are of one model."""
    name, model = f"G3/{stage}/model", mapping(evidence, "model")
    tables = {
        names: table
        for names, table in zip(space.tables, space.tables_at(evidence, "model", "tables"), strict=True)
        if table is not None
    }
    found.holds(f"{name}/engine", "structure", text(model, "engine") in ENGINES, "no such engine")
    for names, table in tables.items():
        here = f"{name}/{title(names)}"
        found.holds(f"{here}/sum", "probabilities", abs(float(table.sum()) - 1) <= _ROUNDING, "not one in all")
        empty = not table[~space.possible(names)].any()
        found.holds(f"{here}/structural", "structural_zero", empty, "probability in a structural zero")
    _agree(found, name, space, tables)
    residuals, totals = (array(model, key, shape=(len(released),)) for key in ("residuals", "totals"))
    own = []
    for position, margin in enumerate(released):
        here = f"{name}/{position:02d}:{title(margin.names)}"
        with found.section(here):
            fitted, total = tables[margin.names], float(margin.counts.sum())
            own.append(max(0.0, 1 - float(np.minimum(fitted, margin.counts / total).sum())))
            found.close(f"{here}/residual", "residual", float(residuals[position]), own[-1], tolerance=_ROUNDING)
            found.close(f"{here}/total", "total", float(totals[position]), total, tolerance=1e-6 + _ROUNDING * total)
    middle = median(totals.tolist())
    found.close(f"{name}/total", "total", number(model, "total"), middle, tolerance=1e-6 + _ROUNDING * middle)
    largest = max(own)
    found.close(f"{name}/largest", "residual", number(model, "largest_residual"), largest, tolerance=_ROUNDING)
    tolerance, status = number(model, "tolerance"), text(model, "status")
    found.holds(f"{name}/tolerance", "tolerance", 0 < tolerance <= MOST_TOLERANCE, f"claimed {tolerance:.3g}")
    found.holds(f"{name}/cycles", "structure", whole(model, "cycles") >= 1, "no cycle")
    within = {"matched": largest <= tolerance + _ROUNDING}.get(status, largest > tolerance - _ROUNDING)
    found.holds(f"{name}/status", "status", status in STATUSES and within, f"claimed {status}")
    ones = {(n,): _alone(n, names, table) for names, table in tables.items() for n in names}
    return ones | tables


def _agree(found: Findings, name: str, space: Space, tables: dict[Names, FloatArray]) -> None:
    """Every variable has the same probabilities in all tables that hold it."""
    for variable in space.names:
        held = [_alone(variable, names, table) for names, table in tables.items() if variable in names]
        same = bool(held) and all(np.abs(held[0] - other).max() <= _ROUNDING for other in held)
        found.holds(f"{name}/{variable}/agrees", "probabilities", same, "tables disagree")


def _alone(variable: str, names: Names, table: FloatArray) -> FloatArray:
    axis = names.index(variable)
    return np.asarray(table.sum(axis=tuple(at for at in range(table.ndim) if at != axis)))
