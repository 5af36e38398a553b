"""Clinical variables as numeric columns and back: indicators, codes, one-hot, nearest admissible value (8-1 §1.2)."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synth_platform.contract.cohort_sections import ClinicalVariable

FloatArray = NDArray[np.float64]

MISSING_SUFFIX = "__missing"
_ZERO_ONE_FLOOR = 0.1
_RANGE_FLOOR = 1e-4


def column_names(variable: ClinicalVariable) -> tuple[str, ...]:
    """Encoded columns of a variable: `name`, or `name=category` for each category; then `name__missing` if nullable."""
    values = tuple(f"{variable.name}={c}" for c in variable.categories) if _one_hot(variable) else (variable.name,)
    return (*values, variable.name + MISSING_SUFFIX) if variable.nullable else values


def scale_floor(variable: ClinicalVariable) -> FloatArray:
    """Smallest public scale of each encoded column: .1 for 0/1 columns and codes, 1e-4 of a measurement's range."""
    floor = np.full(len(column_names(variable)), _ZERO_ONE_FLOOR)
    if variable.kind in ("continuous", "survival_time"):
        lowest, highest = _bounds(variable)
        floor[0] = _RANGE_FLOOR * (highest - lowest) or 1.0
    return floor


def to_columns(variable: ClinicalVariable, values: pl.Series) -> FloatArray:
    """Native values [n] -> [n, columns], NaN where missing; the indicator column is 1 where missing, else 0.

    Raises ValueError naming the variable if a value is none of its categories.
    """
    missing = values.is_null().to_numpy()
    if variable.kind in ("categorical", "ordinal"):
        codes = category_codes(variable.name, values, variable.categories).astype(np.float64)
        codes[missing] = np.nan
        block = codes[:, None]
        if _one_hot(variable):
            block = (codes[:, None] == np.arange(len(variable.categories))).astype(np.float64)
            block[missing] = np.nan
    else:
        block = values.cast(pl.Float64).to_numpy()[:, None]
    if variable.nullable:
        block = np.column_stack([block, missing.astype(np.float64)])
    return block


def from_columns(variable: ClinicalVariable, columns: FloatArray) -> pl.Series:
    """[n, columns] of any real numbers -> the nearest admissible native values, with the registered type.

    Measurements are clipped to their bounds (and rounded if integer), codes rounded, categories taken by argmax, 0/1
    variables and the missing indicator cut at 1/2.
    """
    first = columns[:, 0]
    match variable.kind:
        case "continuous" | "survival_time":
            series = admissible(variable, first)
        case "binary" | "event":
            series = pl.Series(variable.name, (first >= 0.5).astype(np.int64))
        case "ordinal":
            codes = np.clip(np.rint(first), 0, len(variable.categories) - 1).astype(np.int64)
            series = _categories(variable.name, codes, variable.categories)
        case "categorical":
            codes = np.argmax(columns[:, : len(variable.categories)], axis=1)
            series = _categories(variable.name, codes, variable.categories)
    if variable.nullable:
        series = series.set(pl.Series(columns[:, -1] >= 0.5), None)
    return series


def admissible(variable: ClinicalVariable, values: FloatArray) -> pl.Series:
    """Real numbers [n] clipped to the variable's inclusive bounds; Int64 if it is integer, else Float64.

    An integer survival time is at least 1: a follow-up of zero has no likelihood.
    """
    lowest, highest = _bounds(variable)
    if not variable.integer:
        return pl.Series(variable.name, np.clip(values, lowest, highest))
    floor = max(np.ceil(lowest), 1.0) if variable.kind == "survival_time" else np.ceil(lowest)
    return pl.Series(variable.name, np.clip(np.rint(values), floor, np.floor(highest)).astype(np.int64))


def category_codes(name: str, values: pl.Series, categories: tuple[str, ...]) -> NDArray[np.int64]:
    """Position of each value in `categories`, -1 for null; ValueError naming the column for any other value."""
    codes = values.cast(pl.String).replace_strict(
        list(categories), list(range(len(categories))), default=-1, return_dtype=pl.Int64
    )
    if bool(((codes == -1) & values.is_not_null()).any()):
        raise ValueError(f"{name}: a value is none of the registered categories; validate the table first")
    return codes.fill_null(-1).to_numpy().astype(np.int64)


def _categories(name: str, codes: NDArray[np.int64], categories: tuple[str, ...]) -> pl.Series:
    return pl.Series(name, np.asarray(categories, dtype=np.object_)[codes], dtype=pl.String)


def _one_hot(variable: ClinicalVariable) -> bool:
    return variable.kind == "categorical"


def _bounds(variable: ClinicalVariable) -> tuple[float, float]:
    if variable.minimum is None or variable.maximum is None:
        raise ValueError(f"{variable.name}: a {variable.kind} variable needs minimum and maximum")
    return variable.minimum, variable.maximum
