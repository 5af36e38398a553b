"""What may be asked of private rows, and what comes back: the public records of every mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

import numpy as np
from dp_accounting import DpEvent, GaussianDpEvent
from numpy.typing import NDArray

from synth_platform.privacy import noise
from synth_platform.privacy.mechanisms import gaussian_sum
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.row_independence import Rows, contributions_of
from synth_platform.privacy.within_row import WithinRow, require_declared

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
FloatArray = NDArray[np.float64]
NoiseSource = Literal["cryptographic", "seeded"]
Neighbouring = Literal["add_remove", "replace_one"]


class Query(Protocol[T_contra]):
    """A mechanism on private rows, described by public constants: `curator.Curator` charges, runs and stores it.

    sensitivity and scale stand in the ledger, in the units of what is perturbed. `evaluate` runs before anything is
    charged, because a computation that fails must not cost budget; only `answer` draws noise.
    """

    @property
    def code(self) -> str:
        """Ledger code."""
        ...

    @property
    def sensitivity(self) -> float:
        """What one neighbouring step moves, in the norm of the mechanism."""
        ...

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        ...

    @property
    def event(self) -> DpEvent:
        """The mechanism event that answering costs."""
        ...

    @property
    def neighbouring(self) -> Neighbouring:
        """The relation under which the event holds."""
        ...

    def describe(self) -> Mapping[str, object]:
        """All that makes the query itself, JSON values; part of the request's fingerprint."""
        ...

    def placeholder(self) -> FloatArray:
        """An answer in form, of no content: for asking what a plan costs."""
        ...

    def evaluate(self, rows: T_contra) -> FloatArray:
        """What the mechanism perturbs. Errors are quiet: they carry no value."""
        ...

    def answer(self, evaluated: FloatArray, source: noise.NoiseSource) -> tuple[FloatArray, float]:
        """The noisy answer and the grid step of its values."""
        ...


@dataclass(frozen=True)
class StatisticQuery(Generic[T]):
    """A noisy sum over private rows, fully described by public constants.

    code:         ledger code, e.g. "G0_COUNTS".
    contribution: registered within-row map, rows [n] -> [n, dimension]. The mechanism clips every row of the result to
                  L2 norm <= sensitivity itself, so the sensitivity holds whatever the map does.
    dimension:    length of the released vector; a public constant, never read from the data.
    sensitivity:  L2 sensitivity under add/remove of one patient.
    sigma:        standard deviation of the Gaussian noise on each coordinate, in the statistic's own units.
    parameters:   public constants that fix the query (clip norm, cells, basis digest, ...); JSON values only. They
                  are part of the request fingerprint: change one and it is another query.
    """

    code: str
    contribution: WithinRow[T, FloatArray]
    dimension: int
    sensitivity: float
    sigma: float
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_declared(self.contribution)

    @property
    def scale(self) -> float:
        """Standard deviation of the noise."""
        return self.sigma

    @property
    def event(self) -> DpEvent:
        """A Gaussian mechanism of noise multiplier sigma/sensitivity."""
        return GaussianDpEvent(float(self.sigma) / float(self.sensitivity))

    @property
    def neighbouring(self) -> Neighbouring:
        """A patient more or less."""
        return "add_remove"

    def describe(self) -> Mapping[str, object]:
        """The mechanism's name and constants."""
        return {
            "mechanism": "gaussian_sum",
            "sigma": float(self.sigma),
            "dimension": self.dimension,
            "contribution": self.contribution.name,
            "parameters": dict(self.parameters),
        }

    def placeholder(self) -> FloatArray:
        """Zeros."""
        return np.zeros(self.dimension)

    def evaluate(self, rows: T) -> FloatArray:
        """Contributions [n, dimension]. Raises RowDependence where the map is not within-row."""
        held: Any = rows
        if not isinstance(held, Rows):
            raise TypeError(f"{type(held).__name__} cannot be measured: rows must offer len() and take(index)")
        contribution = cast(WithinRow[Rows, FloatArray], self.contribution)
        with quiet_errors(contribution.name):
            # Seeded by the operating system: which part is compared must not be known beforehand.
            contributions = contributions_of(contribution, held, np.random.default_rng())
        if contributions.ndim != 2 or contributions.shape[1] != self.dimension:
            raise ValueError(
                f"{self.code}: contribution {contribution.name!r} does not give [rows, {self.dimension}] values; "
                "dimension is a public constant of the query, correct it or the map"
            )
        return contributions

    def answer(self, evaluated: FloatArray, source: noise.NoiseSource) -> tuple[FloatArray, float]:
        """The noisy sum."""
        return gaussian_sum(evaluated, sensitivity=self.sensitivity, sigma=self.sigma, noise=source)


@dataclass(frozen=True)
class StatisticRelease:
    """A noisy answer with the ledger entry that paid for it; safe to hand to any post-processing.

    values: [dimension] noisy sums, or what another query tells. sigma: scale of the noise. granularity: grid step of
    the noise. source: who drew the noise; a "seeded" release can never reach ELIGIBLE_*. fingerprint: content
    hash committed in the ledger.
    """

    code: str
    values: FloatArray
    sensitivity: float
    sigma: float
    granularity: float
    source: NoiseSource
    entry_id: str
    fingerprint: str
