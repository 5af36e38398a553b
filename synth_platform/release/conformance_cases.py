"""The fixed cases of the conformance document: one broken rule or boundary each (8-1 §1.1, §3.3)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from synth_platform.contract.cohort_sections import TableName
from synth_platform.contract.cohort_spec import CohortSpec

Change = Callable[[pl.DataFrame], pl.DataFrame]

ENDPOINTS = {"c_index": 0.5, "macro_f1": 0.333333, "auroc": 0.5, "spearman": 0.0}


def conformance_spec(**rows: int) -> CohortSpec:
    """The virtual cohort of 8-1 §3.7 (12 genes, 8 probes, 4 clinical covariates) with some numbers of rows."""
    return CohortSpec.model_validate(_COHORT | {"source": {"reader": "virtual", "options": {"world_seed": 15, **rows}}})


_COHORT: dict[str, Any] = {
    "name": "conformance",
    "kind": "omics",
    "title": "conformance",
    "source_code": "VIRTUAL",
    "dua_tag": "RELEASE_REVIEWED",
    "privacy": {"domain": "conformance", "n_ref": 720, "budget": {"epsilon": 4.0, "delta": 1e-5}},
    "batches": ["B-01", "B-02", "B-03"],
    "latent_batches": ["B-01", "B-02", "B-03"],
    "expression": {"unit": "tpm", "annotation": "none", "panel": [f"G{j:02d}" for j in range(1, 13)]},
    "methylation": {"unit": "beta", "annotation": "none", "panel": [f"M{j:02d}" for j in range(1, 9)]},
    "clinical": [
        {"name": "subtype", "kind": "categorical", "categories": ["S1", "S2", "S3"]},
        {"name": "survival_days", "kind": "survival_time", "minimum": 1, "maximum": 3650, "integer": True},
        {"name": "died", "kind": "event"},
        {"name": "age", "kind": "continuous", "minimum": 18, "maximum": 95, "integer": True},
        {"name": "smoker", "kind": "binary"},
        {"name": "stage", "kind": "ordinal", "categories": ["I", "II", "III", "IV"], "nullable": True},
        {"name": "marker", "kind": "continuous", "minimum": 0, "maximum": 2000, "nullable": True},
    ],
    "outcome": {"label": "subtype", "time": "survival_days", "event": "died"},
    "endpoints": [{"name": name, "chance": chance} for name, chance in ENDPOINTS.items()],
    "plans": {},
    "generators": ["G0"],
    "synthetic": {"rows": 6, "seeds": [1, 2, 3, 4, 5]},
}


def _cell(column: str, row: int, value: object) -> Change:
    def change(table: pl.DataFrame) -> pl.DataFrame:
        cells = table[column].to_list()
        cells[row] = value
        return table.with_columns(pl.Series(column, cells, dtype=table.schema[column]))

    return change


def _nested(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.Series("visits", [[{"ward": "x", "person": {"birthDate": 1}}]] * table.height))


SCHEMA_CASES: Mapping[str, tuple[TableName, Change]] = {
    "SC01": ("clinical", lambda t: t),
    "SC02": ("clinical", lambda t: t.with_columns(pl.lit("x").alias("patientId"))),
    "SC03": ("clinical", _nested),
    "SC04": ("clinical", lambda t: t.with_columns(pl.lit(dt.date(2020, 1, 1)).alias("survival_days"))),
    "SC05": ("clinical", lambda t: t.with_columns(pl.lit(1).alias("ward"))),
    "SC06": ("expression", lambda t: t.drop("G02")),
    "SC07": ("expression", lambda t: t.with_columns(pl.lit(1.0).alias("G13"))),
    "SC08": ("expression", _cell("G01", 2, -1e-9)),
    "SC09": ("methylation", _cell("M02", 0, 1.0 + 1e-12)),
    "SC10": ("clinical", _cell("stage", 1, "V")),
    "SC11": ("expression", _cell("G03", 5, float("nan"))),
    "SC12": ("clinical", lambda t: t.with_columns(pl.col("age").cast(pl.String))),
    "SC13": ("clinical", lambda t: pl.concat([t, t[3:4]])),
    "SC14": ("methylation", _cell("row_key", 4, "TCGA-A1-A0SB")),
    "SC15": ("clinical", _cell("survival_days", 0, None)),
}


@dataclass(frozen=True)
class PreservationCase:
    """Inputs of one judgement; the leave-one-group-out values swing by `*_swing` around the value itself."""

    tstr: float | None
    trtr: float | None
    chance: float
    tstr_swing: float = 0.0
    trtr_swing: float = 0.0

    def groups(self) -> tuple[Sequence[float], Sequence[float]]:
        """Twenty leave-one-group-out values of both arms."""
        arms = ((self.tstr, self.tstr_swing), (self.trtr, self.trtr_swing))
        synthetic, real = ([round((v or 0.8) + s * (-1) ** g, 6) for g in range(20)] for v, s in arms)
        return synthetic, real


PRESERVATION_CASES: Mapping[str, PreservationCase] = {
    "RC01": PreservationCase(None, 0.8, 0.5),
    "RC02": PreservationCase(0.8, None, 0.5),
    "RC03": PreservationCase(0.50, 0.52, 0.5),
    "RC04": PreservationCase(0.55, 0.55, 0.5),
    "RC05": PreservationCase(0.550001, 0.550001, 0.5),
    "RC06": PreservationCase(0.40, 0.70, 0.5, trtr_swing=0.03),
    "RC07": PreservationCase(0.759999, 0.8, 0.0),
    "RC08": PreservationCase(0.5035, 0.53, 0.0),
    "RC09": PreservationCase(0.67, 0.70, 0.5),
    "RC10": PreservationCase(0.725, 0.75, 0.5),
    "RC11": PreservationCase(0.88, 0.90, 0.5, tstr_swing=0.004),
    "RC12": PreservationCase(0.95, 0.90, 0.5, tstr_swing=0.001, trtr_swing=0.001),
}
