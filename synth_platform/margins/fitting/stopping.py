"""When a fit stops: by what its margins still miss after a full cycle, never by how little its table changed.

A table changes little per cycle when it is right, but also when it creeps and when it goes round in circles between
margins that contradict each other. So the rule looks at one figure alone, the largest residual over all margins,
measured on one and the same table after every margin had its turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_platform.margins.fitting.fitted import Status
from synth_platform.margins.margin import Counts

WINDOW = 20
STANDS_STILL = 1e-3


def total_variation(fitted: Counts, target: Counts) -> float:
    """½ Σ|p − q| of two arrays of probabilities with the same shape: the residual of a margin."""
    return float(np.abs(fitted - target).sum() / 2)


@dataclass(frozen=True)
class StoppingRule:
    """Ends a fit when it matches, stands still, or has had its cycles.

    It stands still when the best largest residual of the last WINDOW cycles is less than STANDS_STILL, relatively,
    below the best one before them. That is a limit cycle for every use, though a fit that halves its residual in more
    than some 14,000 cycles would be called one too. Raises ValueError for a tolerance outside (0, 1) or fewer cycles
    than one.
    """

    tolerance: float
    most_cycles: int

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise ValueError("tolerance: a total variation between nought and one is due")
        if self.most_cycles < 1:
            raise ValueError("most_cycles: at least one cycle is due")

    def status(self, largest: Sequence[float]) -> Status | None:
        """How the fit ends after cycles with these largest residuals, oldest first; None while it has to go on."""
        if not largest:
            return None
        if largest[-1] <= self.tolerance:
            return "matched"
        before, lately = largest[:-WINDOW], largest[-WINDOW:]
        if before and min(lately) > (1 - STANDS_STILL) * min(before):
            return "limit_cycle"
        return "iteration_limit" if len(largest) >= self.most_cycles else None

    def run(self, cycles: Iterator[dict[str, float]]) -> tuple[Status, int, dict[str, float]]:
        """Takes cycles, each of which tells its residuals by margin title, until the fit ends.

        How it ended, after how many cycles, and the residuals of the last one. `cycles` has no end of its own.
        """
        largest = list[float]()
        while True:
            residuals = next(cycles)
            largest.append(max(residuals.values()))
            status = self.status(largest)
            if status is not None:
                return status, len(largest), residuals
