"""What every e-value here offers: a log e-value per feature, and a proven bound on what one record can do to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Outcome = TypeVar("Outcome", contravariant=True)


class LogEStatistic(Protocol[Outcome]):
    """An e-value, made of public constants alone, whose logarithm one record moves by at most `sensitivity`.

    name:        of the statistic; stands in ledger requests and in releases.
    sensitivity: Δ = sup |log E(D) − log E(D')| over data sets that differ in one record of the same group, group sizes
                 public. Finite and > 0.
    parameters:  every public constant that fixes the statistic, JSON values.
    """

    @property
    def name(self) -> str: ...

    @property
    def sensitivity(self) -> float: ...

    @property
    def parameters(self) -> Mapping[str, object]: ...

    def log_e(self, values: FloatArray, outcome: Outcome, /) -> FloatArray:
        """values [n, m], one column per hypothesis -> [m] log e-values, all finite.

        Raises ValueError where `values` and `outcome` are not of the registered sizes.
        """
        ...
