"""The common shape of every synthetic table in model space."""

from __future__ import annotations

import numpy as np

from synth_platform.generators.protocol import GeneratorState
from synth_platform.normalize.rows import EncodedRows, FloatArray, IntArray

LARGEST_TABLE = 999_999


def synthetic_rows(
    features: tuple[str, ...], *, x: FloatArray, label: IntArray, event: IntArray, time: FloatArray
) -> EncodedRows:
    """Rows with split "synthetic", keys S-000001... and no declared batch (-1): they stand at the reference condition.

    Raises ValueError for more rows than six-digit keys can name.
    """
    n = x.shape[0]
    if n > LARGEST_TABLE:
        raise ValueError(f"{n} rows asked for; a synthetic table holds at most {LARGEST_TABLE} (six-digit keys)")
    return EncodedRows(
        features=features,
        x=np.asarray(x, dtype=np.float64),
        label=np.asarray(label, dtype=np.int64),
        event=np.asarray(event, dtype=np.int64),
        time=np.asarray(time, dtype=np.float64),
        batch=np.full(n, -1, dtype=np.int64),
        split=np.full(n, "synthetic"),
        key=np.array([f"S-{i:06d}" for i in range(1, n + 1)], dtype=np.str_),
    )


def feature_names(state: GeneratorState) -> tuple[str, ...]:
    """Feature names of a state, in column order. Raises ValueError when its document carries no list of them."""
    names = state.document.get("features")
    if not isinstance(names, list | tuple):
        raise ValueError(f"the state of {state.generator} names no features, so its rows cannot be put together")
    return tuple(str(name) for name in names)
