"""What every statistic refuses alike: values of another shape than the registered one, and values that are no numbers.

Messages name the argument and never show a value.
"""

from __future__ import annotations

import math

import numpy as np

from synth_platform.discovery.statistics.protocol import FloatArray


def require_rows(values: FloatArray, rows: int) -> None:
    """ValueError unless `values` is [rows, m]."""
    if values.ndim != 2 or values.shape[0] != rows:
        raise ValueError("values must be [n, m] with the number of rows the statistic was registered for")


def require_numbers(values: FloatArray) -> None:
    """ValueError if a value is NaN or infinite."""
    if not np.isfinite(values).all():
        raise ValueError("values holds a NaN or an infinity: fill or clip it by a public constant first")


def require_positive(name: str, value: float) -> None:
    """ValueError unless the public constant `name` is finite and > 0."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} is {value}: it must be a finite number > 0")


def require_bounds(lower: float, upper: float) -> None:
    """ValueError unless lower < upper, both finite."""
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise ValueError(f"lower is {lower} and upper {upper}: clip to finite public bounds, lower below upper")


def require_spread(spread: float, lower: float, upper: float) -> None:
    """ValueError unless a value within the bounds can have this standard deviation, and some."""
    if not 0 < spread <= (upper - lower) / 2:
        raise ValueError(f"spread is {spread}: it must be above 0 and at most half the distance of the bounds")


def require_size(size: int) -> None:
    """ValueError unless there is a record."""
    if size < 1:
        raise ValueError(f"size is {size}: an e-value needs at least one record")
