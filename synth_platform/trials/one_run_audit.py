"""The same question asked in a single run: many canaries, each in with probability 1/2, guessed from one answer.

A canary is one row here. So many rows in one run can refute a leak without end, and only a group's worth of runs, as in
`mechanism_audit`, a leak of the order of what is claimed: this is the second estimate, by another theorem.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from synth_platform.evaluation.one_run import Included, one_run_epsilon, one_run_mu
from synth_platform.normalize.rows import FloatArray, IntArray

GUESSED = (
    0.75  # share of the canaries that are guessed about: both halves then hold as many even if coins fall unevenly
)
INDEPENDENT = 0.5  # share of a canary's shift that others before it must leave unexplained


@dataclass(frozen=True, eq=False)
class OneRun:
    """scores, included [m]; guesses: numbers of ("in", "out") guesses tried. mu, epsilon: lower bounds."""

    scores: FloatArray
    included: Included
    guesses: tuple[tuple[int, int], ...]
    mu: float
    epsilon: float


def independent_rows(shifts: FloatArray) -> IntArray:
    """Positions of rows whose shifts [C, d] point in nearly orthogonal directions: a pivoted QR factorisation."""
    length = np.linalg.norm(shifts, axis=1, keepdims=True)
    _, triangle, order = qr((shifts / np.where(length > 0, length, 1.0)).T, mode="economic", pivoting=True)
    return np.asarray(order[: int(np.sum(np.abs(np.diag(triangle)) >= INDEPENDENT))], dtype=np.int64)


def coin_flips(count: int) -> Included:
    """`count` fair coins from the operating system."""
    return np.array([secrets.randbits(1) for _ in range(count)], dtype=np.bool_)


def judge_run(
    released: FloatArray,
    shifts: FloatArray,
    precision: FloatArray,
    included: Included,
    *,
    delta: float,
    confidence: float,
) -> OneRun:
    """Bounds from one run's numbers [d] around those of a run without canaries.

    shifts [m, d]: what each canary adds; included [m]: which were in. A score is the log likelihood ratio of in and out
    by the generalised least-squares coefficient, with the inverse covariance `precision` [d, d], so that neither other
    canaries nor shared noise disturb. Both bounds share the error.
    """
    weighted = precision @ shifts.T
    covariance = np.linalg.pinv(shifts @ weighted, hermitian=True)
    coefficients = covariance @ (released @ weighted)
    scores = np.round((coefficients - 0.5) / np.maximum(np.diag(covariance), np.finfo(np.float64).tiny), 6)
    half = max(1, int(GUESSED * len(scores)) // 2)
    guesses = ((half, half),)
    each = 1 - (1 - confidence) / 2
    mu = one_run_mu(scores, included, guesses=guesses, confidence=each)
    epsilon = one_run_epsilon(scores, included, guesses=guesses, delta=delta, confidence=each)
    return OneRun(scores, included, guesses, mu, epsilon)
