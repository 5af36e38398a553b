"""A small cohort that registers every kind of column, and valid tables for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import CohortTables

KEYS = [f"P-{number:06d}" for number in (104, 233, 371, 482, 559, 640)]
DOCUMENT: dict[str, Any] = {
    "name": "small",
    "kind": "omics",
    "title": "Six patients",
    "source_code": "TCGA",
    "dua_tag": "RELEASE_REVIEWED",
    "privacy": {"domain": "small", "n_ref": 100, "budget": {"epsilon": 8.0, "delta": 1e-4}},
    "source": {"reader": "tables"},
    "batches": ["B-01", "B-02"],
    # HLA-DOB is a gene and no date of birth; NAME-like ids are exempt because a panel is matched letter by letter.
    "expression": {
        "unit": "tpm",
        "annotation": "GENCODE 36",
        "panel": ["HLA-DOB", "ENSG00000141510", "ENSG00000012048"],
    },
    "methylation": {"unit": "beta", "annotation": "EPIC v1", "panel": ["cg00000029", "cg00000108"]},
    "clinical": [
        {"name": "subtype", "kind": "categorical", "categories": ["A", "B", "C"]},
        {
            "name": "survival_days",
            "kind": "survival_time",
            "unit": "day",
            "minimum": 0,
            "maximum": 5000,
            "integer": True,
        },
        {"name": "died", "kind": "event"},
        {"name": "age", "kind": "continuous", "unit": "year", "minimum": 18, "maximum": 90, "integer": True},
        {"name": "smoker", "kind": "binary", "nullable": True},
        {"name": "stage", "kind": "ordinal", "categories": ["I", "II", "III"], "nullable": True},
        {"name": "marker", "kind": "continuous", "unit": "U/mL", "minimum": 0, "maximum": 2000, "nullable": True},
    ],
    "outcome": {"label": "subtype", "time": "survival_days", "event": "died"},
    "endpoints": [{"name": n, "chance": 0.0} for n in ("c_index", "macro_f1", "auroc", "spearman")],
    "plans": {},
    "generators": ["G0"],
    "synthetic": {"rows": 6, "seeds": [1, 2, 3, 4, 5]},
}


@pytest.fixture(scope="session")
def make_spec() -> Callable[..., CohortSpec]:
    """The small cohort with some top-level fields replaced."""

    def make(**changes: Any) -> CohortSpec:
        return CohortSpec.model_validate(DOCUMENT | changes)

    return make


@pytest.fixture(scope="session")
def spec(make_spec) -> CohortSpec:
    return make_spec()


@pytest.fixture(scope="session")
def tables() -> CohortTables:
    """Six valid patients; the last one has no methylation row."""
    keys = pl.Series("row_key", KEYS)
    masks = ["expression,methylation,clinical"] * 5 + ["expression,clinical"]
    return CohortTables(
        manifest=pl.DataFrame(
            {
                "row_key": keys,
                "source": ["TCGA"] * 6,
                "batch_id": ["B-01", "B-02"] * 3,
                "split": ["public", "public", "train", "train", "test", "test"],
                "dua_tag": ["RELEASE_REVIEWED"] * 6,
                "modality_mask": masks,
            }
        ),
        expression=pl.DataFrame(
            {
                "row_key": keys,
                "HLA-DOB": [0.0, 1.5, 2.25, 1e6, 0.125, 3.0],
                "ENSG00000141510": [10.0, 11.5, 12.25, 13.0, 14.125, 15.0],
                "ENSG00000012048": [0.0] * 6,
            }
        ),
        methylation=pl.DataFrame(
            {"row_key": keys[:5], "cg00000029": [0.0, 1.0, 0.5, None, 0.25], "cg00000108": [0.1, 0.2, 0.3, 0.4, 0.5]}
        ),
        clinical=pl.DataFrame(
            {
                "row_key": keys,
                "subtype": ["A", "B", "C", "A", "B", "C"],
                "survival_days": [1, 5000, 300, 400, 500, 600],
                "died": [0, 1, 0, 1, 0, 1],
                "age": [18, 90, 50, 51, 52, 53],
                "smoker": [0, 1, None, 0, 1, 0],
                "stage": ["I", "II", "III", None, "I", "II"],
                "marker": [0.0, 2000.0, None, 1.5, 2.5, 3.5],
            }
        ),
    )
