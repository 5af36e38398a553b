"""The best linear test of one shift against another, learned from runs: Fisher's, exact where the noise is Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from synth_platform.normalize.rows import FloatArray

Weights = Literal["claimed", "learned"]
STANDS_OUT = 2.0  # a second canary costs as many runs again, so it has to promise this much more than the first
SMALLEST_VARIANCE = 1e-9  # relative to the claimed one: a direction below it counts as free of noise


@dataclass(frozen=True, eq=False)
class Distinguisher:
    """Weights against one canary. row: its position; shift [d]: what it adds; centre [d]: where runs without it lie."""

    weighting: Weights
    row: int
    shift: FloatArray
    weights: FloatArray
    centre: FloatArray

    @property
    def strength(self) -> float:
        """Length of the shift, in units of the claimed noise: the μ of this canary, were the noise as claimed."""
        return float(np.linalg.norm(self.shift))

    def scores(self, values: FloatArray) -> FloatArray:
        """[n] position of each run between the data set without the canary (0) and with it (1)."""
        expected = float(self.shift @ self.weights)
        return np.asarray((values - self.centre) @ self.weights / (expected if expected > 0 else 1.0))


def fit_distinguishers(training: FloatArray, shifts: FloatArray) -> tuple[Distinguisher, Distinguisher]:
    """The worst canary if the noise is as claimed, and the worst one with the noise that `training` shows.

    training [n, d]: runs without a canary, in units of the claimed noise. shifts [C, d]: what each canary adds. The
    second takes any direction that lacks noise, or whose noise another number repeats, for what it is worth.
    """
    centre, learned = training.mean(axis=0), shifts @ precision(training)

    def against(row: int, weighting: Weights, weights: FloatArray) -> Distinguisher:
        return Distinguisher(weighting, row, shifts[row], weights[row], centre)

    stands_out = np.sum(shifts * learned, axis=1)
    worst = int(np.argmax(np.sum(shifts**2, axis=1)))
    other = int(np.argmax(stands_out))
    return (
        against(worst, "claimed", shifts),
        against(other if stands_out[other] > STANDS_OUT * stands_out[worst] else worst, "learned", learned),
    )


def precision(values: FloatArray) -> FloatArray:
    """[d, d] inverse of the covariance of runs [n, d], n > d, with variances of at least SMALLEST_VARIANCE."""
    eigenvalues, vectors = np.linalg.eigh(np.cov(values, rowvar=False))
    return np.asarray((vectors / np.maximum(eigenvalues, SMALLEST_VARIANCE)) @ vectors.T)
