"""L1: standardisation by public parameters alone, at no privacy cost (8-1 §1.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Standardisation:
    """x̃_ij = (x_ij − m_j) / s_j with public m [p] and s [p] > 0; a missing cell becomes 0, the public mean."""

    mean: FloatArray
    scale: FloatArray

    def __post_init__(self) -> None:
        if self.mean.shape != self.scale.shape or self.mean.ndim != 1:
            raise ValueError(f"mean {self.mean.shape} and scale {self.scale.shape} must both be [p]")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.scale).all() and (self.scale > 0).all()):
            raise ValueError("mean and scale must be finite and scale positive")

    def apply(self, values: FloatArray) -> FloatArray:
        """[n, p] with NaN for missing -> [n, p] finite."""
        standardised = (values - self.mean) / self.scale
        standardised[np.isnan(standardised)] = 0
        return standardised

    def invert(self, standardised: FloatArray) -> FloatArray:
        """[n, p] back on the scale before `apply`; a filled cell returns as the public mean."""
        return standardised * self.scale + self.mean


def fit_standardisation(public: FloatArray, floor: FloatArray, names: tuple[str, ...]) -> Standardisation:
    """Mean and standard deviation (n − 1) of the observed public cells of each column, [n, p] -> [p].

    floor [p] is the smallest scale of a column in its own units: a column that public rows hardly vary in would
    otherwise throw private rows arbitrarily far out. Raises ValueError naming a column with fewer than two observed
    public cells.
    """
    observed = ~np.isnan(public)
    count = observed.sum(axis=0)
    if (count < 2).any():
        column = names[int(np.argmax(count < 2))]
        raise ValueError(f"{column}: fewer than two observed public values; take it out of the panel or the variables")
    mean = np.where(observed, public, 0).sum(axis=0) / count
    deviation = np.where(observed, public - mean, 0)
    scale = np.sqrt((deviation**2).sum(axis=0) / (count - 1))
    return Standardisation(mean, np.maximum(scale, floor))
