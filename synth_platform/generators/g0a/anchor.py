"""Everything G0A knows before private rows are read: the public constants its statistics are centred and scaled by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from synth_platform.contract.options import G0AOptions
from synth_platform.generators.g0a.survival import (
    LARGEST_ETA,
    Cox,
    CumulativeHazard,
    fit_cox,
    fit_cumulative_hazard,
)
from synth_platform.normalize.rows import EncodedRows, FloatArray, IntArray

# Constants are kept to this many decimals, so that machines whose linear algebra differs in the last bits arrive at
# the same query, and a replay is recognised as one.
DECIMALS = 6
SMALLEST_EIGENVALUE = 1e-6  # relative to the largest; below it a direction counts as empty
NO_VARIATION = 1e-10  # a variance, in standardised units: what rounding the means leaves of constant rows
HALF_WHITE, WHITE = 0.25, 0.5
RIDGES = tuple(4.0**k for k in range(8))


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Linear coordinates of centred rows on leading principal directions, and the clip norm of a row in them.

    project [p, d] = V diag(lambda^-power); restore [d, p] its inverse on the span; clip: largest norm of a row.
    """

    project: FloatArray
    restore: FloatArray
    clip: float

    def clipped(self, centred: FloatArray) -> FloatArray:
        """[n, d] coordinates of centred rows [n, p], each row scaled to norm <= clip."""
        return clip_rows(centred @ self.project, self.clip)


def clip_rows(rows: FloatArray, norm: float) -> FloatArray:
    """Each row scaled to L2 norm <= norm."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, norm / np.maximum(length, np.finfo(np.float64).tiny)))


def fit_coordinates(centred: FloatArray, *, directions: int, power: float, quantile: float) -> Coordinates:
    """Principal coordinates of centred public rows [n, p], scaled by lambda^-power; clip at a quantile of their norm.

    Power 1/4 (half-whitening) is the metric in which a mean released with isotropic noise has the least total squared
    error in the features: it minimises tr(A Sigma) tr(A^-1) over metrics A. Power 1/2 whitens.
    """
    values, vectors = shrunk_principal(centred)
    values, vectors = values[:directions], vectors[:, :directions]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.where(vectors[largest, np.arange(len(values))] < 0, -1.0, 1.0)
    project = (vectors * values**-power).round(DECIMALS)
    norms = np.linalg.norm(centred @ project, axis=1)
    return Coordinates(
        project=project,
        restore=(vectors * values**power).T.round(DECIMALS),
        clip=max(round(float(np.quantile(norms, quantile)), DECIMALS), 10.0**-DECIMALS),
    )


def shrunk_principal(centred: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues [r], descending, and eigenvectors [p, r] of the Ledoit-Wolf (2004) covariance of centred rows [n, p].

    r is the rank of the rows: outside their span that covariance is a multiple of the identity. No p x p matrix is
    made. Raises ValueError when the rows do not vary at all.
    """
    n, p = centred.shape
    _, singular, transposed = np.linalg.svd(centred, full_matrices=False)
    sample = singular**2 / n
    rank = int(np.sum(sample > max(SMALLEST_EIGENVALUE * sample.max(initial=0.0), NO_VARIATION)))
    if rank == 0:
        raise ValueError(f"{n} public row(s) without variation around their means: nothing to anchor a generator to")
    level = float(sample.sum()) / p
    squares = float(np.sum(sample**2))
    distance = squares - p * level**2
    error = max(float(np.mean(np.sum(centred**2, axis=1) ** 2)) - squares, 0.0) / n
    weight = min(error / distance, 1.0) if distance > 0 else 1.0
    return (1 - weight) * sample[:rank] + weight * level, transposed[:rank].T


@dataclass(frozen=True, eq=False)
class Anchor:
    """Public constants of K classes and p features.

    rows: the public rows. counts [K], means [K, p]: of the public classes (the grand mean for a class without a row).
    mean: coordinates of residuals around them. centre [p], hazard: coordinates of the hazard model around the public
    mean. moment: coordinates of the second moment, or None. cox, baseline, censoring: the public survival model;
    longest: longest public follow-up.
    """

    rows: EncodedRows
    counts: IntArray
    means: FloatArray
    mean: Coordinates
    centre: FloatArray
    hazard: Coordinates
    moment: Coordinates | None
    cox: Cox
    baseline: CumulativeHazard
    censoring: CumulativeHazard
    longest: float

    @property
    def classes(self) -> int:
        """K."""
        return len(self.counts)

    @property
    def residuals(self) -> FloatArray:
        """[n, p] public rows around the mean of their class."""
        return np.asarray(self.rows.x - self.means[self.rows.label])

    def digest(self) -> str:
        """SHA-256 of every constant that a contribution depends on, for the parameters of a query."""
        digest = hashlib.sha256()
        moment = [] if self.moment is None else [self.moment.project, np.array([self.moment.clip])]
        constants = [
            *(self.means, self.mean.project, np.array([self.mean.clip]), *moment),
            *(self.centre, self.hazard.project, np.array([self.hazard.clip]), self.cox.beta),
            *(self.baseline.times, self.baseline.values, self.censoring.times, self.censoring.values),
        ]
        for part in constants:
            digest.update(repr(part.shape).encode() + (part + 0.0).astype("<f8").tobytes())
        return digest.hexdigest()


def relative_risk(h: FloatArray, beta: FloatArray) -> FloatArray:
    """[n] exp(h' beta), kept finite."""
    return np.asarray(np.exp(np.clip(h @ beta, -LARGEST_ETA, LARGEST_ETA)))


def fit_anchor(rows: EncodedRows, classes: int, options: G0AOptions) -> Anchor:
    """Every constant, from public rows alone. Raises ValueError when these do not vary."""
    centre = rows.x.mean(axis=0).round(DECIMALS)
    counts = np.bincount(rows.label, minlength=classes).astype(np.int64)
    means = [rows.x[rows.label == c].mean(axis=0).round(DECIMALS) if counts[c] else centre for c in range(classes)]
    within = rows.x - np.stack(means)[rows.label]
    quantile = options.clip_quantile
    hazard = fit_coordinates(rows.x - centre, directions=options.hazard_directions, power=HALF_WHITE, quantile=quantile)
    h = (rows.x - centre) @ hazard.project
    cox = fit_cox(h, rows.time, rows.event, RIDGES).rounded(DECIMALS)
    return Anchor(
        rows=rows,
        counts=counts,
        means=np.stack(means),
        mean=fit_coordinates(within, directions=options.mean_directions, power=HALF_WHITE, quantile=quantile),
        centre=centre,
        hazard=hazard,
        moment=fit_coordinates(within, directions=options.moment_directions, power=WHITE, quantile=quantile)
        if options.moment_directions
        else None,
        cox=cox,
        baseline=fit_cumulative_hazard(rows.time, rows.event, relative_risk(h, cox.beta)).rounded(DECIMALS),
        censoring=fit_cumulative_hazard(rows.time, 1 - rows.event, np.ones(len(rows))).rounded(DECIMALS),
        longest=float(rows.time.max()),
    )
