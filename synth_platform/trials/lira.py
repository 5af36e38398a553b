"""LIRA: the likelihood-ratio attack by shadow models (Carlini et al. 2022, IEEE S&P), one Gaussian test a row.

A shadow is a training whose members are known. It shows how each row scores when it was trained on and when it was
not, so that a row is compared with itself and not with other rows: an outlier that always lies far from the table no
longer passes for a non-member.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth_platform.normalize.rows import FloatArray

BoolArray = NDArray[np.bool_]

_ROUNDING = 1e-12 / 12  # variance of rounding to six decimals
_AGREEMENT = 1e-6  # two scores that always agree are one score, not a difference to divide by


@dataclass(frozen=True, eq=False)
class RowTest:
    """A Gaussian test for each of N rows on A scores: weight [A, N] and midpoint [A, N] of the two hypotheses.

    With one covariance C for both, the log likelihood ratio of a score vector s of row i is w_i'(s - mid_i),
    w_i = C^-1 (mean_in - mean_out), mid_i half-way between them.
    """

    weight: FloatArray
    midpoint: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Log likelihood ratios [R, N] of scores [A, R, N], to six decimals; larger = more likely a member."""
        ratio = np.einsum("an,arn->rn", self.weight, scores - self.midpoint[:, None])
        return np.asarray(np.round(ratio, 6) + 0.0)


def fit_row_test(scores: FloatArray, members: BoolArray) -> RowTest:
    """The test of every row by S shadows: scores [A, S, N], members [S, N].

    The covariance is pooled over rows and over in and out, as the paper advises for few shadows. Scores are rounded, so
    the variance of rounding is part of it, and a leak without noise has a finite weight. The shift of a row,
    mean_in - mean_out, rests on S/2 shadows a side, so it is shrunk towards the mean shift of all rows by the known
    noise (empirical Bayes, per score): what every row leaks is used to the full, what one row leaks as far as the
    shadows can show it. A row that was never in, or never out, has the mean shift.

    Raises ValueError with fewer than four shadows, or if no row was both in and out.
    """
    if len(members) < 4:
        raise ValueError(f"{len(members)} shadow trainings; the likelihood-ratio attack needs at least 4")
    inside, outside = members.sum(axis=0), (~members).sum(axis=0)
    known = (inside > 0) & (outside > 0)
    if not known.any():
        raise ValueError("no row was trained on in one shadow and left out in another")
    mean_in = (scores * members).sum(axis=1) / np.maximum(inside, 1)
    mean_out = (scores * ~members).sum(axis=1) / np.maximum(outside, 1)
    residual = scores - np.where(members, mean_in[:, None], mean_out[:, None])
    freedom = known.sum() * (len(members) - 2) + (~known).sum() * (len(members) - 1)
    covariance = np.einsum("arn,brn->ab", residual, residual) / freedom
    noise = np.diag(covariance)[:, None] * (1 / np.maximum(inside, 1) + 1 / np.maximum(outside, 1))
    shift = _shrunk(mean_in - mean_out, noise, known)
    one_sided = np.where(inside > 0, mean_in - shift / 2, mean_out + shift / 2)
    midpoint = np.where(known, (mean_in + mean_out) / 2, one_sided)
    scale = np.sqrt(np.diag(covariance) + _ROUNDING)[:, None]
    correlation = covariance / (scale * scale.T) + _AGREEMENT * np.eye(len(scale))
    return RowTest(np.linalg.solve(correlation, shift / scale) / scale, midpoint)


def _shrunk(shift: FloatArray, noise: FloatArray, known: BoolArray) -> FloatArray:
    """[A, N] shifts of known rows between their estimate and the mean over rows; the mean for the others."""
    mean = shift[:, known].mean(axis=1, keepdims=True)
    spread = np.square(shift[:, known] - mean).mean(axis=1, keepdims=True)
    own = np.maximum(spread - noise[:, known].mean(axis=1, keepdims=True), 0)
    weight = np.divide(own, own + noise, out=np.zeros_like(noise), where=own + noise > 0)
    return np.asarray(np.where(known, weight * shift + (1 - weight) * mean, mean))
