"""Utility of synthetic rows beside the private rows they stand for.

Every figure here compares with private rows without noise: they are figures of the restricted zone, for the people who
may see the rows, until a policy says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from synth_platform.margins.measures.compared import Band, Compared, band
from synth_platform.margins.measures.pmse import Propensity, cart_propensity, logistic_propensity
from synth_platform.margins.measures.specks import specks
from synth_platform.margins.measures.tables import TableUtility, table_utility
from synth_platform.margins.rows import Rows


@dataclass(frozen=True)
class PropensityUtility:
    """How well one model tells the rows apart. expected: mean pMSE of a perfect fit; s_pmse: pMSE over it."""

    pmse: float
    expected: float
    s_pmse: float
    specks: float

    @property
    def band(self) -> Band:
        """What the ratio is called."""
        return band(self.s_pmse)


@dataclass(frozen=True)
class Utility:
    """Tables of two and three variables and both propensity models, of figures of the restricted zone.

    An S_pMSE of 1 is a perfect fit; independent_sample is what another sample of the population has on average.
    """

    independent_sample: float
    two_way: tuple[TableUtility, ...]
    three_way: tuple[TableUtility, ...]
    logistic: PropensityUtility
    cart: PropensityUtility

    def document(self) -> dict[str, Any]:
        """All of it in JSON values, with the ratio and its band by table and model."""
        return {
            "zone": "restricted",
            "independent_sample": self.independent_sample,
            "two_way": [_table(table) for table in self.two_way],
            "three_way": [_table(table) for table in self.three_way],
            "logistic": asdict(self.logistic) | {"band": self.logistic.band},
            "cart": asdict(self.cart) | {"band": self.cart.band},
        }


def utility(
    real: Rows, synthetic: Rows, generator: np.random.Generator, preserved: Collection[Sequence[str]] = ()
) -> Utility:
    """Compare synthetic rows with the private rows.

    generator: of the permutations of the tree's null. preserved: names of the fitted margins. A domain of one variable
    has no tables of two, and one of two none of three. Raises ValueError as `table_utility`, `logistic_propensity` and
    `Compared` do.
    """
    compared = Compared(real, synthetic)
    return Utility(
        compared.independent_sample,
        tuple(table_utility(real, synthetic, 2, preserved)) if len(real.domain.variables) > 1 else (),
        tuple(table_utility(real, synthetic, 3, preserved)) if len(real.domain.variables) > 2 else (),
        _propensity(compared, logistic_propensity(compared)),
        _propensity(compared, cart_propensity(compared, generator)),
    )


def _propensity(compared: Compared, model: Propensity) -> PropensityUtility:
    return PropensityUtility(model.pmse, model.expected, model.s_pmse, specks(compared, model))


def _table(table: TableUtility) -> dict[str, Any]:
    return {
        "names": list(table.names),
        "vw": table.vw,
        "df": table.df,
        "s_pmse": table.s_pmse,
        "band": band(table.s_pmse),
        "preserved": table.preserved,
    }
