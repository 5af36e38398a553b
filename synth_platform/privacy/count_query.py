"""Count tables of private rows: every row stands in exactly one cell of each of k tables, all released at once.

One row more or less moves one count of each table by one, and so the vector of all cells by exactly √k in L2, whatever
the row holds. Counts are whole numbers and every step of the grid is a fraction 2^-m of one, so nothing is rounded: the
noise on each cell is the discrete Gaussian of `scale`, and the release is ρ-zCDP with ρ = k/(2·scale²) (Canonne, Kamath
and Steinke 2020, Theorem 14), the ρ of a μ-GDP mechanism with μ = √k/scale. On a grid of whole numbers that second
figure would be wrong: at scale 1 one count and its neighbour differ by .399 in total variation, and two Gaussians of
μ = 1 by .383. On the fine grid of `gaussian_sum` it holds up to the δ that docs/noise.md states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import numpy as np
from dp_accounting import DpEvent, GaussianDpEvent
from numpy.typing import NDArray

from synth_platform.privacy.mechanisms import granularity
from synth_platform.privacy.noise import NoiseSource
from synth_platform.privacy.private_errors import PrivateComputationError, quiet_errors
from synth_platform.privacy.row_independence import IntArray, Rows, contributions_of
from synth_platform.privacy.statistics import FloatArray, Neighbouring
from synth_platform.privacy.within_row import WithinRow, require_declared

T = TypeVar("T")
_LARGEST_SCALE = 2.0**38


class CellError(PrivateComputationError):
    """A map does not give every row one cell of each table; the message is made of public names and shows no value."""


@dataclass(frozen=True)
class CountQuery(Generic[T]):
    """Noisy counts of the cells of several tables, one table after the other, each flat.

    code:       ledger code, e.g. "M_COUNTS".
    cells:      registered within-row map, rows [n] -> int64 [n, tables]: the position of each row's cell in its table.
    sizes:      cells of each table; public constants, never read from the data.
    scale:      standard deviation of the noise on each count, in people.
    parameters: public constants that fix the query (variables of each table, their categories, …); JSON values only.

    Raises ValueError for no tables, a table without cells, or a scale that no grid has room for.
    """

    code: str
    cells: WithinRow[T, IntArray]
    sizes: tuple[int, ...]
    scale: float
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_declared(self.cells)
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"{self.code}: sizes need at least one table, and each table at least one cell")
        if not 1e-6 <= self.scale <= _LARGEST_SCALE:  # below, counts would not be multiples of the grid step
            raise ValueError(f"{self.code}: scale is {self.scale}, expected between 1e-6 and 2^38 people")

    @property
    def step(self) -> float:
        """Grid step of the noise, a power of two and at most 1."""
        return granularity(self.sensitivity, self.scale)

    @property
    def sensitivity(self) -> float:
        """L2, of all cells together: one cell a table moves by one."""
        return math.sqrt(len(self.sizes))

    @property
    def event(self) -> DpEvent:
        """One Gaussian mechanism for all tables."""
        return GaussianDpEvent(float(self.scale) / self.sensitivity)

    @property
    def neighbouring(self) -> Neighbouring:
        """A row more or less."""
        return "add_remove"

    def describe(self) -> Mapping[str, object]:
        """The mechanism's name and constants."""
        return {
            "mechanism": "gaussian_counts",
            "scale": float(self.scale),
            "sizes": list(self.sizes),
            "cells": self.cells.name,
            "parameters": dict(self.parameters),
        }

    def placeholder(self) -> FloatArray:
        """Ones: tables that hold somebody, so that what follows from them can be made."""
        return np.ones(sum(self.sizes))

    def evaluate(self, rows: T) -> FloatArray:
        """Counts [cells of all tables], whole numbers.

        Raises RowDependence where the map is not within-row, CellError where it gives anything but one cell a table.
        """
        held: Any = rows
        if not isinstance(held, Rows):
            raise TypeError(f"{type(held).__name__} cannot be counted: rows must offer len() and take(index)")
        cells = cast(WithinRow[Rows, FloatArray], self.cells)
        with quiet_errors(cells.name):
            # Seeded by the operating system: which part is compared must not be known beforehand.
            positions: NDArray[Any] = contributions_of(cells, held, np.random.default_rng())
        if positions.shape != (len(held), len(self.sizes)) or positions.dtype.kind not in "iu":
            raise CellError(
                f"{self.code}: map {cells.name!r} does not give whole numbers [rows, {len(self.sizes)}], one a table"
            )
        return np.concatenate([self._counted(positions[:, at], size) for at, size in enumerate(self.sizes)])

    def _counted(self, positions: NDArray[Any], size: int) -> FloatArray:
        if ((positions < 0) | (positions >= size)).any():
            raise CellError(f"{self.code}: map {self.cells.name!r} puts a row outside of a table; correct it or sizes")
        return np.bincount(positions.astype(np.int64), minlength=size).astype(np.float64)

    def answer(self, evaluated: FloatArray, source: NoiseSource) -> tuple[FloatArray, float]:
        """Noisy counts: sums on the grid, rounded to float64 afterwards."""
        unit = round(1 / self.step)
        noisy = evaluated.astype(np.int64) * unit + source.discrete_gaussian(self.scale / self.step, evaluated.size)
        return np.asarray(noisy * self.step, dtype=np.float64), self.step
