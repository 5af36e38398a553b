"""One call for three engines: the distribution of maximum entropy that has the given margins.

The engines find the same distribution; they differ in what they need. A junction tree is exact at any size but only for
decomposable margins. The full table is exact up to MOST_DENSE_CELLS cells. Weighted rows have a sampling error and no
bound on the table.
"""

from __future__ import annotations

import math

import numpy as np

from synth_platform.margins.dense import MOST_DENSE_CELLS, fit_dense
from synth_platform.margins.fitted import Engine, Fitted
from synth_platform.margins.junction_tree import decomposable, fit_junction_tree
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.weighted_rows import fit_weighted_rows


def fit(margins: MarginSet, generator: np.random.Generator, engine: Engine | None = None) -> Fitted:
    """The maximum-entropy distribution of margins, each normalised to its own total.

    generator: draws the candidates of weighted rows; the other engines use no randomness. engine: `choose_engine` if
    None. Raises ValueError as the engine does: margins without a common cell, or a table that is not one for it.
    """
    match engine or choose_engine(margins):
        case "junction_tree":
            return fit_junction_tree(margins)
        case "dense":
            return fit_dense(margins)
        case "weighted_rows":
            return fit_weighted_rows(margins, generator)


def choose_engine(margins: MarginSet) -> Engine:
    """The exact engine with the smallest tables, or weighted rows where no exact one has room."""
    tree = decomposable(margin.names for margin in margins)
    if tree is not None and all(any(set(zero.names) <= set(c) for c in tree.cliques) for zero in margins.zeros):
        largest = max(math.prod(margins.domain.project(clique).shape) for clique in tree.cliques)
        if largest <= MOST_DENSE_CELLS:
            return "junction_tree"
    return "dense" if margins.domain.cells <= MOST_DENSE_CELLS else "weighted_rows"
