"""What scores of closed rows need whatever the statistic: sizes that fit, one computation for three queries."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from synth_platform.discovery.statistics.protocol import FloatArray
from synth_platform.privacy.queries import ScoreError

T = TypeVar("T")


class SizesError(ScoreError):
    """The private rows of a contrast are not as many as registered; the message does not tell how many they are."""

    def __init__(self, contrast: str) -> None:
        super().__init__(
            f"contrast {contrast!r}: its private rows are not as many as sizes says; `synth cohort check` counts them: "
            "correct sizes if these numbers may be known, or the values of case and control"
        )


def once(compute: Callable[[T], FloatArray]) -> Callable[[T], FloatArray]:
    """`compute`, remembered for the rows it was asked about last."""
    last: list[tuple[weakref.ref[Any], FloatArray]] = []

    def scores(rows: T) -> FloatArray:
        if not last or last[0][0]() is not rows:
            last[:] = [(weakref.ref(rows), compute(rows))]
        return last[0][1]

    return scores
