"""Empirical-Bayes shrinkage of noisy shifts towards zero, that is of noisy statistics towards their public values.

A shift vector b_j in R^K (one entry a class, or K = 1) is measured as y_j ~ N(b_j, S_j) with known S_j. Its prior is a
scale mixture of Gaussians over covariance structures shared by all j, fitted by EM on the marginal likelihood (adaptive
shrinkage: Stephens 2017; several responses: Urbut et al. 2019). The null component says "public and private agree": it
carries only the known sampling covariance P_j of the public value. So with S_j large the posterior mean is 0, the
public value, and with S_j -> 0 it is y_j. No component is wider than a public bound, so noise beyond it is never
taken for a shift.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

FloatArray = NDArray[np.float64]

EM_STEPS = 300
EM_TOLERANCE = 1e-6
SMALLEST_SCALE = 1 / 16  # of the smallest measurement variance
PARAMETERS = 2.0  # of a fitted prior, for the criterion: how many coordinates move, and how far
STEP = 2.0  # ratio between neighbouring prior variances


def structures(responses: int) -> FloatArray:
    """[m, K, K] covariance structures of a shift: the same in all K responses, independent ones, contrasts only."""
    identity = np.eye(responses)
    if responses == 1:
        return identity[None]
    shared = np.full((responses, responses), 1 / responses)
    return np.stack([shared * responses, identity, identity - shared])


def shrink(
    measured: FloatArray, measurement: FloatArray, public: FloatArray, *, widest: float
) -> tuple[FloatArray, float]:
    """Posterior mean of every shift, and the posterior weight of "public and private agree".

    measured [J, K]; measurement, public [J, K]: the variances diag(S_j), diag(P_j) (S_j > 0). widest > 0: largest prior
    variance of a shift. The fitted prior is averaged with the null one by their Bayes information criteria: fitting a
    prior to noise finds some shift, and only a likelihood that pays for the fit may move the public value.
    """
    J, K = measured.shape
    if J == 0:
        return measured.copy(), 1.0
    smallest = min(SMALLEST_SCALE * float(measurement.min()), widest)
    largest = min(max(2 * float(np.max(measured**2)), smallest), widest)
    scales = np.geomspace(smallest, largest, 2 + int(np.log(largest / smallest) / np.log(STEP)))
    shapes = (scales[:, None, None, None] * structures(K)).reshape(-1, K, K)
    prior = np.concatenate([np.zeros((1, K, K)), shapes])[:, None] + _diagonal(public)[None]  # [C, J, K, K]
    marginal = prior + _diagonal(measurement)[None]
    solved = np.linalg.solve(marginal, np.broadcast_to(measured[None, :, :, None], (*marginal.shape[:3], 1)))[..., 0]
    log_likelihood = -0.5 * (np.sum(solved * measured, axis=2) + np.linalg.slogdet(marginal)[1])  # [C, J]
    weight, responsibility, fitted = _mixture(log_likelihood)
    belief = expit(fitted - float(log_likelihood[0].sum()) - PARAMETERS / 2 * np.log(measured.size))
    responsibility = belief * responsibility
    responsibility[0] += 1 - belief
    posterior = np.einsum("cj,cjkl,cjl->jk", responsibility, prior, solved)
    return posterior, float(1 - belief * (1 - weight[0]))


def _mixture(log_likelihood: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """EM for the weights of known components [C, J]: weights, responsibilities and the log-likelihood."""
    top = log_likelihood.max(axis=0)
    likelihood = np.exp(log_likelihood - top)
    weight = np.full(len(log_likelihood), 1 / len(log_likelihood))
    for _ in range(EM_STEPS):
        joint = weight[:, None] * likelihood
        updated = np.mean(joint / joint.sum(axis=0), axis=1)
        converged = np.abs(updated - weight).max() < EM_TOLERANCE
        weight = updated
        if converged:
            break
    joint = weight[:, None] * likelihood
    total = joint.sum(axis=0)
    return weight, joint / total, float(np.sum(np.log(total) + top))


def _diagonal(entries: FloatArray) -> FloatArray:
    return entries[:, :, None] * np.eye(entries.shape[1])
