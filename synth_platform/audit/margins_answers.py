"""G2, answers of counts: what was asked of the ledger, with which noise, and margins that are near what was answered.

One person more or less moves one count of each of k tables by one: √k in L2, whatever the tables.

Margins are the nearest to the answers, by least squares, that agree and have nobody below nought. The true counts are
such margins too, so that the squared distance is at most that of the noise, χ² with a degree a cell, but with
FALSE_ALARM; and no cell lies farther from its answer than twice the largest of all noise. Slack is for iterations that
end a little off the nearest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import chi2

from synth_platform.audit.findings import Findings
from synth_platform.audit.ledger import Entry
from synth_platform.audit.margins_tables import Counted, Names, Space
from synth_platform.audit.reading import Document, FloatArray, array, digest, number, sequence, text

CODE = "M_COUNTS"
FALSE_ALARM = 1e-9
SAME_SCALE = 1e-6  # relative: of a scale whose epsilon was solved for by another method
SLACK = 1.1
_TOTAL = 1e-6


def farthest(cells: int) -> float:
    """Twice the |z| that any of so many unit Gaussians exceeds with FALSE_ALARM."""
    return 2 * float(brentq(lambda z: math.log(2 * cells) + log_ndtr(-z) - math.log(FALSE_ALARM), 0.0, 40.0))


def noise_norm(cells: int) -> float:
    """What the squared distance of margins to their answers, in units of the noise, stays below, with its slack."""
    return SLACK * float(chi2.isf(FALSE_ALARM, cells))


def cells_of(space: Space, names: Sequence[str]) -> int:
    """Cells of a table."""
    return math.prod(space.shape(names))


def audit_counts(
    found: Findings, name: str, space: Space, answer: Document, entry: Entry, tables: Sequence[Names], scale: float
) -> None:
    """One answer for all of these tables, of the sensitivity and the noise that are due."""
    own, claimed = math.sqrt(len(tables)), number(answer, "sensitivity")
    found.close(f"{name}/sensitivity", "sensitivity", claimed, own, tolerance=1e-12 * own, public=True)
    noise = number(answer, "scale")
    found.close(f"{name}/scale", "scale", noise, scale, tolerance=SAME_SCALE * scale, public=True)
    step = number(answer, "granularity")
    fine = 0 < step <= 1 and math.log2(step).is_integer()
    found.holds(f"{name}/granularity", "grid", fine, "counts are no multiples of the step")
    values = array(answer, "values", shape=(sum(cells_of(space, names) for names in tables),))
    found.holds(f"{name}/grid", "grid", bool((values / step == np.round(values / step)).all()), "off the grid")
    found.same(f"{name}/relation", "sensitivity", entry.reserved.get("neighbouring"), "add_remove")
    event = {"type": "GaussianDpEvent", "noise_multiplier": number(entry.event, "noise_multiplier")}
    found.same(f"{name}/event", "entries", entry.event, event)


def request_sha256(
    evidence: Document, space: Space, answer: Document, entry: Entry, tables: Sequence[Names], **more: Any
) -> str:
    """SHA-256 of what was asked, as the ledger names it, had it been counts of these tables of these rows."""
    request = {
        "domain": text(evidence, "registered", "domain"),
        "cohort": text(evidence, "registered", "cohort"),
        "input": text(evidence, "measured", "rows"),
        "code": CODE,
        "event": entry.event,
        "sensitivity": number(answer, "sensitivity"),
        "mechanism": "gaussian_counts",
        "scale": number(answer, "scale"),
        "sizes": [cells_of(space, names) for names in tables],
        "cells": "margins.cells",
        "parameters": {
            "margins": [list(names) for names in tables],
            "domain": digest(sequence(evidence, "variables")),
            **more,
        },
        "draw": 0,
        "noise_source": entry.reserved.get("noise_source"),
    }
    return digest(request)


def tables_of(space: Space, answer: Document, tables: Sequence[Names]) -> list[FloatArray]:
    """The answer as a table each."""
    values, start, found = array(answer, "values"), 0, []
    for names in tables:
        end = start + cells_of(space, names)
        found.append(values[start:end].reshape(space.shape(names)))
        start = end
    return found


def audit_margin(
    found: Findings, name: str, space: Space, margin: Counted, noisy: FloatArray, scale: float, total: float
) -> tuple[float, int]:
    """A margin is near its answer, has the total of all, and nobody where nobody can be.

    scale: noise of the answer. Returns the squared distance in its units, and of how many cells it is.
    """
    possible = space.possible(margin.names)
    apart = (np.abs(margin.counts - noisy) / scale)[possible]
    near = bool((apart <= farthest(apart.size)).all())
    found.holds(f"{name}/answer", "noisy_count", near, "too far from what was answered")
    found.holds(f"{name}/structural", "structural_zero", not margin.counts[~possible].any(), "people in one")
    same = abs(float(margin.counts.sum()) - total) <= _TOTAL * max(1.0, total)
    found.holds(f"{name}/total", "total", same, "not the total of the others")
    return float((apart**2).sum()), apart.size


def audit_distance(found: Findings, name: str, distances: Sequence[tuple[float, int]]) -> None:
    """All margins together are no farther from their answers than noise is."""
    squares, cells = (sum(part) for part in zip(*distances, strict=True))
    near = squares <= noise_norm(int(cells))
    found.holds(f"{name}/distance", "noisy_count", near, "farther from the answers than the noise is")
