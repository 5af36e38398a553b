"""Margins: tables of counts over some variables, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.domain import Domain
from synth_platform.margins.structural_zeros import StructuralZero, possible

Counts = NDArray[np.float64]
MOST_CELLS = 2 * 10**7  # of a table of counts, or of all margins of a table of rows: 160 MB


@dataclass(frozen=True, eq=False)
class Margin:
    """Counts over the named variables, [categories of the first, of the second, …].

    provenance: where the counts come from and what was done to them since, oldest first, such as
    ("microdata census.csv", "coarsened: limit 10, zeros kept"). Raises ValueError for a count that is negative or not
    finite, no variables, or a variable twice; no count is told.
    """

    names: tuple[str, ...]
    counts: Counts
    provenance: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"margin {self.title}: it needs variables, and each of them once")
        if self.counts.ndim != len(self.names):
            raise ValueError(f"margin {self.title}: {self.counts.ndim} dimensions of counts, one a variable is due")
        if not np.isfinite(self.counts).all():
            raise ValueError(f"margin {self.title}: a count is missing or not finite")
        if (self.counts < 0).any():
            raise ValueError(f"margin {self.title}: a count is negative")

    @property
    def title(self) -> str:
        """The margin as people read it: age × sex."""
        return " × ".join(self.names)

    @property
    def total(self) -> float:
        """People that the margin counts."""
        return float(self.counts.sum())

    def became(self, counts: Counts, step: str) -> Margin:
        """The margin after a step that its provenance tells."""
        return replace(self, counts=counts, provenance=(*self.provenance, step))


@dataclass(frozen=True, eq=False)
class MarginSet:
    """Margins over one domain with its structural zeros: all that a fit, an audit and a card need.

    Raises ValueError for no margins, a margin twice, one whose shape is not that of its variables, one without people,
    a variable of the domain that no margin counts, or people in a cell that is declared impossible.
    """

    domain: Domain
    margins: tuple[Margin, ...]
    zeros: tuple[StructuralZero, ...] = ()

    def __post_init__(self) -> None:
        if not self.margins:
            raise ValueError("there are no margins")
        for zero in self.zeros:
            zero.cells(self.domain.project(zero.names))
        seen: set[frozenset[str]] = set()
        for margin in self.margins:
            due = self.domain.project(margin.names).shape
            if margin.counts.shape != due:
                raise ValueError(f"margin {margin.title}: {margin.counts.shape} counts, {due} are due")
            if frozenset(margin.names) in seen:
                raise ValueError(f"margin {margin.title} is there twice")
            seen.add(frozenset(margin.names))
            if margin.total == 0:
                raise ValueError(f"margin {margin.title} counts nobody")
            if (margin.counts[~self.possible(margin)] > 0).any():
                raise ValueError(f"margin {margin.title}: people in a cell that is declared a structural zero")
        uncounted = sorted(set(self.domain.names).difference(*seen))
        if uncounted:
            raise ValueError(f"no margin counts variable {uncounted[0]}; leave it out or add a margin")

    def __iter__(self) -> Iterator[Margin]:
        return iter(self.margins)

    def possible(self, margin: Margin) -> NDArray[np.bool_]:
        """Cells of a margin that no structural zero covers."""
        return possible(self.domain.project(margin.names), self.zeros)

    def with_margins(self, margins: tuple[Margin, ...]) -> MarginSet:
        """Other counts over the same domain and zeros."""
        return replace(self, margins=margins)


def ratio(above: Counts, below: Counts) -> Counts:
    """above / below, and nought where `below` is: what rakes a table to a target, which has nothing there."""
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)
