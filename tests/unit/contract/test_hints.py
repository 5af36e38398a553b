"""Every finding comes with the rule that was broken, and never with a cell, a key or a name that is data."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import polars as pl
import pytest

from synth_platform.contract.codes import RejectionCode
from synth_platform.contract.hints import hint
from synth_platform.contract.tables import CohortTables
from synth_platform.contract.validate import validate

SECRET = "zqSECRETzq"


def with_clinical(tables: CohortTables, *columns: pl.Expr | pl.Series) -> CohortTables:
    return replace(tables, clinical=tables.clinical.with_columns(*columns))


def with_manifest(tables: CohortTables, *columns: pl.Expr | pl.Series) -> CohortTables:
    return replace(tables, manifest=tables.manifest.with_columns(*columns))


def first(tables: CohortTables, value: object) -> pl.Series:
    return pl.Series("row_key", [value, *tables.clinical["row_key"][1:]], dtype=pl.String)


# code, damage, words of the hint
CASES = [
    ("RANGE", lambda t: with_clinical(t, pl.Series("age", [17, 50, 50, 50, 50, 50])), "[18, 90] whole"),
    ("RANGE", lambda t: with_clinical(t, pl.Series("marker", [2e3 + 1, 0, 0, 0, 0, 0.0])), "[0, 2000] or null"),
    ("CATEGORY", lambda t: with_clinical(t, pl.Series("subtype", [SECRET, *"AABBC"])), "A | B | C"),
    ("CATEGORY", lambda t: with_clinical(t, pl.Series("died", [7, 1, 1, 1, 1, 1])), "[0, 1] whole"),
    ("CATEGORY", lambda t: with_manifest(t, pl.lit(SECRET).alias("batch_id")), "B-01 | B-02"),
    ("MISSING", lambda t: with_clinical(t, pl.Series("died", [None, 1, 1, 1, 1, 1])), "[0, 1] whole"),
    ("MISSING", lambda t: with_clinical(t, first(t, None)), "every row needs a key"),
    (
        "NON_FINITE",
        lambda t: with_clinical(t, pl.Series("marker", [float("nan"), 0, 0, 0, 0, 0.0])),
        "[0, 2000] or null; a missing value is an empty cell",
    ),
    (
        "DTYPE",
        lambda t: with_clinical(t, pl.Series("age", [SECRET, *"123456"][:6])),
        "a whole number, but the column holds String: at least one cell is no number",
    ),
    (
        "DTYPE",
        lambda t: with_clinical(t, pl.Series("age", [61.5] * 6)),
        "a whole number, but the column holds Float64",
    ),
    ("DTYPE", lambda t: with_clinical(t, pl.lit(1).alias("subtype")), "text, but the column holds Int32"),
    (
        "DTYPE",
        lambda t: with_clinical(t, pl.Series("age", [SECRET] * 6, dtype=pl.Enum([SECRET]))),
        "a whole number, but the column holds Enum",
    ),
    ("FORBIDDEN_FIELD", lambda t: with_clinical(t, pl.lit(SECRET).alias("mrn")), "remove the column"),
    ("FORBIDDEN_FIELD", lambda t: with_clinical(t, pl.col("age").cast(pl.Date)), "store days since"),
    (
        "UNKNOWN_FIELD",
        lambda t: with_clinical(t, pl.lit(1).alias(SECRET)),
        "not registered: remove the column, or add it to clinical in cohort.yaml",
    ),
    (
        "UNKNOWN_FIELD",
        lambda t: with_manifest(t, pl.lit(1).alias(SECRET)),
        "the manifest has source, batch_id, split, dua_tag, modality_mask and the key alone",
    ),
    (
        "FEATURE_SET",
        lambda t: replace(t, expression=t.expression.with_columns(pl.lit(1.0).alias(SECRET))),
        "not registered: remove the column, or add it to expression.panel in cohort.yaml",
    ),
    (
        "FEATURE_SET",
        lambda t: replace(t, clinical=t.clinical.drop("age")),
        "registered, but absent: add the column, or take it out of clinical in cohort.yaml",
    ),
    (
        "FEATURE_SET",
        lambda t: replace(t, methylation=None),
        "registered, but absent: bring the table, or take methylation out of cohort.yaml",
    ),
    ("CONTROLLED_ACCESS", lambda t: with_manifest(t, pl.lit("CONTROLLED").alias("dua_tag")), "open-access data alone"),
    ("SPLIT_EMPTY", lambda t: with_manifest(t, pl.lit("train").alias("split")), "at least one row each"),
    ("DUPLICATE_UNIT", lambda t: replace(t, clinical=t.clinical.vstack(t.clinical)), "one row per patient"),
    ("KEY_FORMAT", lambda t: with_clinical(t, first(t, SECRET)), "three capitals at most, a dash, six digits"),
    ("KEY_SET", lambda t: replace(t, clinical=t.clinical.head(5)), "the keys of clinical and of the manifest"),
]


@pytest.mark.parametrize(("code", "damage", "words"), CASES)
def test_a_finding_says_the_rule_and_no_cell(code, damage, words, tables, spec) -> None:
    broken = damage(tables)
    hints = {r.code: hint(r, broken, spec) for r in validate(broken, spec).rejections}
    assert words in hints[code]
    assert "REFERENCE" not in hints[code]
    assert not any(SECRET in text or "P-000" in text or "None" in text for text in hints.values())


def test_every_code_has_its_hint() -> None:
    """Catches a new code without words."""
    assert {code for code, _, _ in CASES} == set(get_args(RejectionCode))


def test_a_table_that_is_not_registered(tables, make_spec) -> None:
    narrow = make_spec(methylation=None, g0={"latent": 3})
    [finding] = [r for r in validate(tables, narrow).rejections if r.table == "methylation" and r.column is None]
    assert hint(finding, tables, narrow) == "not registered: drop the table, or add methylation to cohort.yaml"
