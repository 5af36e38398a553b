"""What a schema check looks at: one row per column of an artefact, beside the rule registered for that column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

SUMMARY = {
    "column": pl.String,
    "dtype": pl.String,
    "nulls": pl.Int64,
    "non_finite": pl.Int64,
    "minimum": pl.Float64,
    "maximum": pl.Float64,
}
RULES = {
    "column": pl.String,
    "expected_dtype": pl.String,
    "allowed_nulls": pl.Int64,
    "allowed_minimum": pl.Float64,
    "allowed_maximum": pl.Float64,
}
ANY_NUMBER_OF_NULLS = 2**62


@dataclass(frozen=True)
class Described:
    """`summary`: the artefact's columns as they are (SUMMARY). `rules`: the columns as registered (RULES); a null in a
    rule means that nothing is registered about it."""

    summary: pl.DataFrame
    rules: pl.DataFrame

    def joined(self) -> pl.DataFrame:
        """One row per column that is present or registered, with flags `present` and `registered`."""
        return (
            self.rules.with_columns(registered=True)
            .join(self.summary.with_columns(present=True), on="column", how="full", coalesce=True)
            .with_columns(
                pl.col("registered", "present").fill_null(False),
                pl.col("non_finite").fill_null(0),
            )
        )

    def offending(self, limit: int) -> dict[str, list[str]]:
        """Columns that break each kind of rule, by kind; names only, at most `limit` each."""
        table = self.joined()
        kinds = {
            "unregistered": ~pl.col("registered"),
            "absent": ~pl.col("present"),
            "type": pl.col("dtype") != pl.col("expected_dtype"),
            "non_finite": pl.col("non_finite") > 0,
            "nulls": pl.col("nulls") > pl.col("allowed_nulls"),
            "below_minimum": pl.col("minimum") < pl.col("allowed_minimum"),
            "above_maximum": pl.col("maximum") > pl.col("allowed_maximum"),
        }
        found = {kind: table.filter(rule)["column"].to_list()[:limit] for kind, rule in kinds.items()}
        return {kind: columns for kind, columns in found.items() if columns}


def summarise_arrays(arrays: Mapping[str, np.ndarray[Any, Any]]) -> pl.DataFrame:
    """Summary of named numeric arrays, each as one column."""
    rows = []
    for name, array in arrays.items():
        flat = np.asarray(array, dtype=np.float64).ravel()
        finite = flat[np.isfinite(flat)]
        rows.append(
            (
                name,
                str(array.dtype),
                0,
                int(flat.size - finite.size),
                float(finite.min()) if finite.size else None,
                float(finite.max()) if finite.size else None,
            )
        )
    return pl.DataFrame(rows, schema=SUMMARY, orient="row")


def summarise_document(document: Mapping[str, Any]) -> pl.DataFrame:
    """Summary of a JSON document: its top-level keys and the JSON type of each."""
    rows = [(key, type(value).__name__, int(value is None), 0, None, None) for key, value in document.items()]
    return pl.DataFrame(rows, schema=SUMMARY, orient="row")


Rule = tuple[str, str | None, int | None, float | None, float | None]


def rules(rows: Sequence[Rule]) -> pl.DataFrame:
    """A rule table from rows of (column, dtype, allowed nulls, minimum, maximum)."""
    return pl.DataFrame(rows, schema=RULES, orient="row")
