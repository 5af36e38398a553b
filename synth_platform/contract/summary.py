"""One line per column: the figures that value checks need, from one pass over a table of any width."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

SUMMARY_SCHEMA = {
    "column": pl.String,
    "dtype": pl.String,
    "rows": pl.Int64,
    "nulls": pl.Int64,
    "non_finite": pl.Int64,
    "minimum": pl.Float64,
    "maximum": pl.Float64,
    "distinct": pl.Int64,
}


def column_summary(frame: pl.DataFrame) -> pl.DataFrame:
    """Summary of every column, in order, with the columns of `SUMMARY_SCHEMA`.

    non_finite: NaN and infinite cells (0 for columns that are not floats). minimum, maximum: over the finite cells of a
    number column, else null; texts are never echoed. distinct: different non-null values of a text column, else null.
    The extremes are cells of single patients: a summary of private rows stays in the restricted zone.
    """
    floats = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    numbers = [name for name, dtype in frame.schema.items() if dtype.is_float() or dtype.is_integer()]
    texts = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.String | pl.Categorical | pl.Enum)]

    non_finite = _each(frame, floats, (~pl.col(floats).is_finite()).sum())
    mixed = [name for name in floats if non_finite[name]]
    finite_cells = pl.col(mixed).filter(pl.col(mixed).is_finite())
    minimum = _each(frame, numbers, pl.col(numbers).min()) | _each(frame, mixed, finite_cells.min())
    maximum = _each(frame, numbers, pl.col(numbers).max()) | _each(frame, mixed, finite_cells.max())
    distinct = _each(frame, texts, pl.col(texts).drop_nulls().n_unique())
    return pl.DataFrame(
        [
            (
                column.name,
                str(column.dtype),
                frame.height,
                column.null_count(),
                non_finite.get(column.name, 0),
                minimum.get(column.name),
                maximum.get(column.name),
                distinct.get(column.name),
            )
            for column in frame.iter_columns()
        ],
        schema=SUMMARY_SCHEMA,
        orient="row",
    )


def _each(frame: pl.DataFrame, columns: Sequence[str], aggregate: pl.Expr) -> dict[str, float]:
    """Column name -> `aggregate`, an expression over all of `columns` that gives one value for each."""
    return frame.select(aggregate).row(0, named=True) if columns else {}
