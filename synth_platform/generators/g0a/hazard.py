"""The shift of the survival model: which hazards, applied to the public rows, would have given the noisy scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_platform.generators.g0a.anchor import Anchor
from synth_platform.generators.g0a.model import SMALLEST_SLOPE, Noisy, invert
from synth_platform.generators.g0a.shrinkage import shrink
from synth_platform.generators.g0a.statistics import hazard_scores
from synth_platform.normalize.rows import FloatArray

REPLICATES = 4  # simulated times per public row
SIMULATION_SEED = 20_261
STEP = 0.25  # of the numerical derivative, in standard deviations of the log hazard


@dataclass(frozen=True, eq=False)
class HazardShift:
    """beta [q]: shift of the log hazard weights. level, censoring: log baseline ratios. null: weight of "none"."""

    beta: FloatArray
    level: float
    censoring: float
    null: float


def fit_hazard(
    anchor: Anchor, noisy: Noisy, n: float, *, share: FloatArray, means: FloatArray, null_weight: float
) -> HazardShift:
    """Shift of the survival model from the score sums [q + 2] of about `n` rows.

    share [K], means [K, p]: class shares and shifts of class means already estimated; the public rows are moved to them
    before scores are predicted.
    """
    rows = anchor.rows
    q = len(anchor.cox.beta)
    simulation = _Simulation(anchor, share, means)
    origin = np.zeros(q + 2)
    expected = simulation.scores(origin)
    spread = np.std((rows.x - anchor.centre) @ anchor.hazard.project, axis=0)
    step = np.append(STEP / np.maximum(spread, STEP), [STEP, STEP])
    ahead, behind = ([simulation.scores(sign * s) for s in np.diag(step)] for sign in (1, -1))
    slope = (np.diag(ahead) - np.diag(behind)) / (2 * step)
    slope = np.maximum(slope, SMALLEST_SLOPE * slope.max())
    scores = hazard_scores(anchor, rows.x, rows.time, rows.event.astype(np.float64))
    variance = scores.var(axis=0)
    measured = (noisy.values / n - expected) / slope
    measurement = (noisy.sigma**2 / n**2 + variance / n) / slope**2
    public = np.append(np.diag(anchor.cox.covariance), (variance / len(rows) / slope**2)[q:])

    def shrunk(part: slice, weight: float) -> tuple[FloatArray, float]:
        shift, null = shrink(measured[part, None], measurement[part, None], public[part, None], null_weight=weight)
        return shift[:, 0], null

    beta, null = shrunk(slice(0, q), null_weight)
    level, censoring = (shrunk(slice(j, j + 1), 0.0)[0] for j in (q, q + 1))
    shift = invert(simulation.scores, origin, slope, start=np.concatenate([beta, level, censoring]), damping=0.5)
    return HazardShift(shift[:q], float(shift[q]), float(shift[q + 1]), null)


class _Simulation:
    """Mean scores of the public rows, moved to the estimated classes, under a shifted survival model; fixed draws."""

    def __init__(self, anchor: Anchor, share: FloatArray, means: FloatArray) -> None:
        rng = np.random.default_rng(SIMULATION_SEED)
        label = anchor.rows.label
        self._anchor = anchor
        self._x = np.tile(anchor.rows.x + means[label], (REPLICATES, 1))
        weight = np.tile((share / np.maximum(anchor.counts, 1))[label], REPLICATES)
        self._weight = weight / weight.sum()
        self._exposure, self._dropout = rng.standard_exponential((2, len(self._x)))

    def scores(self, shift: FloatArray) -> FloatArray:
        """[q + 2] mean scores if beta, log baseline and log censoring hazard had this shift."""
        anchor, beta = self._anchor, self._anchor.cox.beta
        risk = anchor.risk(self._x, beta + shift[: len(beta)]) * np.exp(shift[-2])
        failure = anchor.baseline.inverse(self._exposure / risk)
        lost = np.minimum(anchor.censoring.inverse(self._dropout * np.exp(-shift[-1])), anchor.longest)
        observed = (failure <= lost).astype(np.float64)
        return np.asarray(self._weight @ hazard_scores(anchor, self._x, np.minimum(failure, lost), observed))
