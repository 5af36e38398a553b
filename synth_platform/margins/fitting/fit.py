"""One call for three engines: the distribution of maximum entropy that has the given margins.

The engines find the same distribution; they differ in what they need. A junction tree is exact whatever the size of the
full table, as long as its cliques have room: of decomposable margins, or of few that share variables. The full table is
exact up to MOST_DENSE_CELLS cells. Weighted rows have a sampling error and no bound on the table.
"""

from __future__ import annotations

import numpy as np

from synth_platform.margins.fitting.dense import MOST_DENSE_CELLS, fit_dense
from synth_platform.margins.fitting.fitted import Engine, Fitted
from synth_platform.margins.fitting.junction_tree import MOST_CELLS, fit_junction_tree, tree_of
from synth_platform.margins.fitting.weighted_rows import fit_weighted_rows
from synth_platform.margins.margin import MarginSet

WORTH_A_TREE = 4


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
    """The exact engine that is faster, or weighted rows where neither has room.

    On a tree whose cliques are margins one cycle is enough. On any other it takes as many as on the full table, and a
    cell costs more there, so that tree has to be WORTH_A_TREE times smaller.
    """
    cells, tree = margins.domain.cells, tree_of(margins)
    kept = sum(margins.domain.project(clique).cells for clique in tree.cliques)
    closed_form = {frozenset(clique) for clique in tree.cliques} <= {frozenset(margin.names) for margin in margins}
    if kept <= MOST_CELLS and (closed_form or cells > MOST_DENSE_CELLS or kept * WORTH_A_TREE <= cells):
        return "junction_tree"
    return "dense" if cells <= MOST_DENSE_CELLS else "weighted_rows"
