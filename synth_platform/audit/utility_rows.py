"""Held-out rows and arms of a utility document, checked for kind and length while they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_platform.audit.findings import MalformedError
from synth_platform.audit.reading import Document, FloatArray, IntArray, array, codes, mapping, sequence

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class HeldOut:
    """The held-out rows: features [n, p], label, event, time and fold [n]; a frozen test split is one fold."""

    x: FloatArray
    label: IntArray
    event: IntArray
    time: FloatArray
    fold: IntArray

    def within(self, keep: Mask) -> list[IntArray]:
        """Positions of the rows `keep`, fold by fold."""
        return [np.flatnonzero(keep & (self.fold == k)) for k in range(int(self.fold.max()) + 1)]


@dataclass(frozen=True)
class Arm:
    """One training table's predictions: scores [n, K], risk [n], and importance [p] by fold.

    An importance that is not defined everywhere is None.
    """

    scores: FloatArray
    risk: FloatArray
    importance: list[list[float] | None]


def read_rows(evidence: Document, classes: int) -> tuple[HeldOut, dict[str, Arm]]:
    """The held-out rows and every arm by its name. Raises MalformedError naming what does not fit the others."""
    label = codes(evidence, "label")
    n = len(label)
    test = HeldOut(
        x=array(evidence, "test_features", shape=(n, None)),
        label=label,
        event=codes(evidence, "event", shape=(n,)),
        time=array(evidence, "time", shape=(n,)),
        fold=codes(evidence, "fold", shape=(n,)) if "fold" in evidence else np.zeros(n, np.int64),
    )
    if n == 0 or not (label >= 0).all() or not (label < classes).all():
        raise MalformedError("label")
    if not np.isin(test.event, (0, 1)).all():
        raise MalformedError("event")
    arms = {
        name: Arm(
            scores=array(evidence, "arms", name, "scores", shape=(n, classes)),
            risk=array(evidence, "arms", name, "risk", shape=(n,)),
            importance=_importance(evidence, name, test.x.shape[1], int(test.fold.max()) + 1),
        )
        for name in mapping(evidence, "arms")
    }
    return test, arms


def _importance(evidence: Document, arm: str, features: int, folds: int) -> list[list[float] | None]:
    path = ("arms", arm, "importance")
    listed = sequence(evidence, *path) if "fold" in evidence else [sequence(evidence, *path)]
    if len(listed) != folds:
        raise MalformedError(".".join(path))
    return [_row(values, features, path) for values in listed]


def _row(values: list[Any], features: int, path: tuple[str, ...]) -> list[float] | None:
    if isinstance(values, list) and None in values and len(values) == features:
        return None
    try:
        row: list[float] = array({"row": values}, "row", shape=(features,)).tolist()
    except MalformedError:
        raise MalformedError(".".join(path)) from None
    return row
