"""L2(a): empirical-Bayes location and scale correction of batches, for the real arm and the public rows (8-1 §1.2).

Its parameters are statistics over rows. Fitted on private rows they may only serve evaluation in the restricted zone;
fitted on public rows they are public constants, and `apply_frozen` is then a within-row map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth_platform.normalize.rows import EncodedRows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FROZEN, ALIGNED, SKIPPED, UNDECLARED = "frozen", "aligned", "skipped", "undeclared"
UNDECLARED_BATCH = -1
_TOLERANCE = 1e-8
_NO_VARIATION = 1e-8
_MOST_ROUNDS = 10_000


@dataclass(frozen=True, eq=False)
class BatchCorrection:
    """Frozen parameters of a fit on q features, K labels and B batches.

    features: names of the corrected columns. mean α̂ [q], scale σ̂ [q] and label_effects β̂ [K, q] define z; K = 0 unless
    labels were preserved, and a label the fit did not see has no effect. plain_mean and plain_scale [q] are fitted
    without labels: what unseen batches go to. location γ* and spread δ* are [B, q], for the codes in `batches`.
    skipped: codes seen in fewer than minimum_batch rows.
    """

    features: tuple[str, ...]
    minimum_batch: int
    mean: FloatArray
    scale: FloatArray
    label_effects: FloatArray
    plain_mean: FloatArray
    plain_scale: FloatArray
    batches: tuple[int, ...]
    location: FloatArray
    spread: FloatArray
    skipped: tuple[int, ...] = ()

    def apply(self, rows: EncodedRows) -> EncodedRows:
        """Mode A for batches of the fit, mode B for the others, from all rows of the batch in `rows` and no label.

        A batch below minimum_batch and rows of undeclared batches stay as they are; `modes` says which.
        """
        corrected = self.apply_frozen(rows)
        at = self._positions(rows)
        modes = self.modes(rows)
        for code in np.unique(rows.batch[modes == ALIGNED]):
            members = np.flatnonzero(rows.batch == code)
            values = rows.x[np.ix_(members, at)]
            z = (values - self.plain_mean) / self.plain_scale
            location, spread = shrink(z)
            corrected.x[np.ix_(members, at)] = self.plain_scale * (z - location) / spread + self.plain_mean
        return corrected

    def apply_frozen(self, rows: EncodedRows) -> EncodedRows:
        """Mode A alone: each row of a batch of the fit by the frozen (γ*, δ*), every other row unchanged."""
        at = self._positions(rows)
        x = rows.x.copy()
        for b, code in enumerate(self.batches):
            members = np.flatnonzero(rows.batch == code)
            values = x[np.ix_(members, at)]
            centre = self.mean + _label_shift(self.label_effects, rows.label[members])
            adjusted = (values - centre - self.scale * self.location[b]) / self.spread[b] + centre
            x[np.ix_(members, at)] = adjusted
        return replace(rows, x=x)

    def modes(self, rows: EncodedRows) -> NDArray[np.str_]:
        """[n] what `apply` does to each row: "frozen" (A), "aligned" (B), "skipped" (too few), "undeclared" (-1)."""
        codes, position, sizes = np.unique(rows.batch, return_inverse=True, return_counts=True)
        mode = np.where((sizes >= self.minimum_batch) & (len(self.features) > 0), ALIGNED, SKIPPED).astype("<U10")
        mode[np.isin(codes, self.batches)] = FROZEN
        mode[codes == UNDECLARED_BATCH] = UNDECLARED
        return mode[position]

    def to_document(self) -> dict[str, object]:
        """JSON values that `from_document` restores exactly."""
        arrays = ("mean", "scale", "label_effects", "plain_mean", "plain_scale", "location", "spread")
        return {
            "features": list(self.features),
            "minimum_batch": self.minimum_batch,
            "batches": list(self.batches),
            "skipped": list(self.skipped),
            "labels": int(self.label_effects.shape[0]),
            **{name: getattr(self, name).tolist() for name in arrays},
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> BatchCorrection:
        """The correction that `to_document` described."""
        q, b, k = len(document["features"]), len(document["batches"]), document["labels"]
        shapes: dict[str, tuple[int, ...]] = {"mean": (q,), "scale": (q,), "plain_mean": (q,), "plain_scale": (q,)}
        shapes |= {"label_effects": (k, q), "location": (b, q), "spread": (b, q)}
        return cls(
            features=tuple(document["features"]),
            minimum_batch=document["minimum_batch"],
            batches=tuple(document["batches"]),
            skipped=tuple(document["skipped"]),
            **{name: np.asarray(document[name], dtype=np.float64).reshape(shape) for name, shape in shapes.items()},
        )

    def _positions(self, rows: EncodedRows) -> IntArray:
        if rows.features[: len(self.features)] == self.features:
            return np.arange(len(self.features), dtype=np.int64)
        where = {name: i for i, name in enumerate(rows.features)}
        if not where.keys() >= set(self.features):
            raise ValueError("the rows lack a feature that the batch correction was fitted on")
        return np.array([where[name] for name in self.features], dtype=np.int64)


def fit_batch(
    rows: EncodedRows, *, columns: IntArray, minimum_batch: int, preserve_labels: bool = False
) -> BatchCorrection:
    """Fit on the training rows (or the public ones); `columns` are the positions of the omics features.

    Location and scale of z are estimated in every declared batch of at least minimum_batch rows, with the label as
    covariate X if preserve_labels. A feature without variation inside the batches stays as it is, and so does every row
    if no batch is large enough. Raises ValueError for a minimum below 2, a single varying feature (the prior is taken
    across features) or labels confounded with batches.
    """
    if minimum_batch < 2:
        raise ValueError(f"minimum_batch is {minimum_batch}; a variance within a batch needs at least 2 rows")
    codes, sizes = np.unique(rows.batch[rows.batch != UNDECLARED_BATCH], return_counts=True)
    usable = codes[sizes >= minimum_batch]
    fitted = rows.take(np.isin(rows.batch, usable))
    x = fitted.x[:, columns]
    plain = _least_squares(x, fitted.batch, np.zeros_like(fitted.label), "the batches")
    full = _least_squares(x, fitted.batch, fitted.label, "batches and labels") if preserve_labels else plain
    varies = np.minimum(plain.scale, full.scale) > _NO_VARIATION
    if varies.sum() == 1:
        raise ValueError("batch correction needs at least two features that vary: its prior is taken across features")
    features = tuple(rows.features[j] for j in columns[varies])
    plain, full = plain.take(varies), full.take(varies)
    z = (x[:, varies] - full.mean - _label_shift(full.effects, fitted.label)) / full.scale
    parts = [shrink(z[fitted.batch == code]) for code in usable]
    shape = (len(parts), len(features))
    return BatchCorrection(
        features=features,
        minimum_batch=minimum_batch,
        mean=full.mean,
        scale=full.scale,
        label_effects=full.effects if preserve_labels else full.effects[:0],
        plain_mean=plain.mean,
        plain_scale=plain.scale,
        batches=tuple(int(code) for code in usable),
        location=np.array([location for location, _ in parts]).reshape(shape),
        spread=np.array([spread for _, spread in parts]).reshape(shape),
        skipped=tuple(int(code) for code in codes[sizes < minimum_batch]),
    )


def shrink(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(γ* [q], δ* [q]) of one batch z [n, q]: empirical Bayes across features, iterated to convergence (8-1 §1.2).

    γ_j ~ N(γ̄, τ²) and δ²_j ~ IG(λ, θ) by moments of the estimates. Where all variances agree the prior is a point and
    δ*² is their mean; a batch without any variation is only shifted (δ* = 1).
    """
    n = z.shape[0]
    estimate, variance = z.mean(axis=0), z.var(axis=0, ddof=1)
    if estimate.size == 0:
        return estimate, variance
    prior_mean, prior_variance = estimate.mean(), estimate.var(ddof=1)
    level, dispersion = variance.mean(), variance.var(ddof=1)
    if level <= _NO_VARIATION**2:
        return estimate, np.ones_like(variance)
    if dispersion <= _NO_VARIATION**2 * level**2:
        return _location(n, estimate, prior_mean, prior_variance, level), np.full_like(variance, np.sqrt(level))
    shape = level**2 / dispersion + 2
    rate = level * (shape - 1)
    squares = (n - 1) * variance
    for _ in range(_MOST_ROUNDS):
        location = _location(n, estimate, prior_mean, prior_variance, variance)
        updated = (rate + (squares + n * (estimate - location) ** 2) / 2) / (n / 2 + shape - 1)
        change = np.max(np.abs(updated - variance) / updated)
        variance = updated
        if change < _TOLERANCE:
            return _location(n, estimate, prior_mean, prior_variance, variance), np.sqrt(variance)
    raise ArithmeticError(f"the empirical-Bayes iteration did not converge in {_MOST_ROUNDS} rounds")


def variance_ratio(values: FloatArray, groups: IntArray) -> float:
    """η²: between-group over total sum of squares of each column of [n, p], averaged over columns that vary."""
    centred = values - values.mean(axis=0)
    total = (centred**2).sum(axis=0)
    between = np.zeros_like(total)
    for group in np.unique(groups):
        members = centred[groups == group]
        between += members.shape[0] * members.mean(axis=0) ** 2
    varies = total > _NO_VARIATION**2
    return float(np.mean(between[varies] / total[varies]))


def batch_variance_ratio(rows: EncodedRows, columns: IntArray) -> float:
    """η² of the batches over the given columns (8-1 §1.2); a private figure when the rows are private."""
    return variance_ratio(rows.x[:, columns], rows.batch)


@dataclass(frozen=True, eq=False)
class _Fit:
    mean: FloatArray
    scale: FloatArray
    effects: FloatArray

    def take(self, features: NDArray[np.bool_]) -> _Fit:
        return _Fit(self.mean[features], self.scale[features], self.effects[:, features])


def _least_squares(x: FloatArray, batch: IntArray, label: IntArray, terms: str) -> _Fit:
    """x ~ batch + label: the average over rows (α̂), residual deviation (σ̂, divisor n) and centred label effects (β̂)."""
    if x.shape[0] == 0:
        return _Fit(np.zeros(x.shape[1]), np.zeros(x.shape[1]), np.zeros((0, x.shape[1])))
    seen = np.unique(label)
    members = (batch[:, None] == np.unique(batch)).astype(np.float64)
    classes = (label[:, None] == seen[1:]).astype(np.float64)
    design = np.column_stack([members, classes])
    coefficients, _, rank, _ = np.linalg.lstsq(design, x, rcond=None)
    if rank < design.shape[1]:
        raise ValueError(f"{terms} are confounded: no effect of one can be told from the other; do not preserve labels")
    effects = np.zeros((int(seen[-1]) + 1, x.shape[1]))
    effects[seen[1:]] = coefficients[members.shape[1] :]
    share = np.bincount(label, minlength=effects.shape[0]) / label.size
    effects[seen] -= share @ effects
    scale = np.sqrt(((x - design @ coefficients) ** 2).mean(axis=0))
    return _Fit(x.mean(axis=0), scale, effects)


def _label_shift(effects: FloatArray, label: IntArray) -> FloatArray:
    shift = np.zeros((label.size, effects.shape[1]))
    known = label < effects.shape[0]
    shift[known] = effects[label[known]]
    return shift


def _location(
    n: int, estimate: FloatArray, prior_mean: float, prior_variance: float, variance: FloatArray | float
) -> FloatArray:
    """γ*_j = (n τ² γ̂_j + δ²_j γ̄) / (n τ² + δ²_j); the estimate itself where both variances vanish."""
    total = n * prior_variance + variance
    weight = np.divide(n * prior_variance, total, out=np.ones_like(estimate), where=total > 0)
    return np.asarray(weight * estimate + (1 - weight) * prior_mean)
