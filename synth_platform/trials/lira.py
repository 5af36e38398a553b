"""LIRA: the likelihood-ratio attack by shadow models (Carlini et al. 2022, IEEE S&P), one Gaussian test a row.

A shadow is a training whose members are known. It shows how each row scores when it was trained on and when it was
not, so that a row is compared with itself and not with other rows: an outlier that always lies far from the table no
longer passes for a non-member.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_platform.normalize.rows import BoolArray, FloatArray

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
    """The test of every row by S shadows: scores [A, S, N], members [S, N], every row in in half of the shadows.

    The covariance is pooled over rows and over in and out, as the paper advises for few shadows. Scores are rounded, so
    the variance of rounding is part of it, and a leak without noise has a finite weight. The shift of a row,
    mean_in - mean_out, rests on S/2 shadows a side, so it is shrunk towards the mean shift of all rows by the known
    noise (empirical Bayes, per score): what every row leaks is used to the full, what one row leaks as far as the
    shadows can show it.

    Raises ValueError with fewer than four shadows, or a row that is not in half of them.
    """
    count = len(members)
    if count < 4 or (2 * members.sum(axis=0) != count).any():
        raise ValueError(f"{count} shadow trainings: the attack needs at least 4, and every row in half of them")
    mean_in, mean_out = ((scores * side).sum(axis=1) * 2 / count for side in (members, ~members))
    residual = scores - np.where(members, mean_in[:, None], mean_out[:, None])
    covariance = np.einsum("arn,brn->ab", residual, residual) / (members.shape[1] * (count - 2))
    shift = _shrunk(mean_in - mean_out, np.diag(covariance) * 4 / count)
    scale = np.sqrt(np.diag(covariance) + _ROUNDING)[:, None]
    correlation = covariance / (scale * scale.T) + _AGREEMENT * np.eye(len(scale))
    return RowTest(np.linalg.solve(correlation, shift / scale) / scale, (mean_in + mean_out) / 2)


def _shrunk(shift: FloatArray, noise: FloatArray) -> FloatArray:
    """[A, N] shifts between their estimate and its mean over rows, given the variance [A] of the estimate."""
    mean = shift.mean(axis=1, keepdims=True)
    own = np.maximum(shift.var(axis=1) - noise, 0)
    weight = np.divide(own, own + noise, out=np.zeros_like(noise), where=own > 0)[:, None]
    return np.asarray(weight * shift + (1 - weight) * mean)
