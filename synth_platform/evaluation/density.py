"""Density estimates of encoded rows in a space of few directions that public rows alone fix (attack A3).

A density of hundreds of columns cannot be estimated from hundreds of rows. So space and bandwidth come from the public
reference: its leading principal directions, whitened, in which a kernel estimate is still one. Being public constants,
they cannot follow the table under attack; a bandwidth chosen on that table would shrink to nothing where it is copies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from synth_platform.normalize.rows import FloatArray

MOST_DIRECTIONS = 12
ROWS_PER_DIRECTION = 10
# Around Scott's bandwidth, which is right for one Gaussian and too wide for several clusters.
SCOTT_MULTIPLES = (0.35, 0.5, 0.7, 1.0, 1.4)
MOST_ASKED = 1_000
_SMALLEST_SCALE = 1e-6
_SAME_ROW = 1e-12
_BLOCK_CELLS = 4_000_000


@dataclass(frozen=True)
class PublicSpace:
    """An affine map to whitened public principal directions, and the kernel bandwidth there.

    mean [p], directions [p, d]; bandwidth in units of one public standard deviation along a direction.
    """

    mean: FloatArray
    directions: FloatArray
    bandwidth: float

    def project(self, rows: FloatArray) -> FloatArray:
        """Rows [n, p] in the space, [n, d]."""
        return (rows - self.mean) @ self.directions


def public_space(public: FloatArray) -> PublicSpace:
    """The space of public rows [n, p]: at most 12 directions and one for every ten rows, Scott's bandwidth adjusted.

    The bandwidth is the multiple of Scott's n^(-1/(d+4)) with the greatest leave-one-out likelihood of the public rows.

    Raises ValueError for rows that are all alike, which have no direction.
    """
    mean = public.mean(axis=0)
    _, scales, axes = np.linalg.svd(public - mean, full_matrices=False)
    varying = int((scales > _SMALLEST_SCALE * max(1.0, scales[0])).sum())
    count = min(MOST_DIRECTIONS, max(1, len(public) // ROWS_PER_DIRECTION), varying)
    if count == 0:
        raise ValueError("attack A3 needs public rows that differ: all rows of the public reference are alike")
    directions = axes[:count].T * (np.sqrt(len(public) - 1) / scales[:count])
    projected = (public - mean) @ directions
    scott = len(public) ** (-1.0 / (count + 4))
    candidates = [multiple * scott for multiple in SCOTT_MULTIPLES]
    best = int(np.argmax(leave_one_out_likelihoods(projected, candidates)))
    return PublicSpace(mean, directions, candidates[best])


def log_density(rows: FloatArray, sample: FloatArray, bandwidth: float) -> FloatArray:
    """Log of the Gaussian kernel density of `sample` [m, d] at `rows` [n, d], [n]: finite however far a row lies.

    log p(x) = log sum_i exp(-|x - s_i|^2 / 2h^2) - log m - (d/2) log(2 pi h^2), h = `bandwidth`, in blocks of rows.
    """
    m, d = sample.shape
    logs = np.full(len(rows), -math.log(m) - d / 2 * math.log(2 * math.pi * bandwidth**2))
    step = max(1, _BLOCK_CELLS // m)
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        logs[block] += _log_kernel_sum(cdist(rows[block], sample, "sqeuclidean"), bandwidth)
    return logs


def leave_one_out_likelihoods(rows: FloatArray, bandwidths: Sequence[float]) -> FloatArray:
    """Mean log kernel density of `rows` [n, d] under the others, for each bandwidth [b], up to a constant of n and d.

    Copies of a row are left out with it: they would speak for no bandwidth at all. Of more than 1,000 rows as many are
    asked, evenly spaced. At least two rows must differ.
    """
    n, d = rows.shape
    asked = rows[:: -(-n // MOST_ASKED)]
    step = max(1, _BLOCK_CELLS // n)
    totals = np.zeros(len(bandwidths))
    for start in range(0, len(asked), step):
        squares = cdist(asked[start : start + step], rows, "sqeuclidean")
        squares[squares <= _SAME_ROW] = np.inf
        totals += [_log_kernel_sum(squares, bandwidth).sum() for bandwidth in bandwidths]
    return np.asarray(totals / len(asked) - d * np.log(bandwidths))


def _log_kernel_sum(squares: FloatArray, bandwidth: float) -> FloatArray:
    """log sum_i exp(-squares_i / 2h^2) of each row of [n, m], [n]; the nearest term is taken out of the sum."""
    nearest = squares.min(axis=1, keepdims=True)
    scale = -2 * bandwidth**2
    kernels = np.exp((squares - nearest) / scale)
    return np.asarray(nearest[:, 0] / scale + np.log(kernels.sum(axis=1)))


def log_density_ratio(rows: FloatArray, synthetic: FloatArray, public: FloatArray) -> FloatArray:
    """log p_synthetic(x) - log p_public(x) of each of `rows` [n, p], [n] (van Breugel et al. 2023, DOMIAS).

    Raises ValueError for rows that are not finite, or public rows that are all alike.
    """
    if not all(np.isfinite(x).all() for x in (rows, synthetic, public)):
        raise ValueError("densities need finite rows: encode missing cells first")
    space = public_space(public)
    at = space.project(rows)
    under_synthetic, under_public = (
        log_density(at, space.project(sample), space.bandwidth) for sample in (synthetic, public)
    )
    return under_synthetic - under_public
