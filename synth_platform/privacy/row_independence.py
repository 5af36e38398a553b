"""Does a map really look at one row at a time? Run it on a part of the rows and compare.

A map that centres, scales, ranks or deduplicates within the table gives other rows other values, unless the part
happens to agree with the whole.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from synth_platform.privacy.private_errors import PrivateComputationError
from synth_platform.privacy.within_row import WithinRow

_PART = 256
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@runtime_checkable
class Rows(Protocol):
    """Rows that can be counted and picked by position."""

    def __len__(self) -> int: ...

    def take(self, index: IntArray, /) -> object:
        """Rows at `index`, in that order."""
        ...


R = TypeVar("R", bound=Rows)
U = TypeVar("U")


class RowDependence(PrivateComputationError):  # noqa: N818 - it names a fact about the map
    """A map declared within-row gives a row another value when other rows are absent. Names the map only."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"within-row map {name!r} is not within-row: a row's output changes with the other rows present. Use "
            "public constants, or make the operation a ledgered statistic."
        )


def contributions_of(row_map: WithinRow[R, FloatArray], rows: R, rng: np.random.Generator) -> FloatArray:
    """The map's [n, …] output, after a random part of at most 256 rows gave the same: a small part is a sharp test.

    Floats agree to 1e-9 of the largest magnitude: matrix products of other shapes round otherwise. Raises
    RowDependence.
    """
    whole = row_map(rows)
    index = rng.permutation(len(rows))[: min(_PART, len(rows) // 2)].astype(np.int64)
    part = row_map(cast(R, rows.take(index)))
    if whole.shape[0] != len(rows) or not _agree(whole[index], part):
        raise RowDependence(row_map.name)
    return whole


def assert_row_independent(row_map: WithinRow[R, U], rows: R, rng: np.random.Generator) -> None:
    """Raise RowDependence unless the map of a random cut's two sides, end to end, is the map of the whole.

    Unlike `contributions_of` this holds for maps that drop rows by their own content too. For tests of declared maps;
    outputs are arrays or dataclasses of arrays, one entry per row.
    """
    order = rng.permutation(len(rows)).astype(np.int64)
    cut = int(rng.integers(1, len(rows)))
    whole = row_map(cast(R, rows.take(order)))
    sides = [row_map(cast(R, rows.take(index))) for index in (order[:cut], order[cut:])]
    columns = [_columns(output) for output in (whole, *sides)]
    for name, values in columns[0].items():
        if not _agree(values, np.concatenate([columns[1][name], columns[2][name]])):
            raise RowDependence(row_map.name)


def _columns(output: object) -> dict[str, NDArray[np.generic]]:
    if isinstance(output, np.ndarray):
        return {"": output}
    if not is_dataclass(output):
        raise TypeError(
            f"cannot compare outputs of type {type(output).__name__}: expected an array or a dataclass of them"
        )
    values = {f.name: getattr(output, f.name) for f in fields(output)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def _agree(a: NDArray[np.generic], b: NDArray[np.generic]) -> bool:
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    largest = float(np.abs(a, where=np.isfinite(a), out=np.zeros_like(a)).max(initial=0.0))
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-9 * largest, equal_nan=True))
