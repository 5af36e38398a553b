"""Synthetic tables in one frame and back, and what of a table breaks its domain."""

import numpy as np
import polars as pl
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.replicates import coded, replicate, stacked
from synth_platform.margins.rows import Rows
from synth_platform.margins.structural_zeros import StructuralZero
from synth_platform.margins.violations import violations

DOMAIN = Domain(
    (
        Variable("age", ("0-15", "16+", "unknown"), missing="unknown"),
        Variable("rooms", ("1", "2", "3"), "integer"),
        Variable("servants", ("false", "true"), "boolean"),
    )
)
ZEROS = (StructuralZero.of({"age": ("0-15",), "servants": ("true",)}),)


def _rows(seed: int) -> Rows:
    codes = np.random.default_rng(seed).integers(0, DOMAIN.shape, (200, 3))
    codes[codes[:, 0] == 0, 2] = 0
    return Rows(DOMAIN, codes)


def test_tables_come_back_as_they_were_drawn_missing_values_included() -> None:
    tables = tuple(map(_rows, (1, 2)))
    frame = stacked(tables)
    assert frame.columns == ["replicate", "age", "rooms", "servants"]
    for number, rows in enumerate(tables, start=1):
        assert np.array_equal(coded(replicate(frame, number), DOMAIN).codes, rows.codes)
        assert violations(replicate(frame, number), DOMAIN, ZEROS) == 0


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (lambda t: t.drop("age"), 1),
        (lambda t: t.select("rooms", "age", "servants"), 1),
        (lambda t: t.rename({"age": "aged"}), 2),
        (lambda t: t.with_columns(pl.col("rooms").cast(pl.String)), 1),
        (lambda t: t.with_columns(pl.lit(7, pl.Int64).alias("rooms")), 200),
        (lambda t: t.with_columns(pl.lit("0-15").alias("age"), pl.lit(True).alias("servants")), 200),
    ],
)
def test_each_kind_of_violation_is_counted(broken: object, found: int) -> None:
    assert violations(broken(_rows(3).frame), DOMAIN, ZEROS) == found  # type: ignore[operator]


def test_a_value_that_is_no_category_is_refused_by_its_variable() -> None:
    with pytest.raises(ValueError, match="variable rooms: a value is none of its categories"):
        coded(_rows(4).frame.with_columns(pl.lit(9, pl.Int64).alias("rooms")), DOMAIN)
