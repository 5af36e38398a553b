"""Empirical-Bayes shrinkage of noisy shifts towards zero, that is of noisy statistics towards their public values.

A shift vector b_j in R^K (one entry a class, or K = 1) is measured as y_j ~ N(b_j, S_j) with known S_j. Its prior is a
scale mixture of Gaussians over covariance structures shared by all j, fitted by EM on the marginal likelihood (adaptive
shrinkage: Stephens 2017; several responses: Urbut et al. 2019). The null component says "public and private agree": it
carries only the known sampling covariance P_j of the public value. So with S_j large the posterior mean is 0, the
public value, and with S_j -> 0 it is y_j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

EM_STEPS = 300
EM_TOLERANCE = 1e-6
SMALLEST_SCALE = 1 / 16  # of the smallest measurement variance
STEP = 2.0  # ratio between neighbouring prior variances


def structures(responses: int) -> FloatArray:
    """[m, K, K] covariance structures of a shift: the same in all K responses, independent ones, contrasts only."""
    identity = np.eye(responses)
    if responses == 1:
        return identity[None]
    shared = np.full((responses, responses), 1 / responses)
    return np.stack([shared * responses, identity, identity - shared])


def shrink(
    measured: FloatArray, measurement: FloatArray, public: FloatArray, *, null_weight: float
) -> tuple[FloatArray, float]:
    """Posterior mean of every shift, and the fitted weight of the null component.

    measured [J, K]; measurement, public [J, K]: the variances diag(S_j), diag(P_j) (S_j > 0). null_weight >= 0:
    pseudo-count of null shifts (the penalty of Stephens 2017), so that a few noisy coordinates do not argue it away.
    """
    J, K = measured.shape
    if J == 0:
        return measured.copy(), 1.0
    largest = max(2 * float(np.max(measured**2)), float(measurement.max()))
    smallest = SMALLEST_SCALE * float(measurement.min())
    scales = smallest * STEP ** np.arange(1 + int(np.ceil(np.log(largest / smallest) / np.log(STEP))))
    shapes = (scales[:, None, None, None] * structures(K)).reshape(-1, K, K)
    prior = np.concatenate([np.zeros((1, K, K)), shapes])[:, None] + _diagonal(public)[None]  # [C, J, K, K]
    marginal = prior + _diagonal(measurement)[None]
    solved = np.linalg.solve(marginal, np.broadcast_to(measured[None, :, :, None], (*marginal.shape[:3], 1)))[..., 0]
    log_likelihood = -0.5 * (np.sum(solved * measured, axis=2) + np.linalg.slogdet(marginal)[1])  # [C, J]
    weight, responsibility = _mixture(log_likelihood, null_weight)
    posterior = np.einsum("cj,cjkl,cjl->jk", responsibility, prior, solved)
    return posterior, float(weight[0])


def _mixture(log_likelihood: FloatArray, null_weight: float) -> tuple[FloatArray, FloatArray]:
    """EM for the weights of known components [C, J]; component 0 has `null_weight` extra counts."""
    components, J = log_likelihood.shape
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=0))
    weight = np.full(components, 1 / components)
    extra = np.zeros(components)
    extra[0] = null_weight
    for _ in range(EM_STEPS):
        joint = weight[:, None] * likelihood
        responsibility = joint / joint.sum(axis=0)
        updated = (responsibility.sum(axis=1) + extra) / (J + null_weight)
        converged = np.abs(updated - weight).max() < EM_TOLERANCE
        weight = updated
        if converged:
            break
    joint = weight[:, None] * likelihood
    return weight, joint / joint.sum(axis=0)


def _diagonal(entries: FloatArray) -> FloatArray:
    return entries[:, :, None] * np.eye(entries.shape[1])
