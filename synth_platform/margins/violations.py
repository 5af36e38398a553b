"""Does a table keep to its domain? What a synthetic table must, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from synth_platform.margins.domain import Domain
from synth_platform.margins.structural_zeros import StructuralZero


def violations(table: pl.DataFrame, domain: Domain, zeros: Sequence[StructuralZero] = ()) -> int:
    """Columns that are not the domain's in name, order and type, cells that are no category, rows in a declared zero.

    table: values as `Domain.frame` writes them. 0 is what a release asks for.
    """
    due = {variable.name: variable.values(pl.Series([0]).to_numpy()).dtype for variable in domain.variables}
    if list(table.columns) != list(due):
        return len(set(table.columns) ^ set(due)) or 1
    wrong = sum(table.schema[name] != dtype for name, dtype in due.items())
    if wrong:
        return wrong
    found = 0
    codes = []
    for variable in domain.variables:
        values = variable.values(pl.int_range(len(variable), eager=True).to_numpy())
        code = _codes(table[variable.name], values)
        found += code.null_count()
        codes.append(code)
    for zero in zeros:
        inside = pl.Series([True]).new_from_index(0, len(table))
        for (_, labels), axis in zip(zero.categories, domain.axes(zero.names), strict=True):
            known = domain.variables[axis].categories
            inside &= codes[axis].is_in([known.index(label) for label in labels]).fill_null(False)
        found += int(inside.sum())
    return found


def _codes(column: pl.Series, values: pl.Series) -> pl.Series:
    """Positions of a column's values among a variable's, null where they are none of them."""
    frame = pl.DataFrame({"value": column}).join(
        pl.DataFrame({"value": values, "code": pl.int_range(len(values), eager=True)}),
        on="value",
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return frame["code"]
