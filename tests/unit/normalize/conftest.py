"""A small made-up cohort with every clinical kind and any matrix units, in contract tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import CohortTables, modality_mask

GENES = ("ENSG1", "ENSG2", "ENSG3", "ENSG4")
PROBES = ("cg1", "cg2", "cg3")
LABELS = ("LumA", "LumB", "Basal")


def make_spec(**changes: Any) -> CohortSpec:
    units = {
        "expression": changes.pop("expression_unit", "tpm"),
        "methylation": changes.pop("methylation_unit", "beta"),
    }
    document: dict[str, Any] = {
        "name": "small",
        "kind": "omics",
        "title": "Small cohort",
        "source_code": "LOCAL",
        "dua_tag": "RELEASE_REVIEWED",
        "privacy": {"domain": "small", "n_ref": 100, "budget": {"epsilon": 1.0, "delta": 1e-5}},
        "source": {"reader": "tables"},
        "batches": ["north", "south", "west"],
        "expression": {"unit": units["expression"], "annotation": "none", "panel": GENES},
        "methylation": {"unit": units["methylation"], "annotation": "none", "panel": PROBES},
        "clinical": [
            {"name": "age", "kind": "continuous", "minimum": 18, "maximum": 95, "integer": True},
            {"name": "subtype", "kind": "categorical", "categories": LABELS},
            {"name": "marker", "kind": "continuous", "minimum": -2.5, "maximum": 900, "nullable": True},
            {"name": "days", "kind": "survival_time", "minimum": 1, "maximum": 4000, "integer": True},
            {"name": "smoker", "kind": "binary", "nullable": True},
            {"name": "died", "kind": "event"},
            {"name": "stage", "kind": "ordinal", "categories": ["I", "II", "III", "IV"], "nullable": True},
            {"name": "site", "kind": "categorical", "categories": ["left", "right", "both"], "nullable": True},
        ],
        "outcome": {"label": "subtype", "time": "days", "event": "died"},
        "endpoints": [
            {"name": name, "chance": chance}
            for name, chance in (("c_index", 0.5), ("macro_f1", 0.33), ("auroc", 0.5), ("spearman", 0.0))
        ],
        "plans": {},
        "generators": ["G0"],
        "synthetic": {"rows": 10, "seeds": [1, 2, 3, 4, 5]},
    }
    return CohortSpec.model_validate(document | changes)


def make_tables(spec: CohortSpec, n: int, seed: int, split: str = "public") -> CohortTables:
    """n patients with missing cells in methylation and in every nullable variable; batches in turn."""
    rng = np.random.default_rng(seed)
    keys = pl.Series("row_key", [f"P-{seed % 1000:03d}{i:03d}" for i in range(n)])
    manifest = pl.DataFrame(
        {
            "row_key": keys,
            "source": [spec.source_code] * n,
            "batch_id": [spec.batches[i % len(spec.batches)] for i in range(n)],
            "split": [split] * n,
            "dua_tag": [spec.dua_tag] * n,
            "modality_mask": [modality_mask(spec)] * n,
        }
    )

    def missing(values: Any, share: float = 0.2) -> pl.Series:
        return pl.Series(values).set(pl.Series(rng.random(n) < share), None)

    def pick(*values: str) -> np.ndarray:
        return rng.choice(np.array(values, dtype=object), n)

    clinical = pl.DataFrame(
        {
            "row_key": keys,
            "age": rng.integers(18, 96, n),
            "subtype": pl.Series(pick(*LABELS), dtype=pl.String),
            "marker": missing(rng.uniform(-2.5, 900, n)),
            "days": rng.integers(1, 4001, n),
            "smoker": missing(rng.integers(0, 2, n)),
            "died": rng.integers(0, 2, n),
            "stage": missing(pl.Series(pick("I", "II", "III", "IV"), dtype=pl.String)),
            "site": missing(pl.Series(pick("left", "right", "both"), dtype=pl.String)),
        }
    )
    assert spec.expression is not None
    assert spec.methylation is not None
    level = rng.gamma(2.0, 200.0, (n, len(GENES)))
    expression = {"tpm": level, "count": np.rint(level), "log2_expression": np.log2(level + 1)}[spec.expression.unit]
    beta = np.clip(rng.beta(0.6, 0.6, (n, len(PROBES))), 0, 1)
    methylation = beta if spec.methylation.unit == "beta" else rng.normal(0, 2, beta.shape)
    return CohortTables(
        manifest=manifest,
        expression=pl.DataFrame([keys, *(pl.Series(g, expression[:, j]) for j, g in enumerate(GENES))]),
        methylation=pl.DataFrame([keys, *(missing(methylation[:, j], 0.1).alias(c) for j, c in enumerate(PROBES))]),
        clinical=clinical,
    )


@pytest.fixture(scope="session")
def spec_of() -> Callable[..., CohortSpec]:
    return make_spec


@pytest.fixture(scope="session")
def tables_of() -> Callable[..., CohortTables]:
    return make_tables
