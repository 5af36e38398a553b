"""Singling out: predicates of a synthetic table that are true of exactly one person (Giomi et al. 2023).

A predicate is a box around one synthetic row in some columns, drawn by a public seed. The attacker keeps those that are
true of one synthetic row alone and hopes that they isolate a person as well. Some do by chance: only how much more
often they isolate a training row than a control row is a leak.
"""

from __future__ import annotations

import numpy as np

from synth_platform.normalize.rows import BoolArray, FloatArray, IntArray

# Chosen on virtual worlds and mixed TCGA rows that no figure of docs/attacks.md is of: wide enough for copies that
# were blurred, in so many columns that another row is rarely in the box.
COLUMNS = 20
HALF_WIDTH = 0.75
PREDICATES = 2_000
_SEED = 8_139


def singled_out(rows: FloatArray, other: FloatArray, synthetic: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Rows of `rows` [n, p] and of `other` [n', p] that some predicate isolates among its own side, [n] and [n'].

    Sides of different size cannot be compared: a predicate isolates more easily among fewer rows. At most 2,000
    predicates, one for each distinct synthetic row.

    Raises ValueError for sides of different size.
    """
    if len(rows) != len(other):
        raise ValueError(f"singling out compares sides of equal size, not {len(rows)} and {len(other)} rows")
    centres = np.unique(synthetic, axis=0)
    rng = np.random.default_rng(_SEED)
    centres = centres[np.sort(rng.permutation(len(centres))[:PREDICATES])]
    sides = (rows, other)
    found = np.zeros(len(rows), np.bool_), np.zeros(len(other), np.bool_)
    for centre in centres:
        columns = rng.permutation(len(centre))[:COLUMNS]
        at = centre[columns]
        if _inside(centres, columns, at).sum() != 1:
            continue
        for side, isolated in zip(sides, found, strict=True):
            (inside,) = np.nonzero(_inside(side, columns, at))
            if len(inside) == 1:
                isolated[inside] = True
    return found


def _inside(rows: FloatArray, columns: IntArray, at: FloatArray) -> BoolArray:
    within: BoolArray = np.abs(rows[:, columns] - at) <= HALF_WIDTH
    return np.asarray(within.all(axis=1))
