"""Categorical variables with their categories: what every table, margin and fit is laid out by.

A category is a label; what its value was in the original table (a number, a date's year, a missing value) comes back
when synthetic rows are written. Codes are positions in `Variable.categories`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synth_platform.contract.categories import MOST_CATEGORIES, first_repeated

Codes = NDArray[np.int64]
Kind = Literal["text", "integer", "decimal", "boolean"]
DTYPES: dict[Kind, type[pl.DataType]] = {
    "text": pl.String,
    "integer": pl.Int64,
    "decimal": pl.Float64,
    "boolean": pl.Boolean,
}


@dataclass(frozen=True)
class Variable:
    """A name and its categories, in the order they are tabulated in.

    kind: type that the labels are written back to. missing: the category that stands for a missing value, if there
    is one. Raises ValueError for no categories, one twice, more than MOST_CATEGORIES, or a label that is no value of
    the kind.
    """

    name: str
    categories: tuple[str, ...]
    kind: Kind = "text"
    missing: str | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a variable needs a name")
        if not self.categories:
            raise ValueError(f"variable {self.name} has no categories")
        if len(self.categories) > MOST_CATEGORIES:
            raise ValueError(
                f"variable {self.name} has {len(self.categories):,} categories, more than {MOST_CATEGORIES:,}: "
                "leave it out if it names people, or band it in the recipe"
            )
        repeated = first_repeated(self.categories)
        if repeated is not None:
            raise ValueError(f"variable {self.name} has the category {repeated!r} twice")
        if self.missing is not None and self.missing not in self.categories:
            raise ValueError(f"variable {self.name}: the missing category {self.missing!r} is none of its categories")
        self._values()

    def __len__(self) -> int:
        return len(self.categories)

    def values(self, codes: Codes) -> pl.Series:
        """Original values of codes [n], named after the variable, null where the missing category stands."""
        return self._values().gather(codes).alias(self.name)

    def _values(self) -> pl.Series:
        labels = pl.Series(
            self.name, [None if label == self.missing else label for label in self.categories], pl.String
        )
        try:
            if self.kind == "boolean":
                return labels.replace_strict({"true": True, "false": False}, return_dtype=pl.Boolean)
            return labels.cast(DTYPES[self.kind])
        except pl.exceptions.PolarsError:
            raise ValueError(
                f"variable {self.name}: a category is no {self.kind} value; make it text, as bands and groups are"
            ) from None


@dataclass(frozen=True)
class Domain:
    """The variables of a table in their order. Raises ValueError for none or for one name twice."""

    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        if not self.variables:
            raise ValueError("there are no variables")
        repeated = first_repeated(self.names)
        if repeated is not None:
            raise ValueError(f"variable {repeated} is named twice")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(variable.name for variable in self.variables)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of categories of each variable."""
        return tuple(len(variable) for variable in self.variables)

    @property
    def cells(self) -> int:
        """Cells of the full table; exact, whatever their number."""
        return math.prod(self.shape)

    def axes(self, names: Sequence[str]) -> tuple[int, ...]:
        """Positions of variables. Raises ValueError that names an unknown one."""
        position = {name: axis for axis, name in enumerate(self.names)}
        unknown = [name for name in names if name not in position]
        if unknown:
            raise ValueError(f"unknown variable {unknown[0]}; there are {', '.join(self.names)}")
        return tuple(position[name] for name in names)

    def project(self, names: Sequence[str]) -> Domain:
        """The named variables, in the order named."""
        return Domain(tuple(self.variables[axis] for axis in self.axes(names)))

    def positions(self, codes: NDArray[np.integer], names: Sequence[str]) -> Codes:
        """Position [rows] of each row of `codes` [rows, variables] in the flat table over the named variables."""
        cells = np.zeros(len(codes), dtype=np.int64)
        for axis in self.axes(names):
            cells *= self.shape[axis]
            cells += codes[:, axis]
        return cells

    def frame(self, codes: Codes) -> pl.DataFrame:
        """Rows [n, variables] of codes as a table with original values and types."""
        return pl.DataFrame([variable.values(codes[:, axis]) for axis, variable in enumerate(self.variables)])
