"""What leaves when a generator measures rows: runs through the curator, each flattened into one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from dp_accounting import DpEvent

from synth_platform.generators.protocol import Ask, DPGenerator
from synth_platform.normalize.rows import EncodedRows, FloatArray, IntArray
from synth_platform.privacy.noise import NoiseSource
from synth_platform.privacy.rehearsal import Rehearsal
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease

Measure = Callable[[Ask], tuple[StatisticRelease, ...]]
Charged = tuple[DpEvent, ...]
LARGEST = 1e9  # what is beyond, or no number, counts as this far out


class Silence:
    """A noise source of zeros: shows what a mechanism adds its noise to."""

    @property
    def source(self) -> Literal["seeded"]:
        """Never fit for a release."""
        return "seeded"

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """`size` zeros."""
        return np.zeros(size, dtype=np.int64)

    def gumbel_top(self, scores: FloatArray, size: int) -> IntArray:
        """Positions of the `size` largest scores [m] themselves, largest first."""
        return np.argsort(-scores, kind="stable")[:size]


class Door:
    """Where an auditor stands: data sets go in, what is released of them comes out, and what it would have cost.

    Numbers are in units of their claimed sigma. A run that raises an error is one whose numbers are 0 and whose last
    number, which is 0 otherwise, is 1: that a run fails on some rows and not on others is what an attacker sees.
    """

    def __init__(self, generator: DPGenerator, rows: EncodedRows, noise: NoiseSource, *, adaptive: bool) -> None:
        """One pilot run on `rows` says which queries there are; see `mechanism_audit.mechanism_audit` for adaptive."""
        queries: list[StatisticQuery[EncodedRows]] = []
        pilot = Rehearsal(rows, noise)

        def ask(query: StatisticQuery[EncodedRows]) -> StatisticRelease:
            queries.append(query)
            return pilot.ask(query)

        generator.measure(ask)
        self._fixed: Measure = lambda ask: tuple(ask(query) for query in queries)
        self._measure: Measure = generator.measure if adaptive else self._fixed
        self._noise = noise
        self.dimension = sum(query.dimension for query in queries) + 1
        self.charged: set[Charged] = {pilot.events}

    def run(self, rows: EncodedRows, runs: int) -> FloatArray:
        """[runs, dimension] what each of `runs` independent runs on `rows` releases."""
        rehearsal = Rehearsal(rows, self._noise)
        released = np.stack([self._flat(self._measure, rehearsal.ask) for _ in range(runs)])
        each = len(rehearsal.events) // runs
        self.charged |= {rehearsal.events[i * each : (i + 1) * each] for i in range(runs)}
        return released

    def silent(self, rows: EncodedRows) -> FloatArray:
        """[dimension] what the noise of the pilot's queries would be added to."""
        return self._flat(self._fixed, Rehearsal(rows, Silence()).ask)

    def _flat(self, measure: Measure, ask: Ask) -> FloatArray:
        values = np.zeros(self.dimension)
        try:
            numbers = np.concatenate([release.values / release.sigma for release in measure(ask)])
            values[:-1] = np.clip(np.nan_to_num(numbers, nan=LARGEST), -LARGEST, LARGEST)
        except Exception:  # whatever it is, it is an answer
            values[:] = 0.0
            values[-1] = 1.0
        return values
