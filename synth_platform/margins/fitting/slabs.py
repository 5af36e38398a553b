"""A full table worked on slab by slab: scaled in place and summed in float64 without a second array of its size.

A slab is the table at one position of its leading axes, small enough for the processor's cache. Neighbouring axes that
are both kept or both summed over are one axis to numpy, which is most of the speed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.margin import Counts

Table = NDArray[np.floating[Any]]
Axes = tuple[int, ...]
MOST_SLAB_CELLS = 2**18


@dataclass(frozen=True)
class Layout:
    """How an array over the ascending `axes` lies against slabs of a table.

    shape: of the array. leading: which leading axes of the table it has. runs: its trailing axes, neighbours joined,
    as the slab is reshaped to: (cells, whether the array has them).
    """

    shape: tuple[int, ...]
    leading: tuple[bool, ...]
    runs: tuple[tuple[int, bool], ...]

    @staticmethod
    def of(shape: Sequence[int], lead: int, axes: Axes) -> Layout:
        """Layout against a table of this shape with `lead` leading axes."""
        kept = [axis in axes for axis in range(len(shape))]
        trailing = groupby(range(lead, len(shape)), key=lambda axis: kept[axis])
        runs = tuple((math.prod(shape[axis] for axis in run), has) for has, run in trailing)
        return Layout(tuple(shape[axis] for axis in axes), tuple(kept[:lead]), runs)

    @property
    def slab(self) -> tuple[int, ...]:
        """Shape that a slab is given before it meets the array."""
        return tuple(cells for cells, _ in self.runs)

    def at(self, array: Table, position: tuple[int, ...]) -> Table:
        """View of a contiguous array at a position of the leading axes, broadcastable to `slab`."""
        places = (place for place, has in zip(position, self.leading, strict=True) if has)
        there: Table = array[tuple(slice(place, place + 1) for place in places)]
        return there.reshape(tuple(cells if has else 1 for cells, has in self.runs))

    @property
    def summed(self) -> tuple[int, ...]:
        """Axes of the reshaped slab that the array has not."""
        return tuple(axis for axis, (_, has) in enumerate(self.runs) if not has)


class Slabs:
    """A contiguous table, with the passes over it that a fit needs."""

    def __init__(self, table: Table) -> None:
        self.table = table
        # A variable has at most MOST_CATEGORIES categories, so the last axis always is a slab.
        self.lead = next(axis for axis in range(table.ndim) if math.prod(table.shape[axis:]) <= MOST_SLAB_CELLS)

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Table]]:
        """Every position of the leading axes with the table there, a view."""
        return ((position, self.table[position]) for position in np.ndindex(self.table.shape[: self.lead]))

    def scale_and_sum(self, factor: tuple[Axes, Counts] | None, wanted: Sequence[Axes]) -> list[Counts]:
        """Multiplies the table by a factor over some axes and sums what it has become over all axes but the wanted.

        Both happen in one pass. Axes ascend; each returned array is float64 over its axes.
        """
        layouts = [Layout.of(self.table.shape, self.lead, axes) for axes in wanted]
        sums: list[Counts] = [np.zeros(layout.shape) for layout in layouts]
        scratch = np.empty(self.table.shape[self.lead :])
        scaling = None if factor is None else Layout.of(self.table.shape, self.lead, factor[0])
        values = None if factor is None else np.ascontiguousarray(factor[1], dtype=self.table.dtype)
        for position, slab in self:
            if scaling is not None and values is not None:
                view = slab.reshape(scaling.slab)
                np.multiply(view, scaling.at(values, position), out=view)
            scratch[...] = slab
            for layout, total in zip(layouts, sums, strict=True):
                into = layout.at(total, position)
                into += scratch.reshape(layout.slab).sum(axis=layout.summed, keepdims=True)
        return sums
