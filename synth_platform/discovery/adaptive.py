"""How many hypotheses to select: one private choice from a public grid of sizes.

Every selected hypothesis makes the noise of all others larger, and one that is left out cannot be discovered. With k
selected, a value is worth its place if it reaches

    level_k = log(m/(αk)) + s_k²/2,

what e-BH asks of each of k discoveries, and what the noise of k values, of standard deviation s_k, costs each. A size
is right if at least the upper half of the selected reach the level and the first one that is left out does not:

    u_k = min(log E_(⌈k/2⌉) − level_k, level_k − log E_(k+1)),    E_(r) the r-th largest, E_(m+1) = 0.

**Sensitivity Δ.** E_(r) ≥ t says that at least r e-values are ≥ t. So if no log e-value moves by more than Δ, no log
E_(r) does, and neither does the smaller of two numbers of which each moves by at most Δ. Levels are public.

u_k is positive where k is right and grows with the margin on both sides, so a gap in the evidence pulls the size onto
itself. The distance of one order statistic from its level, −|log E_(k) − level_k|, has the same sensitivity and is
worse: beside a gap no k is near, and the noise then chooses among all. One half rather than nearly all, because a size
that is too large by a fifth loses little and one that is too small by a fifth loses a fifth.
`benchmarks/discovery_peeling.py` compares the sizes chosen with the best fixed one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from synth_platform.discovery.canonical import FloatArray

GROWTH = 1.2
"""Ratio of neighbouring sizes, where they are not neighbouring numbers."""

_HIGHEST_LEVEL = 2.0**20


@dataclass(frozen=True)
class SizeChoice:
    """Sizes to choose from, ascending, the last of them all `hypotheses`; levels in nats, one for each size."""

    hypotheses: int
    sizes: tuple[int, ...]
    levels: tuple[float, ...]

    @classmethod
    def of(cls, hypotheses: int, alpha: float, sensitivity: float, value_mu: Callable[[int], float]) -> SizeChoice:
        """The grid 1, 2, … that grows by `GROWTH`; value_mu(k) is the μ of each of k values.

        A level stays below 2^20 sensitivities, as far as any log e-value gets: each takes as many records.
        """
        sizes = [1]
        while sizes[-1] < hypotheses:
            sizes.append(min(hypotheses, max(sizes[-1] + 1, round(GROWTH * sizes[-1]))))
        scales = (sensitivity / value_mu(size) for size in sizes)
        levels = (
            math.log(hypotheses / size) - math.log(alpha) + scale**2 / 2
            for size, scale in zip(sizes, scales, strict=True)
        )
        return cls(hypotheses, tuple(sizes), tuple(min(level, _HIGHEST_LEVEL * sensitivity) for level in levels))

    @property
    def parameters(self) -> Mapping[str, object]:
        """All public constants of `utility`, JSON values."""
        return {"sizes": list(self.sizes), "levels": list(self.levels)}

    def utility(self, log_e: FloatArray) -> FloatArray:
        """u of every size; log_e [hypotheses], finite. Moves by at most as much as the log e-value that moves most."""
        ordered = np.sort(log_e)[::-1]
        sizes, levels = np.array(self.sizes), np.array(self.levels)
        utility = ordered[(sizes + 1) // 2 - 1] - levels
        some_left = sizes < self.hypotheses
        utility[some_left] = np.minimum(utility[some_left], levels[some_left] - ordered[sizes[some_left]])
        return np.asarray(utility, dtype=np.float64)
