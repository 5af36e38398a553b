"""From three noisy statistics to the G0 model (8-1 §2.2): costs nothing, because nothing private comes in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth_platform.normalize.rows import FloatArray


@dataclass(frozen=True)
class LatentModel:
    """Conditional factor Gaussian at the reference condition gamma = 0.

    means: [C, d] additive cell means mu_c. effects: [B, d] batch effects gamma_b. covariance: [d, d] within cells.
    weights: [C] sampling probabilities. usable: [C, B] combinations whose noisy count reached the floor.
    fallback: True when none did and the public prior (mean 0, covariance I, uniform weights) stands in.
    """

    means: FloatArray
    effects: FloatArray
    covariance: FloatArray
    weights: FloatArray
    usable: NDArray[np.bool_]
    fallback: bool


def fit_latent_model(
    counts: FloatArray,
    sums: FloatArray,
    moment: FloatArray,
    *,
    eigenvalue_bounds: tuple[float, float],
    count_floor: float,
) -> LatentModel:
    """Fit the model to noisy counts [C, B], sums [C, B, d] and the upper triangle [d (d + 1) / 2] of the moment."""
    cells, groups, d = sums.shape
    usable = counts >= count_floor
    if not usable.any():
        return LatentModel(
            means=np.zeros((cells, d)),
            effects=np.zeros((groups, d)),
            covariance=np.eye(d),
            weights=np.full(cells, 1.0 / cells),
            usable=usable,
            fallback=True,
        )
    n = np.where(usable, counts, 0.0)
    cell_means = np.where(usable[:, :, None], sums, 0.0) / np.where(usable, counts, 1.0)[:, :, None]
    means, effects = fit_additive(cell_means, n)
    between = np.einsum("cb,cbi,cbj->ij", n, cell_means, cell_means)
    degrees = max(float(n.sum()) - int(usable.sum()), 1.0)
    return LatentModel(
        means=means,
        effects=effects,
        covariance=clip_eigenvalues((from_upper_triangle(moment, d) - between) / degrees, eigenvalue_bounds),
        weights=n.sum(axis=1) / n.sum(),
        usable=usable,
        fallback=False,
    )


def fit_additive(
    cell_means: FloatArray, weights: FloatArray, *, tolerance: float = 1e-10, sweeps: int = 10_000
) -> tuple[FloatArray, FloatArray]:
    """Weighted least squares of cell_means [C, B, d] ~ mu_c + gamma_b by backfitting, with sum_b n_b gamma_b = 0.

    weights [C, B] >= 0; a cell or group without weight gets 0. Returns (mu [C, d], gamma [B, d]).
    """
    cell_total = weights.sum(axis=1)
    group_total = weights.sum(axis=0)
    cell_share = weights / np.where(cell_total > 0, cell_total, 1.0)[:, None]
    group_share = weights / np.where(group_total > 0, group_total, 1.0)[None, :]
    means = np.zeros((cell_means.shape[0], cell_means.shape[2]))
    # Started from 0, every sweep keeps sum_b n_b gamma_b = 0, so the constraint needs no step of its own.
    effects = np.zeros((cell_means.shape[1], cell_means.shape[2]))
    for _ in range(sweeps):
        before = means
        means = np.einsum("cb,cbd->cd", cell_share, cell_means - effects[None, :, :])
        effects = np.einsum("cb,cbd->bd", group_share, cell_means - means[:, None, :])
        if np.abs(means - before).max(initial=0.0) <= tolerance * max(1.0, float(np.abs(means).max(initial=0.0))):
            break
    return means, effects


def clip_eigenvalues(matrix: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """The symmetric matrix with its eigenvalues moved into `bounds`, so that it is positive definite."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    clipped: FloatArray = (vectors * np.clip(values, *bounds)) @ vectors.T
    return clipped


def from_upper_triangle(values: FloatArray, d: int) -> FloatArray:
    """[d (d + 1) / 2] upper triangle, row by row -> symmetric [d, d]."""
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = values
    return matrix + np.triu(matrix, 1).T
