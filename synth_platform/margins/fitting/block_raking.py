"""Iterative proportional fitting by blocks: many margins are raked on a small table, which then is one margin itself.

Raking a table to margins that all lie within some of its variables only needs the table's sums over those variables,
the block: rake the block, and multiply the table by (raked block) / (block). Each step is the step that raking the
table itself would take, so the fit is the same, at one pass over the table a block instead of two a margin. Blocks are
raked by blocks in turn until they are small.

Variables are put in three groups of nearly equal size, and the unions of two of them are blocks: three blocks of about
cells^(2/3) hold every two-way margin. A margin in none of them joins others of its kind while their block stays small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from synth_platform.margins.fitting.slabs import Axes, Slabs, Table
from synth_platform.margins.margin import Counts

SMALL = 4096
MOST_BLOCK_CELLS = 2**20
# Relative to a table whose mean cell is one; a factor beyond its inverse would overflow float32.
NO_MASS = 1e-30


@dataclass(frozen=True, eq=False)
class AxesTarget:
    """What the sums of a table over all but some axes have to be, [cells of the first of the axes, …]."""

    axes: Axes
    sums: Counts


@dataclass(frozen=True, eq=False)
class Block:
    """Some axes of a table, ascending, the positions of the targets within them, and how the block is raked."""

    axes: Axes
    members: tuple[int, ...]
    raking: Raking


class Raking:
    """Cycles of raking tables to targets, for a shape and targets that are given in any order of the axes.

    Attributes: order, how tables are laid out to be raked fast, axes of `shape` in turn; targets, over the axes of
    such a table, ascending; blocks, none where the table is small enough to be raked margin by margin.
    """

    def __init__(self, shape: Sequence[int], targets: Sequence[AxesTarget]) -> None:
        groups = balanced_groups(shape)
        self.order = tuple(axis for group in groups for axis in group)
        self.targets = tuple(_reordered(target, self.order) for target in targets)
        whole = len(targets) == 1 and len(targets[0].axes) == len(shape)
        laid_out = tuple(shape[axis] for axis in self.order)
        pairs = [frozenset(map(self.order.index, one + other)) for one, other in combinations(groups, 2)]
        self.blocks = () if whole or math.prod(shape) <= SMALL else _blocks(laid_out, self.targets, pairs)

    def start(self, table: Table) -> list[Counts]:
        """Sums of a table over each block."""
        return Slabs(table).scale_and_sum(None, [block.axes for block in self.blocks])

    def cycle(self, table: Table, sums: list[Counts]) -> list[Counts]:
        """Gives every target its turn, in place; takes and returns the table's sums over each block."""
        if not self.blocks:
            for target in self.targets:
                _rake(table, target)
            return []
        slabs = Slabs(table)
        current = sums[0]
        for block, following in zip(self.blocks, self.blocks[1:], strict=False):
            (current,) = slabs.scale_and_sum((block.axes, _factor(block, current)), [following.axes])
        last = self.blocks[-1]
        return slabs.scale_and_sum((last.axes, _factor(last, current)), [block.axes for block in self.blocks])

    def fitted(self, table: Table, sums: list[Counts]) -> list[Counts]:
        """Sums of the table that are to be the targets', in their order."""
        if not self.blocks:
            return [_sum(table, target.axes) for target in self.targets]
        found: dict[int, Counts] = {}
        for block, total in zip(self.blocks, sums, strict=True):
            for member in block.members:
                axes = self.targets[member].axes
                found[member] = _sum(total, tuple(block.axes.index(axis) for axis in axes))
        return [found[member] for member in range(len(self.targets))]


def balanced_groups(shape: Sequence[int]) -> tuple[Axes, ...]:
    """Axes in three groups whose products of sizes are nearly equal, the largest sizes placed first."""
    groups: list[list[int]] = [[], [], []]
    for axis in sorted(range(len(shape)), key=lambda axis: -shape[axis]):
        min(groups, key=lambda group: math.prod(shape[member] for member in group)).append(axis)
    return tuple(tuple(sorted(group)) for group in groups)


def _blocks(shape: tuple[int, ...], targets: tuple[AxesTarget, ...], pairs: list[frozenset[int]]) -> tuple[Block, ...]:
    most = min(MOST_BLOCK_CELLS, max(SMALL, math.prod(shape) // 4))
    members: dict[frozenset[int], list[int]] = {pair: [] for pair in pairs if _cells(shape, pair) <= most}
    for position, target in enumerate(targets):
        axes = frozenset(target.axes)
        small = [block for block in members if _cells(shape, block | axes) <= most]
        within = (block for block in small if axes <= block)
        joined = next(within, next((block for block in small if block not in pairs), axes))
        members[joined | axes] = [*members.pop(joined, []), position]
    return tuple(_block(shape, targets, tuple(held)) for held in members.values() if held)


def _block(shape: tuple[int, ...], targets: tuple[AxesTarget, ...], members: tuple[int, ...]) -> Block:
    axes = tuple(sorted(frozenset().union(*(targets[member].axes for member in members))))
    inner = [AxesTarget(tuple(map(axes.index, targets[member].axes)), targets[member].sums) for member in members]
    return Block(axes, members, Raking([shape[axis] for axis in axes], inner))


def _reordered(target: AxesTarget, order: Axes) -> AxesTarget:
    places = [order.index(axis) for axis in target.axes]
    return AxesTarget(tuple(sorted(places)), np.ascontiguousarray(target.sums.transpose(np.argsort(places))))


def _factor(block: Block, before: Counts) -> Counts:
    """What the table is multiplied by for its sums over the block to become the raked ones."""
    raked = np.array(before.transpose(block.raking.order), order="C")
    block.raking.cycle(raked, block.raking.start(raked))
    return _ratio(raked.transpose(np.argsort(block.raking.order)), before)


def _rake(table: Table, target: AxesTarget) -> None:
    factor = _ratio(target.sums, _sum(table, target.axes))
    table *= np.expand_dims(factor, tuple(axis for axis in range(table.ndim) if axis not in target.axes))


def _sum(table: Table, axes: Axes) -> Counts:
    sums: Counts = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in axes), dtype=np.float64)
    return sums


def _ratio(wanted: Counts, current: Counts) -> Counts:
    """wanted / current, and nought where there is no mass to scale."""
    return np.divide(wanted, current, out=np.zeros(current.shape), where=current > NO_MASS)


def _cells(shape: tuple[int, ...], axes: frozenset[int]) -> int:
    return math.prod(shape[axis] for axis in axes)
