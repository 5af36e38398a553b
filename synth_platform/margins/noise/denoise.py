"""Noisy tables of the same people made margins: one total, agreeing with one another, nobody below nought.

All of it is a function of noisy counts and public constants: it costs nothing and is the same to the last bit whenever
it is done again.

A table over variables V is the sum of a part for each subset S of V: what the table over S tells beyond all smaller
ones (its counts with the mean along every axis taken off, spread evenly over the other variables). Noise of one
variance on all cells is independent between the parts, and its variance in part S is σ² times the cells of V to one of
S. So the mean of each part over all tables that hold S, weighted by the inverse of that, is the weighted least squares
estimate (the decomposition of Xiao et al. 2023, ResidualPlanner; of sums alone Hay et al. 2010). The part of S = ∅ is
the total of people, which stays noisy. Structural zeros are set first and enter as cells without noise, of which the
weights know only how many there are.

Then every table is moved to the nearest one without negative counts and with that total: a constant is taken off all
cells and what falls below nought becomes nought. Setting negative counts to nought alone would add people. Tables agree
a little less after that, so both steps are repeated, ROUNDS times; docs/privacy.md has what that is worth.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.domain import Domain
from synth_platform.margins.margin import Counts, Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero, possible

ROUNDS = 12
Axes = tuple[int, ...]


class TooNoisyError(ValueError):
    """The noise leaves nobody in the tables. Says so without a figure."""


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Noisy counts over the named variables, [categories of the first, …], some below nought.

    sigma: standard deviation of the independent noise on each cell, in people.
    """

    names: tuple[str, ...]
    counts: Counts
    sigma: float


@dataclass(frozen=True, eq=False)
class _Table:
    """A table with its axes in the order of the domain. free: cells that no structural zero covers."""

    axes: Axes
    counts: Counts
    sigma: float
    free: NDArray[np.bool_]

    def clear(self) -> _Table:
        return replace(self, counts=np.where(self.free, self.counts, 0.0))


def denoise(domain: Domain, tables: Sequence[NoisyTable], zeros: Sequence[StructuralZero] = ()) -> MarginSet:
    """Margins over `domain`, in the order of their first table; several tables of one margin are averaged.

    Their totals are one noisy number, never the number of people. Raises TooNoisyError where that is below one, and
    ValueError as `MarginSet` does.
    """
    parts = [_table(domain, table, zeros).clear() for table in tables]
    for _ in range(ROUNDS):
        parts, total = _agreeing(parts)
        if total < 1:
            raise TooNoisyError(
                "the noise leaves nobody in the margins: raise epsilon, or declare fewer margins or wider categories"
            )
        parts = [replace(part, counts=_without_negatives(part, total)) for part in parts]
    margins: dict[Axes, Margin] = {}
    for table, part in zip(tables, parts, strict=True):
        if part.axes not in margins:
            counts = part.counts.transpose(np.argsort(np.argsort(domain.axes(table.names))))
            margins[part.axes] = Margin(table.names, counts, _provenance(domain, tables, table))
    return MarginSet(domain, tuple(margins.values()), tuple(zeros))


def _table(domain: Domain, table: NoisyTable, zeros: Sequence[StructuralZero]) -> _Table:
    axes = domain.axes(table.names)
    order = np.argsort(axes)
    own = tuple(sorted(axes))
    return _Table(
        own,
        table.counts.transpose(order),
        table.sigma,
        possible(domain.project([domain.names[axis] for axis in own]), zeros),
    )


def _agreeing(tables: Sequence[_Table]) -> tuple[list[_Table], float]:
    """The tables with every part replaced by its weighted mean over all tables that hold it, and their total."""
    sums: dict[Axes, Counts] = defaultdict(lambda: np.zeros(()))
    weights: dict[Axes, float] = defaultdict(float)
    for table in tables:
        for held in _subsets(len(table.axes)):
            part = _part(table.counts, held)
            weight = part.size / (table.sigma**2 * table.free.sum())
            name = tuple(table.axes[axis] for axis in held)
            sums[name] = sums[name] + weight * part
            weights[name] += weight
    return [replace(table, counts=_sum_of_parts(table, sums, weights)) for table in tables], float(
        sums[()] / weights[()]
    )


def _sum_of_parts(table: _Table, sums: dict[Axes, Counts], weights: dict[Axes, float]) -> Counts:
    counts, shape = np.zeros(table.counts.shape), table.counts.shape
    for held in _subsets(len(shape)):
        name = tuple(table.axes[axis] for axis in held)
        part = sums[name] / weights[name]
        spread = part.size / table.counts.size
        counts += spread * part.reshape([size if axis in held else 1 for axis, size in enumerate(shape)])
    return counts


def _part(counts: Counts, held: Axes) -> Counts:
    part: Counts = counts.sum(axis=tuple(axis for axis in range(counts.ndim) if axis not in held))
    for axis in range(len(held)):
        part = part - part.mean(axis=axis, keepdims=True)
    return part


def _subsets(size: int) -> Sequence[Axes]:
    return list(chain.from_iterable(combinations(range(size), held) for held in range(size + 1)))


def _without_negatives(table: _Table, total: float) -> Counts:
    """The nearest counts (Euclidean) >= 0 that sum to `total`, with nobody in impossible cells."""
    counts = np.zeros(table.counts.shape)
    descending = np.sort(table.counts[table.free])[::-1]
    taken = (np.cumsum(descending) - total) / np.arange(1, len(descending) + 1)
    counts[table.free] = np.maximum(table.counts[table.free] - taken[np.flatnonzero(descending > taken)[-1]], 0.0)
    return counts


def _provenance(domain: Domain, tables: Sequence[NoisyTable], of: NoisyTable) -> tuple[str, ...]:
    variables = frozenset(of.names)
    sigmas = [table.sigma for table in tables if frozenset(table.names) == variables]
    sigma = 1 / math.sqrt(math.fsum(1 / sigma**2 for sigma in sigmas))
    return (
        f"noisy counts: discrete Gaussian of standard deviation {sigma:.6g} on each cell",
        "made to agree, none below 0",
    )
