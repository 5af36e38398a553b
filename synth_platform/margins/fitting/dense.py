"""Maximum-entropy fit to margins by iterative proportional fitting in place on the full table.

The table starts even over the cells that no structural zero covers and is raked to every margin in turn, which ends at
the table of the margins with the largest entropy (Deming & Stephan 1940; Csiszár 1975) where they agree with each
other. Where they do not, or ask for people in cells that other margins or structural zeros leave empty, the cycles end
in circles: the status says `limit_cycle`, the residuals what is missed, and the table depends on the margins' order.

Cells are float64 up to MOST_DOUBLE_CELLS and float32 beyond; every sum is float64. Memory is that one table, a slab of
it and the blocks (`block_raking`). Cells are kept with mean one, so that float32 holds probabilities down to 1e-38 of
the mean cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_platform.margins.domain import Codes, Domain
from synth_platform.margins.fitting.block_raking import AxesTarget, Raking
from synth_platform.margins.fitting.fitted import FitReport
from synth_platform.margins.fitting.slabs import Axes, Slabs, Table
from synth_platform.margins.fitting.stopping import StoppingRule, total_variation
from synth_platform.margins.fitting.targets import normalise
from synth_platform.margins.margin import Counts, MarginSet

MOST_DENSE_CELLS = 10**8
MOST_DOUBLE_CELLS = 10**7
LEAST_TOLERANCE = {"float32": 1e-7, "float64": 1e-13}


@dataclass(frozen=True, eq=False)
class DenseFit:
    """A fitted full table.

    order: which variable of the domain each axis of the table is. table: weights, probabilities up to one factor.
    """

    domain: Domain
    report: FitReport
    order: Axes
    table: Table

    def probabilities(self, names: Sequence[str]) -> Counts:
        """Probabilities of the cells over the named variables, [categories of the first, …]; they sum to one.

        Raises ValueError for an unknown variable, one named twice, or none.
        """
        axes = self.domain.axes(names)
        if not axes or len(set(axes)) < len(axes):
            raise ValueError("probabilities are of some variables, each named once")
        places = [self.order.index(axis) for axis in axes]
        (sums,) = Slabs(self.table).scale_and_sum(None, [tuple(sorted(places))])
        probabilities: Counts = sums.transpose(np.argsort(np.argsort(places))) / sums.sum()
        return probabilities

    def draw(self, rows: int, generator: np.random.Generator) -> Codes:
        """Independent rows, codes [rows, variables]. Raises ValueError for fewer rows than none."""
        if rows < 0:
            raise ValueError("rows: a number of rows is due")
        slabs = Slabs(self.table)
        masses = np.array([slab.sum(dtype=np.float64) for _, slab in slabs])
        shares = generator.multinomial(rows, masses / masses.sum())
        cells = np.empty(rows, dtype=np.int64)
        done = 0
        for place, ((_, slab), share) in enumerate(zip(slabs, shares.tolist(), strict=True)):
            if share:
                up_to = np.cumsum(slab, dtype=np.float64)
                # A multiple of 2^-53 below one, times the last sum, is below the last sum when rounded, so no cell
                # without mass is hit.
                points = generator.random(share) * up_to[-1]
                cells[done : done + share] = place * slab.size + np.searchsorted(up_to, points, side="right")
                done += share
        codes = np.stack(np.unravel_index(generator.permutation(cells), self.table.shape), axis=1)
        return codes[:, np.argsort(self.order)]


def fit_dense(margins: MarginSet, tolerance: float = 1e-5, most_cycles: int = 1000) -> DenseFit:
    """Fits the full table to margins.

    tolerance: largest residual, a total variation, at which they count as matched; as it stands, one person in 100,000
    is out of place. Raises ValueError for more cells than MOST_DENSE_CELLS, a tolerance finer than the table's numbers,
    or margins and structural zeros that leave no cell at all.
    """
    domain = margins.domain
    if domain.cells > MOST_DENSE_CELLS:
        raise ValueError(
            f"the full table has {domain.cells:,} cells, more than {MOST_DENSE_CELLS:,}: "
            "leave variables out, merge categories, or fit weighted rows or a junction tree"
        )
    rule = StoppingRule(tolerance, most_cycles)
    kind = "float64" if domain.cells <= MOST_DOUBLE_CELLS else "float32"
    if tolerance < LEAST_TOLERANCE[kind]:
        raise ValueError(f"tolerance: {kind} cells reach {LEAST_TOLERANCE[kind]:g} at best, ask for no less")
    targets = normalise(margins)
    raking = Raking(domain.shape, [AxesTarget(domain.axes(t.names), t.probabilities * domain.cells) for t in targets])
    table = _start(margins, raking.order, kind)
    status, cycles, residuals = rule.run(_cycles(table, raking, [target.title for target in targets]))
    report = FitReport("dense", status, cycles, tolerance, residuals, targets.totals, targets.total)
    return DenseFit(domain, report, raking.order, table)


def _start(margins: MarginSet, order: Axes, kind: str) -> Table:
    domain = margins.domain
    table: Table = np.ones([domain.shape[axis] for axis in order], dtype=kind)
    for zero in margins.zeros:
        np.copyto(table, 0, where=zero.cells(domain).transpose(order))
    return table


def _cycles(table: Table, raking: Raking, titles: list[str]) -> Iterator[dict[str, float]]:
    """Rakes the table in place, cycle after cycle: residuals by margin title."""
    sums = raking.start(table)
    while True:
        sums = raking.cycle(table, sums)
        fitted = raking.fitted(table, sums)
        if not fitted[0].sum() > 0:
            raise ValueError(
                f"margin {titles[0]} and the others have no cell in common: what one of them has, another or a "
                "structural zero rules out; check their zero cells"
            )
        yield {
            title: total_variation(found / found.sum(), target.sums / table.size)
            for title, found, target in zip(titles, fitted, raking.targets, strict=True)
        }
