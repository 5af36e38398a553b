"""What every e-value here offers: a log e-value per feature, and a proven bound on what one record can do to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Outcome_contra = TypeVar("Outcome_contra", contravariant=True)


class LogEStatistic(Protocol[Outcome_contra]):
    """An e-value, made of public constants alone, whose logarithm one record moves by at most `sensitivity`.

    sensitivity is Δ = sup |log E(D) − log E(D')| over data sets that differ in one record of the same group, of public
    size; finite and > 0. parameters are all public constants that fix the statistic, JSON values.
    """

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        ...

    @property
    def sensitivity(self) -> float:
        """Δ of the logarithm, the same for every hypothesis."""
        ...

    @property
    def parameters(self) -> Mapping[str, object]:
        """Public constants by name."""
        ...

    def log_e(self, values: FloatArray, outcome: Outcome_contra, /) -> FloatArray:
        """values [n, m], one column per hypothesis -> [m] log e-values, all finite.

        Raises ValueError where `values` and `outcome` are not of the registered sizes.
        """
        ...
