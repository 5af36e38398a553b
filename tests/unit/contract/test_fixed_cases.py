"""The 15 fixed schema cases (8-1 §1.1): one broken rule each, and exactly the finding that names it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from synth_platform.contract.tables import CohortTables
from synth_platform.contract.validate import validate

Change = Callable[[pl.DataFrame], pl.DataFrame]
Expected = set[tuple[str, str, str | None, int]]


def set_cell(column: str, row: int, value: object) -> Change:
    """The same table with one cell replaced; the column keeps its type."""

    def change(table: pl.DataFrame) -> pl.DataFrame:
        cells = table[column].to_list()
        cells[row] = value
        return table.with_columns(pl.Series(column, cells, dtype=table.schema[column]))

    return change


def nested(table: pl.DataFrame) -> pl.DataFrame:
    visits = [[{"ward": "x", "person": {"birthDate": 1}}]] * table.height
    return table.with_columns(pl.Series("visits", visits))


CASES: dict[str, tuple[str, Change, Expected]] = {
    "SC01 valid tables": ("clinical", lambda t: t, set()),
    "SC02 identifier column": (
        "clinical",
        lambda t: t.with_columns(pl.lit("x").alias("patientId")),
        {("FORBIDDEN_FIELD", "clinical", "#9 (patient_id)", 6)},
    ),
    "SC03 identifier three levels down": (
        "clinical",
        nested,
        {("FORBIDDEN_FIELD", "clinical", "#9 (birth)", 6)},
    ),
    "SC04 dates under a registered name": (
        "clinical",
        lambda t: t.with_columns(pl.lit(dt.date(2020, 1, 1)).alias("survival_days")),
        {("FORBIDDEN_FIELD", "clinical", "survival_days", 6)},
    ),
    "SC05 unregistered column": (
        "clinical",
        lambda t: t.with_columns(pl.lit(1).alias("ward")),
        {("UNKNOWN_FIELD", "clinical", "#9", 6)},
    ),
    "SC06 gene absent": (
        "expression",
        lambda t: t.drop("ENSG00000141510"),
        {("FEATURE_SET", "expression", "ENSG00000141510", 6)},
    ),
    "SC07 gene beyond the panel": (
        "expression",
        lambda t: t.with_columns(pl.lit(1.0).alias("ENSG00000139618")),
        {("FEATURE_SET", "expression", "#5", 6)},
    ),
    "SC08 negative TPM": (
        "expression",
        set_cell("HLA-DOB", 2, -1e-9),
        {("RANGE", "expression", "HLA-DOB", 1)},
    ),
    "SC09 beta above one": (
        "methylation",
        set_cell("cg00000108", 0, 1.0 + 1e-12),
        {("RANGE", "methylation", "cg00000108", 1)},
    ),
    "SC10 unregistered category": (
        "clinical",
        set_cell("stage", 1, "IV"),
        {("CATEGORY", "clinical", "stage", 1)},
    ),
    "SC11 not a number": (
        "expression",
        set_cell("ENSG00000012048", 5, float("nan")),
        {("NON_FINITE", "expression", "ENSG00000012048", 1)},
    ),
    "SC12 text in a number's place": (
        "clinical",
        lambda t: t.with_columns(pl.col("age").cast(pl.String)),
        {("DTYPE", "clinical", "age", 6)},
    ),
    "SC13 two rows of one patient": (
        "clinical",
        lambda t: pl.concat([t, t[3:4]]),
        {("DUPLICATE_UNIT", "clinical", "row_key", 2)},
    ),
    "SC14 original key": (
        "methylation",
        set_cell("row_key", 4, "TCGA-A1-A0SB"),
        # the patient's own row is missing, and the strange row belongs to nobody
        {("KEY_FORMAT", "methylation", "row_key", 1), ("KEY_SET", "methylation", "row_key", 2)},
    ),
    "SC15 missing follow-up": (
        "clinical",
        set_cell("survival_days", 0, None),
        {("MISSING", "clinical", "survival_days", 1)},
    ),
}
COLUMN_LEVEL = {"FORBIDDEN_FIELD", "UNKNOWN_FIELD", "FEATURE_SET", "DTYPE"}


def test_there_are_fifteen() -> None:
    assert len(CASES) == 15


@pytest.mark.parametrize("name", CASES)
def test_fixed_case(name: str, tables: CohortTables, spec) -> None:
    """Exactly the expected findings, with counts; column findings accept no row, row findings all other patients."""
    table, change, expected = CASES[name]
    report = validate(replace(tables, **{table: change(tables.frame(table))}), spec)
    assert {(r.code, r.table, r.column, r.count) for r in report.rejections} == expected
    assert report.cohort_rejected == bool(expected)
    codes = {code for code, *_ in expected}
    if not codes:
        assert report.accepted.manifest.equals(tables.manifest)
    elif codes <= COLUMN_LEVEL:
        assert report.accepted.manifest.height == 0
        assert report.rejected_rows == 6
    else:
        assert report.accepted.manifest.height == 5
