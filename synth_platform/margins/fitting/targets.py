"""Targets of a fit: every margin as probabilities, normalised by its own total, and one total for all of them.

Rounded, noisy or separately published tables of the same people add up to different totals, and no table can have all
of them. So every margin is divided by its own total, and the one total that margins stand for, in an adjustment as in a
fit, is the median of theirs: a single table that misses people, or has them twice, does not move it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synth_platform.margins.margin import Counts, Margin, MarginSet


@dataclass(frozen=True, eq=False)
class Target:
    """Probabilities over the named variables, [categories of the first, …], that sum to one."""

    names: tuple[str, ...]
    probabilities: Counts
    title: str


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets in the order of their margins, totals of the margins as given, by title, and the total of all."""

    targets: tuple[Target, ...]
    totals: dict[str, float]
    total: float

    def __iter__(self) -> Iterator[Target]:
        return iter(self.targets)


def normalise(margins: MarginSet) -> Targets:
    """Targets of margins: probabilities by the margin's own total, and the common total.

    Cells that a structural zero covers have probability nought: `MarginSet` refuses people there.
    """
    totals = {margin.title: margin.total for margin in margins}
    return Targets(tuple(_target(margin) for margin in margins), totals, common_total(margins))


def common_total(margins: MarginSet) -> float:
    """The number of people that margins stand for together: the median of their totals."""
    return float(np.median([margin.total for margin in margins]))


def _target(margin: Margin) -> Target:
    return Target(margin.names, margin.counts / margin.total, margin.title)
