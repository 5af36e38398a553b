"""Categorical rows in codes, and the margins that are counted of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from synth_platform.margins.domain import Codes, Domain
from synth_platform.margins.margin import MOST_CELLS, Counts, Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a categorical table: codes [rows, variables], positions in each variable's categories.

    Raises ValueError for another width than the domain's or a code that is no category.
    """

    domain: Domain
    codes: Codes

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or self.codes.shape[1] != len(self.domain.variables):
            raise ValueError(f"codes of {len(self.domain.variables)} variables are due, one column each")
        outside = ((self.codes < 0) | (self.codes >= np.array(self.domain.shape))).any(axis=0)
        if outside.any():
            raise ValueError(f"variable {self.domain.names[int(outside.argmax())]}: a code is none of its categories")

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: Codes) -> Rows:
        """Rows at `index`, in that order."""
        return Rows(self.domain, self.codes[index])

    @property
    def frame(self) -> pl.DataFrame:
        """The rows with original values and types."""
        return self.domain.frame(self.codes)

    def count(self, names: Sequence[str]) -> Counts:
        """Rows in each cell over the named variables, [categories of the first, …]."""
        own = self.domain.project(names)
        cells = self.domain.positions(self.codes, names)
        return np.bincount(cells, minlength=own.cells).reshape(own.shape).astype(np.float64)


def count_margins(
    rows: Rows, margins: Iterable[Sequence[str]], source: str, zeros: Sequence[StructuralZero] = ()
) -> MarginSet:
    """The named margins of rows; `source` opens their provenance.

    Raises ValueError as `MarginSet` and `refuse_many_cells` do.
    """
    named = tuple(map(tuple, margins))
    refuse_many_cells(rows.domain, named)
    counted = tuple(Margin(names, rows.count(names), (source,)) for names in named)
    return MarginSet(rows.domain, counted, tuple(zeros))


def two_way_margins(rows: Rows, source: str = "microdata", zeros: Sequence[StructuralZero] = ()) -> MarginSet:
    """Every pair of variables in their order; of a single variable, its own margin."""
    return count_margins(rows, two_way(rows.domain), source, zeros)


def refuse_many_cells(domain: Domain, margins: Sequence[Sequence[str]]) -> None:
    """Raises ValueError for margins of more than MOST_CELLS cells together, with the largest; how many is not told."""
    cells = [domain.project(names).cells for names in margins]
    if sum(cells) > MOST_CELLS:
        largest = " × ".join(margins[cells.index(max(cells))])
        raise ValueError(
            f"the margins have more than {MOST_CELLS:,} cells together, {largest} the most of them: combine or band "
            "categories in the recipe, or name fewer and smaller margins there"
        )


def two_way(domain: Domain) -> tuple[tuple[str, ...], ...]:
    """Names of every pair of variables; of a single variable, that one."""
    return tuple(combinations(domain.names, min(2, len(domain.names))))
