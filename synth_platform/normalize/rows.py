"""The model space: one numeric row per patient, as every generator and gate sees it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class EncodedRows:
    """Rows after L0 and L1 (8-1 §1.2), with the pre-registered outcome beside them.

    features: p column names, in the order of `x`.
    x:        [n, p] standardised values, finite; missing cells are 0 with an indicator column of their own.
    label:    [n] class code, 0..K-1 in the order the cohort declares its categories.
    event:    [n] 1 = event observed, 0 = censored.
    time:     [n] follow-up in the cohort's unit, > 0.
    batch:    [n] position in the cohort's declared batch list; -1 = a batch that is not declared.
    split:    [n] one of "public", "train", "holdout", "test" ("synthetic" for generated rows).
    key:      [n] opaque row tokens.
    """

    features: tuple[str, ...]
    x: FloatArray
    label: IntArray
    event: IntArray
    time: FloatArray
    batch: IntArray
    split: NDArray[np.str_]
    key: NDArray[np.str_]

    def __post_init__(self) -> None:
        n = self.x.shape[0]
        if self.x.ndim != 2 or self.x.shape[1] != len(self.features):
            raise ValueError(f"x has shape {self.x.shape}, expected [n, {len(self.features)}]")
        for name in ("label", "event", "time", "batch", "split", "key"):
            if getattr(self, name).shape != (n,):
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, expected ({n},)")

    def __len__(self) -> int:
        return int(self.x.shape[0])

    def take(self, index: IntArray | BoolArray | slice) -> EncodedRows:
        """Rows at `index` (positions, mask or slice)."""
        return replace(
            self,
            x=self.x[index],
            label=self.label[index],
            event=self.event[index],
            time=self.time[index],
            batch=self.batch[index],
            split=self.split[index],
            key=self.key[index],
        )

    def where_split(self, *splits: str) -> EncodedRows:
        """Rows whose split is one of `splits`."""
        return self.take(np.isin(self.split, splits))


def concatenate(parts: Sequence[EncodedRows]) -> EncodedRows:
    """Rows of all parts, in order; all parts must have the same features."""
    first = parts[0]
    if any(part.features != first.features for part in parts):
        raise ValueError("cannot concatenate rows with different features")
    return EncodedRows(
        features=first.features,
        x=np.concatenate([part.x for part in parts]),
        label=np.concatenate([part.label for part in parts]),
        event=np.concatenate([part.event for part in parts]),
        time=np.concatenate([part.time for part in parts]),
        batch=np.concatenate([part.batch for part in parts]),
        split=np.concatenate([part.split for part in parts]),
        key=np.concatenate([part.key for part in parts]),
    )


def content_digest(rows: EncodedRows) -> bytes:
    """SHA-256 of what a statistic may depend on: features and every row's values, whatever the order of rows.

    Keys are left out: re-issuing opaque tokens, or reading the same patients in another order, is the same cohort and
    must find the statistics that were paid for.
    """
    columns = np.column_stack([rows.x, rows.label, rows.event, rows.time, rows.batch]).astype("<f8") + 0.0
    cells = sorted(row.tobytes() + str(split).encode() for row, split in zip(columns, rows.split, strict=True))
    digest = hashlib.sha256("\n".join(rows.features).encode())
    for cell in cells:
        digest.update(hashlib.sha256(cell).digest())
    return digest.digest()
