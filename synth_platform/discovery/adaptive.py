"""How many hypotheses to select: one private choice from a public grid of sizes.

Every selected hypothesis makes the noise of all others larger, and one that is left out cannot be discovered. With k
selected, a hypothesis is worth its place if its log e-value reaches level_k, the larger of

    ℓ_k + s_k²/2,    ℓ_k = log(m/(αk)),                what is left after the noise of its value has to pass e-BH, and
    b_k·log(m/k) − (1 − 1/b_k)·ℓ_k/2,    b_k > 1,      the noise of the selection lifts nulls over anything less.

s_k and b_k are the noise of k values and of k selections. The second line: the k-th largest of m keys log E + b·Gumbel
is near b·log(Σ E^{1/b}/k), and for a null with log E ~ N(−a, 2a) the mean of E^{1/b} is exp(−a(1/b − 1/b²)); a = ℓ_k/2
is half the evidence that e-values made to reach ℓ_k gather. It matters where hypotheses are very many. A size is right
if at least the upper half of the selected reach the level and the first one that is left out does not:

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
from synth_platform.discovery.selection import gumbel_scale

GROWTH = 1.2
"""Ratio of neighbouring sizes, where they are not neighbouring numbers."""

_HIGHEST_LEVEL = 2.0**20
_LARGEST_SENSITIVITY = 1e100


@dataclass(frozen=True)
class SizeChoice:
    """Sizes to choose from, ascending, the last of them all `hypotheses`; levels in nats, one for each size."""

    hypotheses: int
    sizes: tuple[int, ...]
    levels: tuple[float, ...]

    @classmethod
    def of(
        cls,
        hypotheses: int,
        alpha: float,
        sensitivity: float,
        selection_mu: Callable[[int], float],
        value_mu: Callable[[int], float],
    ) -> SizeChoice:
        """The grid 1, 2, … that grows by `GROWTH`; selection_mu(k), value_mu(k): of each of k selections and values.

        A level stays below 2^20 sensitivities, as far as any log e-value gets: each takes as many records.

        Raises ValueError unless sensitivity is > 0 and at most 1e100: what follows squares it.
        """
        if not 0 < sensitivity <= _LARGEST_SENSITIVITY:
            raise ValueError(f"sensitivity is {sensitivity}, expected that of each log e-value, > 0 and at most 1e100")
        sizes = [1]
        while sizes[-1] < hypotheses:
            sizes.append(min(hypotheses, max(sizes[-1] + 1, round(GROWTH * sizes[-1]))))

        def level(size: int) -> float:
            passing = math.log(hypotheses / size) - math.log(alpha)
            s, b = sensitivity / value_mu(size), gumbel_scale(selection_mu(size), sensitivity)
            lifted = b * math.log(hypotheses / size) - max(0.0, 1 - 1 / b) * passing / 2
            return min(max(passing + s**2 / 2, lifted), _HIGHEST_LEVEL * sensitivity)

        return cls(hypotheses, tuple(sizes), tuple(map(level, sizes)))

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
