"""The three fixed downstream learners (8-1 §3.1): shrinkage LDA, ridge Cox, one-way ANOVA F.

Their constants were fixed before any cohort was read and are the same for both arms: a gate that tuned its learner
would judge the tuning. Nothing here is ever fitted on a test split.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_platform.normalize.rows import FloatArray, IntArray

LDA_SHRINKAGE = 0.2
COX_PENALTY = 0.1
ABSENT_CLASS_SCORE = -1e6
_SMALLEST_WITHIN = 1e-12
_NEWTON_STEPS = 50
_HALVINGS = 30


@dataclass(frozen=True)
class LinearDiscriminant:
    """Linear discriminants: coef [K, p], intercept [K] (log prior included), present [K] = class had training rows."""

    coef: FloatArray
    intercept: FloatArray
    present: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def scores(self, x: FloatArray) -> FloatArray:
        """Log posterior odds of each class against the rest, [n, K].

        Odds rather than probabilities: they do not saturate, so ranks survive. A class without training rows scores the
        constant `ABSENT_CLASS_SCORE`: it is never predicted and its one-vs-rest AUROC is 1/2.
        """
        discriminant = x @ self.coef.T + self.intercept
        odds = np.full((len(x), len(self.coef)), ABSENT_CLASS_SCORE)
        if self.present.sum() == 1:
            odds[:, self.present] = -ABSENT_CLASS_SCORE
            return odds
        for k in np.flatnonzero(self.present):
            others = self.present.copy()
            others[k] = False
            odds[:, k] = discriminant[:, k] - np.logaddexp.reduce(discriminant[:, others], axis=1)
        return odds


def fit_lda(x: FloatArray, label: IntArray, classes: int, shrinkage: float = LDA_SHRINKAGE) -> LinearDiscriminant:
    """Shrinkage LDA with pooled covariance (1 - s) W + s tr(W)/p I, W the within-class covariance with divisor n.

    x [n, p], label [n] in 0..classes-1; works for p > n. Equals scikit-learn's `solver="lsqr", shrinkage=s`.
    """
    n, p = x.shape
    counts = np.bincount(label, minlength=classes)
    present = counts > 0
    means = np.zeros((classes, p))
    np.add.at(means, label, x)
    means[present] /= counts[present, None]
    centred = x - means[label]
    within = centred.T @ centred / n
    ridge = shrinkage * max(float(np.trace(within)) / p, _SMALLEST_WITHIN)
    coef = np.linalg.solve((1 - shrinkage) * within + ridge * np.eye(p), means.T).T
    log_prior = np.log(np.where(present, counts, 1) / n)
    return LinearDiscriminant(coef, log_prior - 0.5 * np.einsum("kp,kp->k", coef, means), present)


@dataclass(frozen=True)
class RidgeCox:
    """A proportional hazards model: coef [p] and the training mean [p] that centres the linear predictor."""

    coef: FloatArray
    centre: FloatArray

    def risk(self, x: FloatArray) -> FloatArray:
        """Linear predictor [n]; larger = earlier event."""
        return (x - self.centre) @ self.coef


def fit_cox(x: FloatArray, time: FloatArray, event: IntArray, penalty: float = COX_PENALTY) -> RidgeCox:
    """Ridge Cox: the maximiser of log partial likelihood / n - penalty/2 |beta|^2, Breslow ties, by Newton steps.

    x [n, p], time [n], event [n] 0/1; works for p > n. Without an event the coefficients are zero.
    Raises ArithmeticError if Newton does not converge (it is a concave problem: only non-finite input does that).
    """
    order = np.argsort(-time, kind="stable")
    centre = x.mean(axis=0)
    x, time, observed = x[order] - centre, time[order], np.flatnonzero(event[order] == 1)
    n, p = x.shape
    # Position of the last row still at risk at each event time: tied rows share one risk set (Breslow).
    last = np.searchsorted(-time, -time[observed], side="right") - 1
    observed_sum = x[observed].sum(axis=0)

    def objective(beta: FloatArray) -> float:
        eta = x @ beta
        top = float(eta.max())
        at_risk = np.cumsum(np.exp(eta - top))[last]
        partial = (eta[observed] - top - np.log(at_risk)).sum()
        return float(partial - 0.5 * n * penalty * (beta @ beta))

    beta = np.zeros(p)
    value = objective(beta)
    for _ in range(_NEWTON_STEPS):
        eta = x @ beta
        weight = np.exp(eta - eta.max())
        at_risk = np.cumsum(weight)[last]
        mean = np.cumsum(weight[:, None] * x, axis=0)[last] / at_risk[:, None]
        gradient = observed_sum - mean.sum(axis=0) - n * penalty * beta
        if np.abs(gradient).max() <= 1e-8 * n:
            return RidgeCox(beta, centre)
        # Row j is at risk at every event whose risk set reaches position j or beyond.
        exposure = np.cumsum(np.bincount(last, 1 / at_risk, minlength=n)[::-1])[::-1]
        hessian = (x.T * (weight * exposure)) @ x - mean.T @ mean + n * penalty * np.eye(p)
        step = np.linalg.solve(hessian, gradient)
        for _ in range(_HALVINGS):
            candidate = objective(beta + step)
            if candidate >= value - 1e-12 * abs(value):
                break
            step = step / 2
        beta, value = beta + step, candidate
    raise ArithmeticError(f"ridge Cox did not converge in {_NEWTON_STEPS} Newton steps: check the rows for huge values")


def anova_f(x: FloatArray, label: IntArray, classes: int) -> FloatArray:
    """One-way ANOVA F of every feature over the class label, [p]; classes without rows do not count.

    A feature that is constant inside every class gets a huge finite F, one that is constant altogether gets 0. NaN
    throughout when fewer than two classes have rows or no degree of freedom is left within them.
    """
    n, p = x.shape
    counts = np.bincount(label, minlength=classes)
    used = counts > 0
    degrees = int(used.sum())
    if degrees < 2 or n <= degrees:
        return np.full(p, np.nan)
    centred = x - x.mean(axis=0)
    sums = np.zeros((classes, p))
    np.add.at(sums, label, centred)
    means = sums[used] / counts[used, None]
    between = (counts[used, None] * means**2).sum(axis=0) / (degrees - 1)
    residual = centred - (sums / np.maximum(counts, 1)[:, None])[label]
    within = (residual**2).sum(axis=0) / (n - degrees)
    ratio: FloatArray = between / np.maximum(within, _SMALLEST_WITHIN)
    return ratio
