"""The data dictionary of a released table: one line a column, from the cohort's public specification alone."""

from __future__ import annotations

import polars as pl

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import matrices, panel

COLUMNS = {
    "column": pl.String,
    "table": pl.String,
    "kind": pl.String,
    "unit": pl.String,
    "minimum": pl.Float64,
    "maximum": pl.Float64,
    "categories": pl.String,
    "nullable": pl.Boolean,
    "description": pl.String,
}


def data_dictionary(spec: CohortSpec, columns: list[str]) -> pl.DataFrame:
    """The columns of `COLUMNS` for each of `columns`, in that order; categories are separated by "|".

    Raises ValueError counting the columns that the cohort does not register.
    """
    lines: dict[str, dict[str, object]] = {
        "row_key": {"table": "key", "kind": "key", "nullable": False, "description": "token of a synthetic row"}
    }
    for variable in spec.clinical:
        lines[variable.name] = {
            "table": "clinical",
            "kind": variable.kind,
            "unit": variable.unit,
            "minimum": variable.minimum,
            "maximum": variable.maximum,
            "categories": "|".join(variable.categories) or None,
            "nullable": variable.nullable,
            "description": variable.description,
        }
    for matrix, modality in matrices(spec).items():
        for feature in panel(spec, matrix):
            lines[feature] = {
                "table": matrix,
                "kind": "continuous",
                "unit": modality.unit,
                "nullable": True,
                "description": modality.annotation,
            }
    unknown = [column for column in columns if column not in lines]
    if unknown:
        raise ValueError(f"{len(unknown)} column(s) of the table are not registered by cohort {spec.name!r}")
    return pl.DataFrame([{"column": column, **lines[column]} for column in columns], schema=COLUMNS)
