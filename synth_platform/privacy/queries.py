"""Queries on scores of many candidates: which are largest, and how large a few of them are.

Scores are computed from the whole table, so no clip can enforce what one record does to them: `BoundedScores` states
it, and whoever makes one proves it (`discovery/statistics`). Both mechanisms round scores down to a grid h first. Where
|a − b| ≤ Δ + 2·ROUNDING, which is granted to computed scores, the rounded ones differ by at most ⌈(Δ + 2·ROUNDING)/h⌉
steps; one more covers their division by the noise scale, below half a step for scores of fewer than 2^21 sensitivities.

`SelectionQuery` tells the positions of the `size` largest of score/b + Gumbel noise, in order. One draw of noise put in
order is the same as drawing the largest `size` times and setting it aside (Plackett and Luce), so it costs `size`
selections of range 2Δ/b each (Durfee and Rogers 2019). `ValueQuery` adds discrete Gaussian noise to chosen scores; the
selection's noise is never used for it. To keep a promise of μ, take the noise scale from `sensitivity`: it is that on
the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from dp_accounting import DpEvent, GaussianDpEvent, SelfComposedDpEvent
from numpy.typing import NDArray

from synth_platform.privacy.events import BoundedRangeDpEvent
from synth_platform.privacy.mechanisms import granularity
from synth_platform.privacy.noise import NoiseSource
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.statistics import FloatArray, Neighbouring

T = TypeVar("T")
_LARGEST_STEP = 2.0**52
_SPARE_STEPS = 1
ROUNDING = 2.0**-24
"""Nats, or whatever scores are measured in: how far a computed score may be from the real number."""


class ScoreError(ValueError):
    """Scores that no mechanism can work on; the message is made of public names and shows no value."""


@dataclass(frozen=True)
class BoundedScores(Generic[T]):
    """Scores of `candidates` candidates, each moved by at most `sensitivity` by one neighbouring step.

    name: of the function ("room.function"). apply: rows -> [candidates], finite. neighbouring: the relation of the
    bound.
    """

    name: str
    apply: Callable[[T], FloatArray]
    candidates: int
    sensitivity: float
    neighbouring: Neighbouring = "replace_one"

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise ValueError(f"{self.name}: there is no candidate to choose from")
        if not (math.isfinite(self.sensitivity) and self.sensitivity > 0):
            raise ValueError(
                f"{self.name}: sensitivity is {self.sensitivity}, expected a positive finite number; a score that one "
                "record can move without bound cannot be released"
            )

    def __call__(self, rows: T) -> FloatArray:
        """The scores [candidates]. Raises ScoreError for another shape or a score that is not finite."""
        with quiet_errors(self.name, readable=(ScoreError,)):
            scores = np.asarray(self.apply(rows), dtype=np.float64)
        if scores.shape != (self.candidates,):
            raise ScoreError(f"{self.name} does not give {self.candidates} scores, one a candidate")
        if not np.isfinite(scores).all():
            raise ScoreError(f"{self.name} gives a score that is not finite: an e-value must be > 0 and < infinity")
        return scores


def grid_steps(scores: FloatArray, step: float) -> NDArray[np.int64]:
    """Scores rounded down to multiples of `step`, in steps. Raises ScoreError where they do not fit."""
    steps = np.floor(scores / step)
    if (np.abs(steps) >= _LARGEST_STEP).any():
        raise ScoreError("a score is more than two million times as large as its sensitivity: check the statistic")
    return steps.astype(np.int64)


def grid_sensitivity(sensitivity: float, step: float) -> float:
    """How far one neighbouring step moves a score on the grid, with room for floating errors."""
    return grid_sensitivity_steps(sensitivity, step) * step


def grid_sensitivity_steps(sensitivity: float, step: float) -> int:
    """The same in steps of the grid."""
    return math.ceil((sensitivity + 2 * ROUNDING) / step) + _SPARE_STEPS


@dataclass(frozen=True)
class SelectionQuery(Generic[T]):
    """The `size` candidates with the largest noisy scores, by position, in order. scale: b of the Gumbel noise.

    parameters: public constants that fix the scores, JSON values.
    """

    code: str
    scores: BoundedScores[T]
    size: int
    scale: float
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.scores.candidates:
            raise ValueError(f"{self.code}: {self.size} of {self.scores.candidates} candidates cannot be selected")

    @property
    def step(self) -> float:
        """Grid step of the scores."""
        return granularity(self.scores.sensitivity, self.scale)

    @property
    def sensitivity(self) -> float:
        """Of each score on the grid."""
        return grid_sensitivity(self.scores.sensitivity, self.step)

    @property
    def event(self) -> DpEvent:
        """`size` selections."""
        one = BoundedRangeDpEvent(2 * self.sensitivity / self.scale)
        return one if self.size == 1 else SelfComposedDpEvent(one, self.size)

    @property
    def neighbouring(self) -> Neighbouring:
        """That of the scores."""
        return self.scores.neighbouring

    def describe(self) -> Mapping[str, object]:
        """The mechanism's name and constants."""
        return {
            "mechanism": "gumbel_top",
            "scores": self.scores.name,
            "candidates": self.scores.candidates,
            "size": self.size,
            "scale": self.scale,
            "parameters": dict(self.parameters),
        }

    def placeholder(self) -> FloatArray:
        """The first positions."""
        return np.arange(self.size, dtype=np.float64)

    def evaluate(self, rows: T) -> FloatArray:
        """Scores on the grid, [candidates]."""
        return np.asarray(grid_steps(self.scores(rows), self.step) * self.step, dtype=np.float64)

    def answer(self, evaluated: FloatArray, source: NoiseSource) -> tuple[FloatArray, float]:
        """Positions [size]."""
        return source.gumbel_top(evaluated / self.scale, self.size).astype(np.float64), 1.0


@dataclass(frozen=True)
class ValueQuery(Generic[T]):
    """Noisy scores of the candidates at `positions`, in that order. sigma: standard deviation of each one's noise.

    positions: public, such as an earlier selection. parameters: public constants that fix the scores, JSON values.
    """

    code: str
    scores: BoundedScores[T]
    positions: tuple[int, ...]
    sigma: float
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        inside = all(0 <= position < self.scores.candidates for position in self.positions)
        if not self.positions or not inside or len(set(self.positions)) != len(self.positions):
            raise ValueError(f"{self.code}: positions must be candidates, at least one and each once")

    @property
    def step(self) -> float:
        """Grid step of the scores and of their noise."""
        return granularity(self.scores.sensitivity, self.sigma)

    @property
    def sensitivity(self) -> float:
        """L2, of all values together."""
        return math.sqrt(len(self.positions)) * grid_sensitivity(self.scores.sensitivity, self.step)

    @property
    def scale(self) -> float:
        """Standard deviation of each value's noise."""
        return self.sigma

    @property
    def event(self) -> DpEvent:
        """One Gaussian mechanism for all values."""
        return GaussianDpEvent(self.sigma / self.sensitivity)

    @property
    def neighbouring(self) -> Neighbouring:
        """That of the scores."""
        return self.scores.neighbouring

    def describe(self) -> Mapping[str, object]:
        """The mechanism's name and constants."""
        return {
            "mechanism": "gaussian_values",
            "scores": self.scores.name,
            "candidates": self.scores.candidates,
            "positions": list(self.positions),
            "sigma": self.sigma,
            "parameters": dict(self.parameters),
        }

    def placeholder(self) -> FloatArray:
        """Zeros."""
        return np.zeros(len(self.positions))

    def evaluate(self, rows: T) -> FloatArray:
        """Scores at the positions, on the grid."""
        return np.asarray(grid_steps(self.scores(rows)[list(self.positions)], self.step) * self.step, dtype=np.float64)

    def answer(self, evaluated: FloatArray, source: NoiseSource) -> tuple[FloatArray, float]:
        """Noisy scores."""
        noise = source.discrete_gaussian(self.sigma / self.step, len(self.positions))
        return np.asarray(evaluated + noise * self.step, dtype=np.float64), self.step
