"""Logistic regression by maximum likelihood, by iteratively reweighted least squares, with Fisher's standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import expit

from synth_platform.margins.domain import Codes

Floats = NDArray[np.float64]
MOST_STEPS = 50
TOLERANCE = 1e-9  # change of the deviance for each row at which the steps end
SMALLEST_REST = 1e-9  # share of a column's square that earlier columns leave, below which they determine it
BLOCK = 64  # columns that are swept before the others follow
SMALLEST_WEIGHT = 1e-10  # keeps the information regular where a propensity goes to nought or one


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A fit with p columns. coefficients [p] in log odds, covariance [p, p], probabilities [rows]."""

    coefficients: Floats
    covariance: Floats
    probabilities: Floats

    @property
    def standard_errors(self) -> Floats:
        """Square roots of the inverse Fisher information's diagonal, [p]."""
        return np.sqrt(np.diag(self.covariance))


def indicators(codes: Codes, widths: tuple[int, ...]) -> sparse.csr_array:
    """An intercept, then a 0/1 column for each category after the first of each variable, [rows, 1 + Σ(width − 1)]."""
    rows = np.arange(len(codes))
    offsets = np.cumsum([0, *widths[:-1]])
    columns = np.concatenate(
        [[0], *(offset + np.arange(1, width) for offset, width in zip(offsets, widths, strict=True))]
    )
    full = sparse.csr_array(
        (np.ones(codes.size), (np.repeat(rows, codes.shape[1]), (codes + offsets).ravel())), (len(codes), sum(widths))
    ).tocsc()
    intercept = sparse.csc_array(np.ones((len(codes), 1)))
    return sparse.csr_array(sparse.hstack([intercept, full[:, columns[1:]]]))


def independent_columns(design: sparse.csr_array) -> NDArray[np.int64]:
    """Columns that no earlier ones determine, in their order, as many as the rank: Cholesky of the Gram matrix, in
    blocks, that passes over a column of which nothing is left."""
    rest = (design.T @ design).toarray()
    squares, count = np.diag(rest).copy(), len(rest)
    kept: list[int] = []
    for start in range(0, count, BLOCK):
        panel = rest[start:, start : start + BLOCK]
        width, chosen = panel.shape[1], []
        for column in range(width):
            left = panel[column, column]
            if left > SMALLEST_REST * squares[start + column]:
                panel[:, column] /= np.sqrt(left)
                panel[:, column + 1 :] -= np.outer(panel[:, column], panel[column + 1 : width, column])
                chosen.append(column)
        below = panel[width:, chosen]
        rest[start + width :, start + width :] -= below @ below.T
        kept += [start + column for column in chosen]
    return np.array(kept, dtype=np.int64)


def fit_logistic(design: sparse.csr_array, outcome: NDArray[np.bool_]) -> LogisticFit:
    """Maximum likelihood of a design [rows, p] with independent columns for a 0/1 outcome [rows].

    Where a category has one outcome only its coefficient has no finite maximum; the steps then end when the deviance
    stands still, which is when the probabilities do. Raises ValueError when they do not within MOST_STEPS.
    """
    y = outcome.astype(np.float64)
    coefficients = np.zeros(design.shape[1])
    deviance = _deviance(design @ coefficients, y)
    for _ in range(MOST_STEPS):
        probabilities, information = _information(design, coefficients)
        step = linalg.solve(information, design.T @ (y - probabilities), assume_a="pos")
        size = 1.0
        while (reached := _deviance(design @ (coefficients + size * step), y)) > deviance * (1 + 1e-12) and size > 1e-6:
            size /= 2
        coefficients = coefficients + size * step
        if abs(deviance - reached) <= TOLERANCE * len(y):
            probabilities, information = _information(design, coefficients)
            return LogisticFit(coefficients, linalg.inv(information), probabilities)
        deviance = reached
    raise ValueError(f"the logistic regression did not settle in {MOST_STEPS} steps: band or group its categories")


def _information(design: sparse.csr_array, coefficients: Floats) -> tuple[Floats, Floats]:
    probabilities = expit(design @ coefficients)
    weights = np.maximum(probabilities * (1 - probabilities), SMALLEST_WEIGHT)
    return probabilities, (design.T @ (sparse.diags_array(weights) @ design)).toarray()


def _deviance(predictor: Floats, y: Floats) -> float:
    return float(2 * (np.logaddexp(0, predictor) - y * predictor).sum())
