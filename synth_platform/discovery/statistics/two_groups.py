"""What every statistic of two groups asks of its outcome, and how it walks through many columns in little memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from synth_platform.discovery.statistics.protocol import BoolArray

_BLOCK = 1 << 21  # bytes: what a core's cache holds


def require_groups(n_case: int, n_control: int) -> None:
    """ValueError unless both registered groups have a record."""
    if n_case < 1 or n_control < 1:
        raise ValueError(f"n_case is {n_case} and n_control {n_control}: two groups need a record each")


def require_case(case: BoolArray, n_case: int, n_control: int) -> None:
    """ValueError unless `case` is a bool array [n_case + n_control] with n_case True. Says no count of the data."""
    if case.dtype != np.bool_ or case.shape != (n_case + n_control,):
        raise ValueError("case must be a bool array with one entry per registered record")
    if int(case.sum()) != n_case:
        raise ValueError("case marks another number of records than n_case, the registered size: register it anew")


def column_blocks(columns: int, column_bytes: int) -> Iterator[slice]:
    """Slices over all columns, each of at most 2 MiB (or one column), given the bytes that one column takes."""
    width = max(1, _BLOCK // column_bytes)
    return (slice(start, start + width) for start in range(0, columns, width))
