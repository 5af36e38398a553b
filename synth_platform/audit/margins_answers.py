"""G2, answers of counts: what was asked of the ledger, with which noise, and margins that are near what was answered.

One person more or less moves one count of each of k tables by one: √k in L2, whatever the tables.

Margins are made of answers by least squares and by taking off what is below nought: with noise z on a cell, an error of
least squares is no larger than the noise by itself, so that no cell lies farther from its answer than twice the largest
of all noise, but with FALSE_ALARM.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from synth_platform.audit.findings import Findings
from synth_platform.audit.ledger import Entry
from synth_platform.audit.margins_tables import Counted, Names, Space
from synth_platform.audit.reading import Document, FloatArray, array, digest, number, sequence, text

CODE = "M_COUNTS"
FALSE_ALARM = 1e-9
SAME_SCALE = 1e-6  # relative: of a scale whose epsilon was solved for by another method
_TOTAL = 1e-6


def farthest(cells: int) -> float:
    """Twice the |z| that any of so many unit Gaussians exceeds with FALSE_ALARM."""
    return 2 * float(brentq(lambda z: math.log(2 * cells) + log_ndtr(-z) - math.log(FALSE_ALARM), 0.0, 40.0))


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
    found: Findings, name: str, space: Space, margin: Counted, noisy: FloatArray, most: float, total: float
) -> None:
    """A margin is near its answer, has the total of all, and nobody where nobody can be."""
    possible = space.possible(margin.names)
    apart = np.abs(margin.counts - noisy)[possible]
    found.holds(f"{name}/answer", "noisy_count", bool((apart <= most).all()), "too far from what was answered")
    found.holds(f"{name}/structural", "structural_zero", not margin.counts[~possible].any(), "people in one")
    same = abs(float(margin.counts.sum()) - total) <= _TOTAL * max(1.0, total)
    found.holds(f"{name}/total", "total", same, "not the total of the others")
