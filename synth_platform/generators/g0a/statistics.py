"""What one private row contributes to the four statistics of G0A: within-row maps whose constants are all public."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_platform.generators.g0a.anchor import Anchor, clip_rows, relative_risk
from synth_platform.normalize.rows import EncodedRows, FloatArray

RESIDUAL_BOUND = 1.0  # martingale residuals are at most 1; cut at -1 they are bounded on both sides
LEVEL_WEIGHT = 0.2  # of the two level scores, relative to the hazard clip norm


def membership(rows: EncodedRows, classes: int) -> FloatArray:
    """[n, K] one-hot class; a label nobody declared belongs to none."""
    return np.asarray(rows.label[:, None] == np.arange(classes), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CountContribution:
    """rows [n] -> [n, K]: 1 in the row's class; norm <= 1."""

    anchor: Anchor

    def __call__(self, rows: EncodedRows) -> FloatArray:
        """Contribution of each row."""
        return membership(rows, self.anchor.classes)

    @property
    def sensitivity(self) -> float:
        """Largest norm of a contribution."""
        return 1.0


@dataclass(frozen=True, eq=False)
class MeanContribution:
    """rows [n] -> [n, K d]: the clipped residual around the public class mean, in the place of the row's class."""

    anchor: Anchor

    def __call__(self, rows: EncodedRows) -> FloatArray:
        """Contribution of each row."""
        member = membership(rows, self.anchor.classes)
        residual = self.anchor.mean.clipped(rows.x - member @ self.anchor.means)
        products = member[:, :, None] * residual[:, None, :]
        return products.reshape(len(rows), member.shape[1] * residual.shape[1])

    @property
    def sensitivity(self) -> float:
        """The clip norm."""
        return self.anchor.mean.clip


@dataclass(frozen=True, eq=False)
class HazardContribution:
    """rows [n] -> [n, q + 2]: score of the public survival model and the levels of event and censoring hazard."""

    anchor: Anchor

    def __call__(self, rows: EncodedRows) -> FloatArray:
        """Contribution of each row."""
        return hazard_scores(self.anchor, rows.x, rows.time, rows.event.astype(np.float64))

    @property
    def sensitivity(self) -> float:
        """clip * sqrt(1 + 2 LEVEL_WEIGHT^2)."""
        return float(self.anchor.hazard.clip * RESIDUAL_BOUND * np.sqrt(1 + 2 * LEVEL_WEIGHT**2))


def hazard_scores(anchor: Anchor, x: FloatArray, time: FloatArray, event: FloatArray) -> FloatArray:
    """[n, q + 2] (M h, w M, w M_c): M = event - H(t) exp(eta) is the martingale residual of the public model.

    M has mean 0 at every x where the public model holds, so its product with the clipped coordinates h says which way
    the log hazard has to turn; M_c is the same for censoring. Both are cut at +-RESIDUAL_BOUND.
    """
    h = (x - anchor.centre) @ anchor.hazard.project
    clipped, risk = clip_rows(h, anchor.hazard.clip), relative_risk(h, anchor.cox.beta)
    return residual_scores(anchor, clipped, risk, time, event)


def residual_scores(anchor: Anchor, h: FloatArray, risk: FloatArray, time: FloatArray, event: FloatArray) -> FloatArray:
    """`hazard_scores` of rows with clipped coordinates h [n, q] and public relative risk [n]."""
    hazard = anchor.baseline.at(time) * risk
    failed = np.clip(event - hazard, -RESIDUAL_BOUND, RESIDUAL_BOUND)
    lost = np.clip(1 - event - anchor.censoring.at(time), -RESIDUAL_BOUND, RESIDUAL_BOUND)
    level = LEVEL_WEIGHT * anchor.hazard.clip
    return np.column_stack([failed[:, None] * h, level * failed, level * lost])


@dataclass(frozen=True, eq=False)
class MomentContribution:
    """rows [n] -> [n, k (k + 1) / 2]: u u' of the clipped white residual u around `means` [K, p], public or noisy.

    Off-diagonal entries carry sqrt 2, which makes the vector's norm |u|^2 and halves their noise variance.
    """

    anchor: Anchor
    means: FloatArray

    def __call__(self, rows: EncodedRows) -> FloatArray:
        """Contribution of each row; a row without a declared class contributes nothing."""
        assert self.anchor.moment is not None
        member = membership(rows, self.anchor.classes)
        u = (rows.x - member @ self.means) @ self.anchor.moment.project
        return np.asarray(moment_products(u, self.anchor.moment.clip) * member.sum(axis=1, keepdims=True))

    @property
    def sensitivity(self) -> float:
        """clip^2."""
        assert self.anchor.moment is not None
        return float(self.anchor.moment.clip**2)


def moment_products(u: FloatArray, clip: float) -> FloatArray:
    """[n, k (k + 1) / 2] upper triangle of u u' after clipping u, off-diagonal entries times sqrt 2."""
    u = clip_rows(u, clip)
    a, b = np.triu_indices(u.shape[1])
    return np.asarray(u[:, a] * u[:, b] * np.where(a == b, 1.0, np.sqrt(2)))
