"""Replicated uniques: real people who are alone in their combination of all variables, and the rows that repeat them.

A generator that knows margins alone meets such a combination by chance, and the more often the better it fits: a number
of replicated uniques says nothing by itself. Two numbers stand beside it. What rows that never saw these people
replicate: a second sample of the population, or a table of a fit to other people (`replicated_uniques` of those rows).
And what the fit has to replicate on average (`expected_replicated`, exact): copies of people show as more than that.

Restricted: every figure compares with private rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_platform.margins.domain import Codes
from synth_platform.margins.fitting.dense import DenseFit
from synth_platform.margins.fitting.fitted import Fitted
from synth_platform.margins.fitting.junction_tree import JunctionTreeFit
from synth_platform.margins.fitting.weighted_rows import WeightedRowsFit
from synth_platform.margins.margin import Counts, ratio
from synth_platform.margins.measures.compared import Compared, numbered_cells
from synth_platform.margins.rows import Rows


@dataclass(frozen=True)
class ReplicatedUniques:
    """Counts of rows.

    real: rows that are unique in the real table; replicated: those of them that the synthetic table has at least once,
    and replicated_once: exactly once, which published software counts. synthetic: rows of the synthetic table that are
    like a real unique; of: rows of the synthetic table.
    """

    real: int
    replicated: int
    replicated_once: int
    synthetic: int
    of: int

    @property
    def share(self) -> float:
        """Real uniques that are replicated, nought where there are none."""
        return self.replicated / self.real if self.real else 0.0


def replicated_uniques(real: Rows, synthetic: Rows) -> ReplicatedUniques:
    """Count them over all variables. Raises ValueError as `Compared` does."""
    compared = Compared(real, synthetic)
    cells = numbered_cells(compared.codes)
    count = int(cells.max()) + 1
    unique = np.bincount(cells[~compared.is_synthetic], minlength=count) == 1
    again = np.bincount(cells[compared.is_synthetic], minlength=count)[unique]
    return ReplicatedUniques(
        len(again), int((again > 0).sum()), int((again == 1).sum()), int(again.sum()), len(synthetic)
    )


def expected_replicated(real: Rows, fitted: Fitted, rows: int) -> float:
    """Σ 1 − (1 − p)^rows over the real uniques, p the fitted probability of their cells: the mean of `replicated`.

    Of independent rows drawn from the fit. Raises ValueError for rows of another domain than the fit's.
    """
    if real.domain != fitted.domain:
        raise ValueError("the fit has another domain than the rows: code both by one domain")
    _, first, times = np.unique(numbered_cells(real.codes), return_index=True, return_counts=True)
    p = _cell_probabilities(fitted, real.codes[first[times == 1]])
    return float(-np.expm1(rows * np.log1p(-np.minimum(p, 1 - 1e-16))).sum())


def _cell_probabilities(fitted: Fitted, codes: Codes) -> Counts:
    """Fitted probabilities of single cells, [cells], without a table over all variables."""
    match fitted:
        case DenseFit():
            total = fitted.table.sum(dtype=np.float64)
            return np.asarray(fitted.table[tuple(codes[:, axis] for axis in fitted.order)] / total)
        case WeightedRowsFit():
            cells = numbered_cells(np.concatenate([codes, fitted.candidates.astype(np.int64)]))
            weights = np.bincount(cells[len(codes) :], fitted.weights, minlength=int(cells.max()) + 1)
            return np.asarray(weights[cells[: len(codes)]], dtype=np.float64)
        case JunctionTreeFit():
            p = np.ones(len(codes))
            for table, clique, separator in zip(
                fitted.tables, fitted.tree.cliques, fitted.tree.separators, strict=True
            ):
                axes = fitted.domain.axes(clique)
                over = tuple(place for place, name in enumerate(clique) if name not in separator)
                given = ratio(table, np.broadcast_to(table.sum(axis=over, keepdims=True), table.shape))
                p *= given[tuple(codes[:, axis] for axis in axes)]
            return p
    raise ValueError("a fit of another engine has no probabilities of single cells here")
