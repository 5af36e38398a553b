"""The public latent basis of 8-1 §2.2: which directions private rows are looked at in, and on what scale."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from synth_platform.normalize.rows import EncodedRows, FloatArray

# Constants are kept to this many decimals: two machines whose linear algebra differs in the last bits must arrive at
# the same constants and the same digest, or a replayed query would count as a new one and cost budget again.
DECIMALS = 6


@dataclass(frozen=True, eq=False)
class PublicBasis:
    """Constants of the latent map, from public rows alone.

    mean:           [p] public mean m.
    directions:     [p, k] leading eigenvectors W of the public covariance, signs fixed.
    eigenvalues:    [k] their eigenvalues Lambda, > 0, descending.
    residual_sd:    [p] standard deviation of what W does not explain.
    log_time_mean, log_time_sd: public moments of log follow-up time.
    smallest_time:  smallest positive public time; stands in for a time of zero, whose logarithm is not finite.
    """

    mean: FloatArray
    directions: FloatArray
    eigenvalues: FloatArray
    residual_sd: FloatArray
    log_time_mean: float
    log_time_sd: float
    smallest_time: float

    @property
    def size(self) -> int:
        """Length k + 1 of a latent vector: k directions and the standardised log time."""
        return int(self.eigenvalues.shape[0]) + 1

    def latent(self, rows: EncodedRows) -> FloatArray:
        """[n, k + 1] whitened coordinates and standardised log time (8-1 §2.2), not yet clipped."""
        scores = (rows.x - self.mean) @ (self.directions / np.sqrt(self.eigenvalues))
        time = np.where(rows.time > 0, rows.time, self.smallest_time)
        tau = (np.log(time) - self.log_time_mean) / self.log_time_sd
        return np.column_stack([scores, tau])

    def digest(self) -> str:
        """SHA-256 of every constant, for the parameters of a query."""
        scalars = np.array([self.log_time_mean, self.log_time_sd, self.smallest_time])
        digest = hashlib.sha256()
        for part in (self.mean, self.directions, self.eigenvalues, self.residual_sd, scalars):
            # Adding 0.0 turns -0.0 into 0.0; the byte order is part of the digest.
            digest.update(repr(part.shape).encode() + (part + 0.0).astype("<f8").tobytes())
        return digest.hexdigest()


def fit_basis(public: EncodedRows, latent: int) -> PublicBasis:
    """Fit the basis of `latent` directions on public rows.

    Raises ValueError when the public rows do not span that many directions or carry no spread in time.
    """
    n, p = public.x.shape
    if n < 2:
        raise ValueError(f"{n} public row(s): at least two are needed to fit the latent basis")
    mean = public.x.mean(axis=0)
    centred = public.x - mean
    # The eigenvectors of the covariance, without forming a p x p matrix: p may be far larger than n.
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    values = singular**2 / (n - 1)
    rank = int(np.sum(values > 10.0**-DECIMALS))
    if latent > rank:
        raise ValueError(f"latent = {latent}, but the {n} public rows span only {rank} of {p} directions: lower latent")
    eigenvalues, directions = values[:latent], axes[:latent].T
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(latent)])
    unexplained = (centred**2).sum(axis=0) / (n - 1) - directions**2 @ eigenvalues
    positive = public.time[public.time > 0]
    if positive.size == 0 or np.ptp(positive) == 0:
        raise ValueError("public rows carry no spread in follow-up time, so log time cannot be standardised")
    log_time = np.log(np.where(public.time > 0, public.time, positive.min()))
    return PublicBasis(
        mean=mean.round(DECIMALS),
        directions=directions.round(DECIMALS),
        eigenvalues=eigenvalues.round(DECIMALS),
        residual_sd=np.sqrt(np.maximum(unexplained, 0.0)).round(DECIMALS),
        log_time_mean=round(float(log_time.mean()), DECIMALS),
        log_time_sd=round(float(log_time.std(ddof=1)), DECIMALS),
        smallest_time=float(positive.min()),
    )
