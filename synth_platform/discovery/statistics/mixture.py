"""A weighted average of e-values of the same data: evidence for whichever of several alternatives holds.

    E = Σ_k w_k E_k,    w_k > 0 public, Σ w_k = 1.

E[E] = Σ w_k E[E_k] ≤ 1 whatever the dependence. Replacing one record multiplies every E_k by a factor in
[e^{−Δ_k}, e^{Δ_k}], so it multiplies the average by one in [e^{−Δ}, e^{Δ}],

    Δ = max_k Δ_k,

approached where the component with the largest Δ_k outweighs the others. The evidence of E_k counts log(1/w_k) less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from synth_platform.discovery.statistics.protocol import FloatArray, LogEStatistic

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Mixture(Generic[Outcome]):
    """Components by weight, for one null that all of them test.

    Raises ValueError for no component, another number of weights, or weights that are not positive with sum 1.
    """

    components: tuple[LogEStatistic[Outcome], ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.components or len(self.components) != len(self.weights):
            raise ValueError("components and weights must be as many, at least one")
        if not all(weight > 0 for weight in self.weights) or not abs(math.fsum(self.weights) - 1) <= 1e-12:
            raise ValueError(f"weights are {self.weights}: each must be above 0 and their sum 1")

    @property
    def name(self) -> str:
        """What ledger requests and releases call it."""
        return "mixture"

    @property
    def sensitivity(self) -> float:
        """max Δ_k."""
        return max(component.sensitivity for component in self.components)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Weight, name and parameters of each component."""
        return {
            "components": [
                {"weight": weight, "name": component.name, "parameters": dict(component.parameters)}
                for weight, component in zip(self.weights, self.components, strict=True)
            ]
        }

    def log_e(self, values: FloatArray, outcome: Outcome) -> FloatArray:
        """values [n, m] and the outcome that every component takes -> [m] log e-values; errors are the components'."""
        weighted = [
            math.log(weight) + component.log_e(values, outcome)
            for weight, component in zip(self.weights, self.components, strict=True)
        ]
        return np.asarray(np.logaddexp.reduce(weighted))
