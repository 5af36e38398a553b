"""Synthetic tables: independent rows of a fitted distribution, with the labels and types of the original."""

from __future__ import annotations

import numpy as np

from synth_platform.margins.fitting.fitted import Fitted
from synth_platform.margins.rows import Rows


def sample(
    fitted: Fitted, generator: np.random.Generator, rows: int | None = None, replicates: int = 1
) -> tuple[Rows, ...]:
    """`replicates` independent tables of exactly `rows` rows, multinomial over the cells.

    rows: the total that the margins were normalised to, rounded, if None; that of noisy margins is noisy and stays so.
    `Rows.frame` writes the values. Raises ValueError for less than one row or replicate.
    """
    wanted = round(fitted.report.total) if rows is None else rows
    if wanted < 1 or replicates < 1:
        raise ValueError("rows and replicates: at least one of each is due")
    return tuple(Rows(fitted.domain, fitted.draw(wanted, generator)) for _ in range(replicates))
