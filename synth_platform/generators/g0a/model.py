"""From noisy statistics to shifts: each measured against the public rows, shrunk towards zero, freed of clipping bias.

Everything here is post-processing: noisy sums, their known noise and public rows go in, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from synth_platform.generators.g0a.anchor import Anchor, clip_rows
from synth_platform.generators.g0a.shrinkage import shrink
from synth_platform.generators.g0a.statistics import moment_products
from synth_platform.normalize.rows import FloatArray

INVERSION_STEPS = 30
SMALLEST_SLOPE = 0.05
WIDEST_LOG_RATIO = 1.0  # prior standard deviation, at most, of a log ratio of class shares
WIDEST_MEAN = 2.0  # the same of a class mean, in standard deviations within classes
WIDEST_MOMENT = 1.0  # the same of an entry of the white covariance
EIGENVALUE_BOUNDS = (0.1, 10.0)  # of the private covariance in units of the public one


@dataclass(frozen=True, eq=False)
class Noisy:
    """A noisy sum and the standard deviation of its noise."""

    values: FloatArray
    sigma: float


@dataclass(frozen=True, eq=False)
class Prevalence:
    """share [K]: estimated class shares. counts [K]: usable noisy counts. null: weight of "as in public"."""

    share: FloatArray
    counts: FloatArray
    null: float


def fit_prevalence(anchor: Anchor, noisy: Noisy, n_ref: int) -> Prevalence:
    """Class shares from noisy counts, shrunk on the log scale.

    The counts themselves are first combined with what the design says: n_ref rows in public shares, give or take an
    average class. Where noise is larger than that, sums are divided by the design's counts and not by noise. A count
    stays above its own uncertainty: below it tells next to nothing, and what is divided by it even less.
    """
    public = anchor.counts + 0.5
    design = n_ref * public / public.sum()
    doubt = np.maximum(design, n_ref / len(design)) ** 2
    variance = 1 / (1 / noisy.sigma**2 + 1 / doubt)
    counts = np.maximum(variance * (noisy.values / noisy.sigma**2 + design / doubt), np.sqrt(variance))
    measured = np.log(counts / counts.sum()) - np.log(public / public.sum())
    measurement = variance / counts**2 + 1 / counts
    shift, null = shrink(measured[:, None], measurement[:, None], 1 / public[:, None], widest=WIDEST_LOG_RATIO**2)
    share = public * np.exp(shift[:, 0])
    return Prevalence(share / share.sum(), counts, null)


def fit_means(anchor: Anchor, noisy: Noisy, counts: FloatArray) -> tuple[FloatArray, float]:
    """Shift of the class means [K, p] and the null weight, from the sums of clipped residuals [K d]."""
    residual = anchor.residuals @ anchor.mean.project
    clip = anchor.mean.clip
    slope = clip_slope(residual, clip)
    clipped = clip_rows(residual, clip)
    n = counts[:, None]
    sums = noisy.values.reshape(anchor.classes, -1)
    measured = (sums / n - clipped.mean(axis=0)) / slope
    measurement = (noisy.sigma**2 / n**2 + clipped.var(axis=0) / n) / slope**2
    variance = residual.var(axis=0)
    public = variance / np.maximum(anchor.counts, 1)[:, None]
    widest = WIDEST_MEAN**2 * float(variance.mean())
    shift, null = shrink(measured.T, measurement.T, public.T, widest=widest)

    def moved(b: FloatArray) -> FloatArray:
        return np.asarray(clip_rows(residual + b, clip).mean(axis=0))

    origin = np.zeros(residual.shape[1])
    true = [invert(moved, origin, slope, start=b) for b in shift.T]
    return np.stack(true) @ anchor.mean.restore, null


def fit_moment(anchor: Anchor, noisy: Noisy, counts: FloatArray) -> tuple[FloatArray, float]:
    """The map [k, k] that carries public white residuals to the private covariance, and the null weight."""
    assert anchor.moment is not None
    u, clip = anchor.residuals @ anchor.moment.project, anchor.moment.clip
    k = u.shape[1]
    a, b = np.triu_indices(k)
    products = moment_products(u, clip)
    # E[psi s'] with the Gaussian score s of a covariance entry; the same as E[d psi] (Stein), on public rows.
    score = np.where(a == b, 0.5 * (u[:, a] * u[:, b] - 1), u[:, a] * u[:, b])
    slope = np.maximum(np.mean(products * score, axis=0), SMALLEST_SLOPE)
    n = float(counts.sum())
    measured = (noisy.values / n - products.mean(axis=0)) / slope
    measurement = (noisy.sigma**2 / n**2 + products.var(axis=0) / n) / slope**2
    public = np.var(u[:, a] * u[:, b], axis=0) / len(u)
    entries, null = shrink(measured[:, None], measurement[:, None], public[:, None], widest=WIDEST_MOMENT**2)

    def moved(entries: FloatArray) -> FloatArray:
        return np.asarray(moment_products(u @ _square_root(entries, k), clip).mean(axis=0))

    return _square_root(invert(moved, np.zeros(len(a)), slope, start=entries[:, 0], damping=0.5), k), null


def _square_root(entries: FloatArray, k: int) -> FloatArray:
    """Symmetric root of I + D, D given by its upper triangle, eigenvalues kept within EIGENVALUE_BOUNDS."""
    D = np.zeros((k, k))
    D[np.triu_indices(k)] = entries
    values, vectors = np.linalg.eigh(np.eye(k) + D + np.triu(D, 1).T)
    return np.asarray((vectors * np.sqrt(np.clip(values, *EIGENVALUE_BOUNDS))) @ vectors.T)


def clip_slope(rows: FloatArray, clip: float) -> FloatArray:
    """[d] derivative of the mean clipped coordinate with respect to a shift of that coordinate."""
    length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    scale = np.minimum(1.0, clip / length)
    turned = np.where(scale < 1, (rows / length) ** 2, 0.0)
    return np.asarray(np.maximum((scale * (1 - turned)).mean(axis=0), SMALLEST_SLOPE))


def invert(
    predicted: Callable[[FloatArray], FloatArray],
    origin: FloatArray,
    slope: FloatArray,
    *,
    start: FloatArray,
    damping: float = 1.0,
) -> FloatArray:
    """The shift b at which predicted(b) is what its linearisation, predicted(origin) + slope * start, says.

    Shrinkage works on the linear scale, where the noise is Gaussian; this takes the result to the scale of the model.
    """
    target = predicted(origin) + slope * start
    shift = start
    for _ in range(INVERSION_STEPS):
        shift = shift + damping * (target - predicted(shift)) / slope
    return shift
