"""The shift of the survival model: which hazards, applied to the public rows, would have given the noisy scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from synth_platform.generators.g0a.anchor import Anchor, clip_rows, relative_risk
from synth_platform.generators.g0a.model import SMALLEST_SLOPE, Noisy, invert
from synth_platform.generators.g0a.shrinkage import shrink
from synth_platform.generators.g0a.statistics import hazard_scores, residual_scores
from synth_platform.normalize.rows import FloatArray

REPLICATES = 4  # simulated times per public row
SIMULATION_SEED = 20_261
STEP = 0.25  # of the numerical derivative, in units that change the log hazard by one standard deviation


@dataclass(frozen=True, eq=False)
class HazardShift:
    """beta [q]: shift of the log hazard weights. level, censoring: log baseline ratios. null: weight of "none"."""

    beta: FloatArray
    level: float
    censoring: float
    null: float


def fit_hazard(anchor: Anchor, noisy: Noisy, n: float, *, share: FloatArray, means: FloatArray) -> HazardShift:
    """Shift of the survival model from the score sums [q + 2] of about `n` rows.

    share [K], means [K, p]: class shares and shifts of class means already estimated; the public rows are moved to them
    before scores are predicted. The levels come first: a changed baseline alone moves every score.
    """
    rows, q = anchor.rows, len(anchor.cox.beta)
    simulation = _Simulation(anchor, share, means)
    scores = hazard_scores(anchor, rows.x, rows.time, rows.event.astype(np.float64))
    spread = np.std((rows.x - anchor.centre) @ anchor.hazard.project, axis=0)

    def estimate(
        part: slice, known: FloatArray, *, public: FloatArray | None, unit: FloatArray
    ) -> tuple[FloatArray, float]:
        """Shift of the parameters `part` where the others are `known`, and the null weight."""

        def predicted(values: FloatArray) -> FloatArray:
            shift = known.copy()
            shift[part] = values
            return simulation.scores(shift)[part]

        origin = np.zeros(len(unit))
        slope = _diagonal_slope(predicted, STEP * unit)
        variance = scores.var(axis=0)[part]
        shift, null = shrink(
            ((noisy.values[part] / n - predicted(origin)) / slope)[:, None],
            ((noisy.sigma**2 / n**2 + variance / n) / slope**2)[:, None],
            (variance / len(rows) / slope**2 if public is None else public)[:, None],
            widest=float(np.mean(unit**2)),
        )
        return invert(predicted, origin, slope, start=shift[:, 0], damping=0.5), null

    shift = np.zeros(q + 2)
    levels, beta = slice(q, q + 2), slice(0, q)
    shift[levels], _ = estimate(levels, shift, public=None, unit=np.ones(2))
    prior = np.diag(anchor.cox.covariance)
    shift[beta], null = estimate(beta, shift, public=prior, unit=1 / np.maximum(spread, STEP))
    shift[levels], _ = estimate(levels, shift, public=None, unit=np.ones(2))
    return HazardShift(shift[beta], float(shift[q]), float(shift[q + 1]), null)


def _diagonal_slope(predicted: Callable[[FloatArray], FloatArray], step: FloatArray) -> FloatArray:
    """[m] central difference of each prediction in its own parameter."""
    ahead, behind = (np.array([predicted(sign * s)[j] for j, s in enumerate(np.diag(step))]) for sign in (1, -1))
    slope = (ahead - behind) / (2 * step)
    return np.asarray(np.maximum(slope, SMALLEST_SLOPE * slope.max()))


class _Simulation:
    """Mean scores of the public rows, moved to the estimated classes, under a shifted survival model; fixed draws."""

    def __init__(self, anchor: Anchor, share: FloatArray, means: FloatArray) -> None:
        rng = np.random.default_rng(SIMULATION_SEED)
        label = anchor.rows.label
        self._anchor = anchor
        x = np.tile(anchor.rows.x + means[label], (REPLICATES, 1))
        self._h = (x - anchor.centre) @ anchor.hazard.project
        self._clipped, self._risk = clip_rows(self._h, anchor.hazard.clip), relative_risk(self._h, anchor.cox.beta)
        weight = np.tile((share / np.maximum(anchor.counts, 1))[label], REPLICATES)
        self._weight = weight / weight.sum()
        self._exposure, self._dropout = rng.standard_exponential((2, len(x)))

    def scores(self, shift: FloatArray) -> FloatArray:
        """[q + 2] mean scores if beta, log baseline and log censoring hazard had this shift."""
        anchor, beta = self._anchor, self._anchor.cox.beta
        risk = relative_risk(self._h, beta + shift[: len(beta)]) * np.exp(shift[-2])
        failure = anchor.baseline.inverse(self._exposure / risk)
        lost = np.minimum(anchor.censoring.inverse(self._dropout * np.exp(-shift[-1])), anchor.longest)
        observed = (failure <= lost).astype(np.float64)
        scores = residual_scores(anchor, self._clipped, self._risk, np.minimum(failure, lost), observed)
        return np.asarray(self._weight @ scores)
