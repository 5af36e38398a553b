"""What a fit returns, whichever engine made it: a distribution that can be asked for margins and sampled, and a report.

Residual of a margin: total variation ½ Σ|p − q| between its fitted and its target probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from synth_platform.margins.domain import Codes, Domain
from synth_platform.margins.margin import Counts

Engine = Literal["dense", "junction_tree", "weighted_rows"]
Status = Literal["matched", "limit_cycle", "iteration_limit"]


@dataclass(frozen=True)
class FitReport:
    """How a fit ended.

    status: matched, every residual is at most the tolerance; limit_cycle, residuals stand still above it, as they do
    where margins contradict each other; iteration_limit, they still fell when the cycles ran out. residuals: by margin
    title. totals: totals of the margins as they were given, by title; total: what all of them were normalised to.
    """

    engine: Engine
    status: Status
    cycles: int
    tolerance: float
    residuals: dict[str, float]
    totals: dict[str, float]
    total: float

    @property
    def largest_residual(self) -> float:
        """The residual of the worst margin."""
        return max(self.residuals.values())


class Fitted(Protocol):
    """A fitted distribution over a domain."""

    @property
    def domain(self) -> Domain:
        """The variables of the rows it draws."""

    @property
    def report(self) -> FitReport:
        """How the fit ended."""

    def probabilities(self, names: Sequence[str]) -> Counts:
        """Probabilities of the cells over the named variables, [categories of the first, …]; they sum to one."""

    def draw(self, rows: int, generator: np.random.Generator) -> Codes:
        """Independent rows, codes [rows, variables]."""
