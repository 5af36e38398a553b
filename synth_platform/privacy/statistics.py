"""What may be asked of private rows, and what comes back: the two public records of every mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from synth_platform.privacy.within_row import WithinRow

T = TypeVar("T")
FloatArray = NDArray[np.float64]
NoiseSource = Literal["cryptographic", "seeded"]


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


@dataclass(frozen=True)
class StatisticRelease:
    """A noisy statistic with the ledger entry that paid for it; safe to hand to any post-processing.

    values: [dimension] noisy sums. granularity: grid step of the discretised noise. source: who drew the noise; a
    "seeded" release can never reach ELIGIBLE_*. fingerprint: content hash committed in the ledger.
    """

    code: str
    values: FloatArray
    sensitivity: float
    sigma: float
    granularity: float
    source: NoiseSource
    entry_id: str
    fingerprint: str
