"""Faults of the kind that break a privacy promise without breaking anything else, planted in the production functions.

`PLANTED[name]()` is a context in which the build has the fault; the audit itself stays as it is. The power table of
docs/mechanism_audit.md and tests/statistical/trials plant the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from synth_platform.generators import cells
from synth_platform.generators.g0a import anchor, statistics
from synth_platform.privacy import mechanisms
from synth_platform.privacy import statistics as answers

Plant = Callable[[], Any]
COUNTS = 1.0  # sensitivity of the counts of both generators, and of nothing else they ask
gaussian_sum = mechanisms.gaussian_sum


@contextmanager
def _patched(*changes: tuple[object, str, object]) -> Iterator[None]:
    with ExitStack() as stack:
        for place, name, value in changes:
            stack.enter_context(patch.object(place, name, value))
        yield


def noise_halved() -> Any:
    """(a) half the standard deviation that is charged for."""

    def halved(contributions: Any, *, sensitivity: float, sigma: float, noise: Any) -> Any:
        return gaussian_sum(contributions, sensitivity=sensitivity, sigma=sigma / 2, noise=noise)

    return _patched((answers, "gaussian_sum", halved))


def mechanism_clip_left_out() -> Any:
    """The mechanism trusts that a row's contribution is no longer than the sensitivity."""
    return _patched((mechanisms, "_quantised", _trusting))


def row_clip_left_out() -> Any:
    """The contributions are not clipped before they reach the mechanism."""
    unclipped = [(place, "clip_rows", lambda rows, clip: rows) for place in (cells, anchor, statistics)]
    return _patched(*unclipped)


@contextmanager
def clip_left_out() -> Iterator[None]:
    """(b) neither clips."""
    with mechanism_clip_left_out(), row_clip_left_out():
        yield


def count_released_raw() -> Any:
    """(c) one of the counts comes without noise."""

    def raw(contributions: Any, *, sensitivity: float, sigma: float, noise: Any) -> Any:
        values, step = gaussian_sum(contributions, sensitivity=sensitivity, sigma=sigma, noise=noise)
        if sensitivity == COUNTS:
            values[0] = contributions[:, 0].sum()
        return values, step

    return _patched((answers, "gaussian_sum", raw))


def row_in_two_cells() -> Any:
    """(d) a row is counted in its own cell and the next, and the mechanism trusts that it is not."""
    of_g0, of_g0a = cells.Cells.membership, statistics.membership
    return _patched(
        (mechanisms, "_quantised", _trusting),
        (cells.Cells, "membership", lambda self, rows: _doubled(of_g0(self, rows))),
        (statistics, "membership", lambda rows, classes: _doubled(of_g0a(rows, classes))),
    )


def noise_used_twice() -> Any:
    """(e) later statistics take the noise of the first one again, rescaled."""
    drawn = np.zeros(0)

    def again(contributions: Any, *, sensitivity: float, sigma: float, noise: Any) -> Any:
        nonlocal drawn
        if sensitivity == COUNTS:
            drawn = noise.discrete_gaussian(2.0**30, 4096) / 2.0**30
        silent, step = gaussian_sum(contributions, sensitivity=sensitivity, sigma=sigma, noise=_Silent())
        return silent + sigma * drawn[: silent.size], step

    return _patched((answers, "gaussian_sum", again))


def noise_follows_rows() -> Any:
    """(f) the noise shrinks with the number of private rows, as for a mean."""

    def following(contributions: Any, *, sensitivity: float, sigma: float, noise: Any) -> Any:
        scale = 1.0 if len(contributions) == 0 else len(contributions) ** -0.5
        return gaussian_sum(contributions, sensitivity=sensitivity, sigma=sigma * scale, noise=noise)

    return _patched((answers, "gaussian_sum", following))


def error_on_a_broken_row() -> Any:
    """(g) a row that is not finite raises an error, which tells that it is there."""
    quantised = mechanisms._quantised

    def refusing(rows: Any, sensitivity: float, granularity: float) -> Any:
        if not np.isfinite(rows).all():
            raise ValueError("a value is not finite")
        return quantised(rows, sensitivity, granularity)

    return _patched((mechanisms, "_quantised", refusing))


# The five of the issue, two more, and two that break no promise because the other clip holds.
PLANTED: Mapping[str, Plant] = {
    plant.__name__: plant
    for plant in (
        noise_halved,
        clip_left_out,
        count_released_raw,
        row_in_two_cells,
        noise_used_twice,
        noise_follows_rows,
        error_on_a_broken_row,
    )
}
HARMLESS: Mapping[str, Plant] = {plant.__name__: plant for plant in (mechanism_clip_left_out, row_clip_left_out)}


class _Silent:
    source = "seeded"

    def discrete_gaussian(self, sigma: float, size: int) -> Any:
        return np.zeros(size, dtype=np.int64)


def _trusting(rows: Any, sensitivity: float, granularity: float) -> Any:
    finite = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    return np.trunc(np.clip(finite / granularity, -(2.0**50), 2.0**50)).astype(np.int64)


def _doubled(member: Any) -> Any:
    return member + np.roll(member, 1, axis=1)
