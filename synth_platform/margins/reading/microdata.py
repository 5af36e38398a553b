"""Reading a table of microdata from one CSV or Parquet file.

A CSV column is a number or a boolean only where every value is written as one: codes such as 007, and whole numbers
beyond 64 bits, stay text, so that what is written back is what was read.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from synth_platform.sources.tables import FORMATS, NULLS, SourceError

_WHOLE = r"^(0|-?[1-9][0-9]*)$"
_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"


def read_microdata(path: Path) -> pl.DataFrame:
    """The table of a .parquet, .csv or .csv.gz file; in CSV, nothing and NA are missing values.

    Raises SourceError naming the file and what to do, never a cell.
    """
    if not path.name.endswith(FORMATS):
        raise SourceError(f"{path} is none of {', '.join(FORMATS)}; convert it to one of them")
    if not path.is_file():
        raise SourceError(f"{path} does not exist; put it there or correct the name")
    try:
        with path.open("rb") as file:
            if path.name.endswith(".parquet"):
                return pl.read_parquet(file)
            table = pl.read_csv(file, infer_schema=False, null_values=NULLS)
    except (pl.exceptions.PolarsError, OSError, EOFError):
        # The cause is dropped on purpose: parser messages quote cells.
        kind = "Parquet" if path.name.endswith(".parquet") else "CSV with one header line, commas and UTF-8"
        raise SourceError(f"{path} is not readable as {kind}; write it again in that format") from None
    repeated = next((name for name in table.columns if name.endswith("_duplicated_0")), None)
    if repeated is not None:
        raise SourceError(f"{path} has the column {repeated.removesuffix('_duplicated_0')!r} twice; rename one of them")
    return table.with_columns(_typed(table[name]) for name in table.columns)


def _typed(column: pl.Series) -> pl.Series:
    present = column.drop_nulls()
    if present.is_empty():
        return column
    if present.str.contains(_WHOLE).all():
        whole = column.cast(pl.Int64, strict=False)
        return whole if whole.null_count() == column.null_count() else column
    if present.str.contains(_DECIMAL).all() and not present.str.contains(r"^-?[0-9]{16,}$").any():
        return column.cast(pl.Float64)
    if present.is_in(["true", "false"]).all():
        return column == "true"
    return column
