"""What a fit returns, whichever engine made it: a distribution that can be asked for margins and sampled, and a report.

Residual of a margin: total variation ½ Σ|p − q| between its fitted and its target probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
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

    Of weighted rows only, None of exact engines: effective_sample_size, 1 / Σw² (Kish 1965), independent rows that
    would tell as much; unreached, by margin title, probability of its target in cells that no row is in (no more than
    its residual), where there is any.
    """

    engine: Engine
    status: Status
    cycles: int
    tolerance: float
    residuals: dict[str, float]
    totals: dict[str, float]
    total: float
    effective_sample_size: float | None = None
    unreached: dict[str, float] | None = None

    @property
    def largest_residual(self) -> float:
        """The residual of the worst margin."""
        return max(self.residuals.values())

    def document(self) -> dict[str, object]:
        """The report in JSON values, as public as the margins are."""
        return {**asdict(self), "largest_residual": self.largest_residual}


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
