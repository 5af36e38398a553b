"""Column summaries agree with numpy, and echo no text."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.contract.summary import SUMMARY_SCHEMA, column_summary

CELLS = st.lists(st.none() | st.floats(allow_nan=True, allow_infinity=True), max_size=12)


@settings(deadline=None, max_examples=80)
@given(columns=st.lists(CELLS, min_size=1, max_size=4))
def test_numbers_against_numpy(columns) -> None:
    rows = max(map(len, columns))
    padded = {f"c{i}": [*cells, *[None] * (rows - len(cells))] for i, cells in enumerate(columns)}
    summary = column_summary(pl.DataFrame(padded, schema=dict.fromkeys(padded, pl.Float64)))
    for line, (name, cells) in zip(summary.iter_rows(named=True), padded.items(), strict=True):
        values = np.array([cell for cell in cells if cell is not None])
        finite = values[np.isfinite(values)] if len(values) else values
        assert (line["column"], line["dtype"], line["rows"]) == (name, "Float64", rows)
        assert line["nulls"] == rows - len(values)
        assert line["non_finite"] == len(values) - len(finite)
        assert line["minimum"] == (finite.min() if len(finite) else None)
        assert line["maximum"] == (finite.max() if len(finite) else None)
        assert line["distinct"] is None


def test_other_types() -> None:
    frame = pl.DataFrame(
        {
            "whole": [3, None, -4],
            "text": ["secret", "secret", None],
            "flag": [True, None, False],
            "code": pl.Series(["a", "b", "a"], dtype=pl.Categorical),
            "nested": [[1], None, [2]],
        }
    )
    summary = column_summary(frame)
    assert summary.schema == SUMMARY_SCHEMA
    assert summary.select("column", "nulls", "non_finite", "minimum", "maximum", "distinct").rows() == [
        ("whole", 1, 0, -4.0, 3.0, None),
        ("text", 1, 0, None, None, 1),
        ("flag", 1, 0, None, None, None),
        ("code", 0, 0, None, None, 2),
        ("nested", 1, 0, None, None, None),
    ]
    assert "secret" not in str(summary.rows())


def test_no_rows_and_no_columns() -> None:
    empty = column_summary(pl.DataFrame(schema={"x": pl.Float64, "t": pl.String}))
    assert empty.select("rows", "nulls", "minimum", "distinct").rows() == [(0, 0, None, None), (0, 0, None, 0)]
    assert column_summary(pl.DataFrame()).height == 0


def test_not_a_number_hides_no_extreme() -> None:
    """A minimum that is NaN would compare false with every bound."""
    line = column_summary(pl.DataFrame({"x": [math.nan, -5.0, math.inf, 2.0]})).row(0, named=True)
    assert (line["minimum"], line["maximum"], line["non_finite"]) == (-5.0, 2.0, 2)
