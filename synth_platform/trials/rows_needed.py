"""How many test rows a power of 90 % would take, by normal scaling of what was seen at the rows there are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from synth_platform.evaluation.preservation import MARGIN_ABOVE_CHANCE, RATIO, SKILL, Preservation
from synth_platform.evaluation.statistics import normal_quantile, t_quantile

WANTED = 0.9
_MOST = 1_000_000


def rows_needed(judged: Sequence[Preservation], *, chance: float, rows: int, groups: int) -> int | None:
    """Test rows at which a fresh draw would pass one endpoint with 90 % power; None where no number of rows helps.

    judged: the endpoint over fresh draws, on `rows` test rows with `groups` jackknife groups. A draw passes where P is
    above max(.95, (c + .9 (TRTR - c)) / TRTR), the stricter of ratio and skill. At other rows it would lie above by the
    same mean, with a spread, of draws and of test rows together, that falls with the square root of their number. The
    same holds of the lower bound of TRTR over chance + .05, below which the gate holds. No rows help where a mean is on
    the wrong side, nor where it takes more than a million. Fewer rows than jackknife groups are never enough.
    """
    if not judged or any(None in (j.preservation, j.trtr, j.lcb_preservation, j.lcb_trtr) for j in judged):
        return None
    ratio, real, lcb_ratio, lcb_real = (
        np.array([getattr(j, name) for j in judged], np.float64)
        for name in ("preservation", "trtr", "lcb_preservation", "lcb_trtr")
    )
    t, z = t_quantile(groups), normal_quantile(WANTED)
    margin = ratio - np.maximum(float(RATIO), (chance + float(SKILL) * (real - chance)) / real)
    above_chance = real - chance - float(MARGIN_ABOVE_CHANCE)
    if margin.mean() <= 0 or above_chance.mean() <= 0:
        return None
    # Errors of the jackknife are read back from the bounds: bound = figure - t error.
    spread = math.sqrt(margin.var(ddof=1) + np.mean(((ratio - lcb_ratio) / t) ** 2))
    uncertainty = math.sqrt(np.mean(((real - lcb_real) / t) ** 2))
    factor = max(z * spread / float(margin.mean()), (t + z) * uncertainty / float(above_chance.mean())) ** 2
    needed = max(groups, math.ceil(rows * factor))
    return needed if needed <= _MOST else None
