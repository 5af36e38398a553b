"""Real and synthetic rows one under the other, and the null that every S_pMSE is a ratio to.

With N rows in all, c = (synthetic rows) / N. The null is that of Snoke et al. (2018, JRSS A 181) and of synthpop: the
synthetic rows are a sample of the distribution *of the very real rows*, as rows drawn from a perfect fit are. Given the
real rows, only the synthetic ones vary. Two independent samples of one population differ more, since both vary: there
an S_pMSE is 1/(1 − c) on average, 2 for tables of one size (`Compared.independent_sample`). Permuted labels imitate two
independent samples, so what they give is multiplied by 1 − c, the "half" of tables of one size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.domain import Codes
from synth_platform.margins.rows import Rows

Band = Literal["good", "acceptable", "poor"]
GOOD, ACCEPTABLE = 3.0, 10.0


def band(s_pmse: float) -> Band:
    """Words for a ratio to the null: below 3 good, below 10 acceptable (Raab, Nowok and Dibben 2021)."""
    if s_pmse < GOOD:
        return "good"
    return "acceptable" if s_pmse < ACCEPTABLE else "poor"


@dataclass(frozen=True, eq=False)
class Compared:
    """Real rows first, synthetic rows after them. Raises ValueError for other domains or a table without rows."""

    real: Rows
    synthetic: Rows

    def __post_init__(self) -> None:
        if self.real.domain != self.synthetic.domain:
            raise ValueError("real and synthetic rows have different domains: code both by one domain")
        for name, rows in (("real", self.real), ("synthetic", self.synthetic)):
            if not len(rows):
                raise ValueError(f"the {name} table has no rows to compare")

    @cached_property
    def codes(self) -> Codes:
        """Codes of both, [rows, variables]."""
        return np.concatenate([self.real.codes, self.synthetic.codes])

    @cached_property
    def is_synthetic(self) -> NDArray[np.bool_]:
        """Which rows are synthetic, [rows]."""
        return np.arange(len(self.real) + len(self.synthetic)) >= len(self.real)

    @property
    def share(self) -> float:
        """Synthetic rows over all rows, c."""
        return len(self.synthetic) / (len(self.real) + len(self.synthetic))

    @property
    def independent_sample(self) -> float:
        """Mean S_pMSE of another sample of the population that the real rows are a sample of, 1 / (1 − c)."""
        return 1 / (1 - self.share)


def numbered_cells(codes: Codes) -> Codes:
    """Cells of rows [rows, variables] numbered without gaps, however many cells there are."""
    cells = np.zeros(len(codes), dtype=np.int64)
    for column in codes.T:
        _, cells = np.unique(cells * (int(column.max(initial=0)) + 1) + column, return_inverse=True)
    return cells
