"""Utility of every small table: the Voas-Williamson statistic over its degrees of freedom.

With d real and s synthetic rows in a cell and c of `compared`,

    VW = Σ (s − d c/(1 − c))² / ((s + d) c),  S_pMSE = VW / df,  df = cells with any row − 1

(Raab, Nowok and Dibben 2021, arXiv 2109.12717). It is the pMSE of the saturated propensity s/(s + d) over its mean
under the null, N pMSE = (1 − c)² c VW, and Pearson's statistic of the two samples over 1 − c.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from synth_platform.margins.domain import Codes
from synth_platform.margins.measures.compared import Compared
from synth_platform.margins.rows import Rows

MOST_COUNTERS = 1 << 19  # counters that stay in a processor's cache; sorting the rows is faster than more of them


@dataclass(frozen=True)
class TableUtility:
    """How well one table is kept. vw: statistic, no unit; preserved: a fitted margin holds all its variables."""

    names: tuple[str, ...]
    vw: float
    df: int
    preserved: bool

    @property
    def s_pmse(self) -> float:
        """VW over its mean under the null; nought where all rows of both tables are in one cell."""
        return self.vw / self.df if self.df else 0.0


def table_utility(
    real: Rows, synthetic: Rows, size: int = 2, preserved: Collection[Sequence[str]] = ()
) -> list[TableUtility]:
    """Every table of `size` variables, in the order of the domain.

    preserved: names of the fitted margins. Raises ValueError for a size that is not 2 or 3 or above the number of
    variables, an unknown variable in `preserved`, and as `Compared` does.
    """
    compared = Compared(real, synthetic)
    domain = real.domain
    if size not in (2, 3):
        raise ValueError("tables of 2 or 3 variables are compared")
    if size > len(domain.variables):
        raise ValueError(f"tables of {size} variables need as many; the domain has {len(domain.variables)}")
    fitted = [frozenset(domain.axes(names)) for names in preserved]

    singles = [_relabelled(column, width) for column, width in zip(compared.codes.T, domain.shape, strict=True)]
    found: dict[tuple[int, ...], tuple[float, int]] = {}
    for first, second in combinations(range(len(singles)), 2):
        pair = _crossed(singles[first], singles[second])
        if size == 2:
            found[first, second] = _voas_williamson(*pair, compared)
            continue
        if second + 1 < len(singles):
            pair = _relabelled(*pair)
        for third in range(second + 1, len(singles)):
            found[first, second, third] = _voas_williamson(*_crossed(pair, singles[third]), compared)
    return [
        TableUtility(tuple(domain.names[axis] for axis in axes), vw, df, any(fit.issuperset(axes) for fit in fitted))
        for axes, (vw, df) in found.items()
    ]


def documented(tables: Sequence[Mapping[str, Any]]) -> list[TableUtility]:
    """Tables of a stored utility document."""
    return [TableUtility(tuple(t["names"]), t["vw"], t["df"], t["preserved"]) for t in tables]


def _crossed(first: tuple[Codes, int], second: tuple[Codes, int]) -> tuple[Codes, int]:
    return first[0] * second[1] + second[0], first[1] * second[1]


def _relabelled(cells: Codes, width: int) -> tuple[Codes, int]:
    """The same cells numbered without gaps, and their number."""
    if width > MOST_COUNTERS:
        labels, relabelled = np.unique(cells, return_inverse=True)
        return relabelled, len(labels)
    present = np.bincount(cells, minlength=width) > 0
    return (np.cumsum(present) - 1)[cells], int(present.sum())


def _voas_williamson(cells: Codes, width: int, compared: Compared) -> tuple[float, int]:
    if width > MOST_COUNTERS:
        cells, width = _relabelled(cells, width)
    d = np.bincount(cells[: len(compared.real)], minlength=width)
    s = np.bincount(cells[len(compared.real) :], minlength=width)
    anybody = np.flatnonzero(s + d)
    s, d, c = s[anybody], d[anybody], compared.share
    return float(((s - d * (c / (1 - c))) ** 2 / ((s + d) * c)).sum()), len(anybody) - 1
