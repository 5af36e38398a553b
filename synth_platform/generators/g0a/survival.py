"""A public proportional-hazards model, and what it says about one row: its martingale residual and its latent times.

Risk is eta = h' beta on hazard coordinates h, with a ridge Cox fit, a piecewise-linear Breslow baseline and a marginal
Nelson-Aalen censoring hazard. All of it comes from public rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth_platform.normalize.rows import FloatArray, IntArray

NEWTON_STEPS = 50
LARGEST_ETA = 20.0
KNOTS = 24


@dataclass(frozen=True, eq=False)
class CumulativeHazard:
    """A piecewise-linear cumulative hazard: times and values [m] ascend from (0, 0); linear beyond the last knot."""

    times: FloatArray
    values: FloatArray

    def rounded(self, decimals: int) -> CumulativeHazard:
        """The same to `decimals` decimals; values keep that many significant ones below 1."""
        return CumulativeHazard(self.times.round(decimals), self.values.round(decimals + 2))

    def at(self, time: FloatArray) -> FloatArray:
        """Cumulative hazard at `time` >= 0."""
        beyond = np.maximum(time - self.times[-1], 0) * self._tail()
        return np.asarray(np.interp(time, self.times, self.values) + beyond)

    def inverse(self, value: FloatArray) -> FloatArray:
        """The time at which the cumulative hazard reaches `value` >= 0."""
        beyond = np.maximum(value - self.values[-1], 0) / self._tail()
        return np.asarray(np.interp(value, self.values, self.times) + beyond)

    def _tail(self) -> float:
        """Hazard beyond the last knot: the mean hazard up to it."""
        return float(self.values[-1] / self.times[-1])


def fit_cumulative_hazard(time: FloatArray, event: IntArray, risk: FloatArray) -> CumulativeHazard:
    """Breslow's estimate with relative risks exp(eta) = `risk` [n] (all ones: Nelson-Aalen), on at most KNOTS knots.

    Without any event the hazard is that of half an event over the whole follow-up.
    """
    order = np.argsort(time, kind="stable")
    time, event, risk = time[order], event[order], risk[order]
    at_risk = np.cumsum(risk[::-1])[::-1]
    first = np.searchsorted(time, time, side="left")  # ties leave the risk set together
    cumulative = np.cumsum(event / at_risk[first])
    events = np.flatnonzero(event)
    if len(events) == 0:
        return CumulativeHazard(np.array([0.0, time[-1]]), np.array([0.0, 0.5 * time[-1] / float(risk @ time)]))
    picked = events[np.unique(np.linspace(0, len(events) - 1, min(KNOTS, len(events))).round().astype(np.int64))]
    knots = np.unique(time[picked])
    last = np.searchsorted(time, knots, side="right") - 1
    return CumulativeHazard(np.concatenate([[0.0], knots]), np.concatenate([[0.0], cumulative[last]]))


@dataclass(frozen=True, eq=False)
class Cox:
    """beta [d] and its posterior covariance [d, d] under the prior beta ~ N(0, I / ridge)."""

    beta: FloatArray
    covariance: FloatArray
    ridge: float

    def rounded(self, decimals: int) -> Cox:
        """The same with beta to `decimals` decimals."""
        return Cox(self.beta.round(decimals), self.covariance, self.ridge)


def fit_cox(h: FloatArray, time: FloatArray, event: IntArray, ridges: tuple[float, ...]) -> Cox:
    """Ridge Cox (Breslow ties); the ridge is the one of `ridges` with the largest Laplace marginal likelihood."""
    best: tuple[float, Cox] | None = None
    beta = np.zeros(h.shape[1])
    for ridge in sorted(ridges, reverse=True):  # warm starts from the strongest prior down
        beta, hessian, log_likelihood = _newton(h, time, event, ridge, beta)
        evidence = (
            log_likelihood
            - 0.5 * ridge * float(beta @ beta)
            + 0.5 * len(beta) * np.log(ridge)
            - 0.5 * float(np.linalg.slogdet(hessian)[1])
        )
        if best is None or evidence > best[0]:
            best = (evidence, Cox(beta, np.asarray(np.linalg.inv(hessian), dtype=np.float64), ridge))
    assert best is not None
    return best[1]


def _newton(
    h: FloatArray, time: FloatArray, event: IntArray, ridge: float, start: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Penalised partial-likelihood maximum: beta, Hessian of the penalised negative log-likelihood, log-likelihood."""
    order = np.argsort(-time, kind="stable")
    h, time, died = h[order], time[order], event[order].astype(bool)
    last = np.searchsorted(-time, -time, side="right") - 1  # the risk set includes ties
    beta = start
    value, gradient, hessian = _partial(h, died, last, ridge, beta)
    for _ in range(NEWTON_STEPS):
        step = np.linalg.solve(hessian, gradient)
        for _ in range(20):  # halve until the objective does not fall
            candidate = _partial(h, died, last, ridge, beta + step)
            if candidate[0] >= value:
                break
            step = step / 2
        else:
            break
        beta = beta + step
        improved = candidate[0] - value
        value, gradient, hessian = candidate
        if improved < 1e-9 * (1 + abs(value)):
            break
    return beta, hessian, value + 0.5 * ridge * float(beta @ beta)


def _partial(
    h: FloatArray, died: NDArray[np.bool_], last: IntArray, ridge: float, beta: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Penalised log partial likelihood with its gradient and negative Hessian; rows by descending time."""
    eta = np.clip(h @ beta, -LARGEST_ETA, LARGEST_ETA)
    risk = np.exp(eta)
    total = np.cumsum(risk)[last][died]
    mean = np.cumsum(risk[:, None] * h, axis=0)[last][died] / total[:, None]
    value = float(np.sum(eta[died] - np.log(total)) - 0.5 * ridge * beta @ beta)
    gradient = np.sum(h[died] - mean, axis=0) - ridge * beta
    share = np.zeros(len(h))
    np.add.at(share, last[died], 1 / total)
    weight = risk * np.cumsum(share[::-1])[::-1]
    hessian = (h * weight[:, None]).T @ h - mean.T @ mean + ridge * np.eye(len(beta))
    return value, gradient, hessian
