"""The e-value of a plan: which statistic, with which public constants, made for how many discoveries.

The tilt of every statistic is the one that passes e-BH most often under the noise of the plan. Nothing private enters:
sizes, terms and frequencies are registered, and a hazard or a clip is of the public rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.contract.discovery_options import Contrast, DiscoveryPlan
from synth_platform.contract.genotype_spec import Genotypes, Phenotype
from synth_platform.discovery.peeling import value_mu
from synth_platform.discovery.statistics.chosen_tilt import ChosenTilt
from synth_platform.discovery.statistics.dosage import DosageStatistic
from synth_platform.discovery.statistics.log_rank import LogRank, Survival
from synth_platform.discovery.statistics.mann_whitney import MannWhitney
from synth_platform.discovery.statistics.protocol import LogEStatistic
from synth_platform.normalize.rows import EncodedRows

CLIP = 0.5  # of martingale residuals: under the noise of many discoveries it passes more often than 1 (log_rank)
SPAN = 4  # a size four times the expected one, or a quarter of it, still has the tilt made for it
CUT = 0.0  # the public mean of a standardised feature


def contrast_statistic(
    contrast: Contrast, plan: DiscoveryPlan, hypotheses: int, public: EncodedRows
) -> Callable[[int], LogEStatistic[Any]]:
    """What makes the statistic of a cohort's contrast for so many discoveries among `hypotheses` features.

    public: rows that give the hazard of `log_rank`. With an adaptive size a Mann-Whitney e-value is made for the size
    that was chosen, within a factor of `SPAN` of the expected one, and pays for the choice. Others stay as they are
    made for the expected size: what a choice of theirs would have to pay depends on private values.
    Raises CohortSpecError where the public rows have no event, or for a fixed size above `hypotheses`.
    """
    expected = released_of(plan, hypotheses)
    if contrast.statistic == "mann_whitney":
        return _mann_whitney(contrast, plan, hypotheses, expected)
    times, hazard = nelson_aalen(public)
    log_rank = LogRank.designed(
        contrast.sizes[0],
        times,
        hazard,
        CLIP,
        CUT,
        reference=Survival(public.time, public.event.astype(np.bool_)),
        share_above=0.5,
        features=hypotheses,
        released=expected,
        alpha=plan.alpha,
        value_mu=_value_mu(plan, expected),
    )
    return lambda _: log_rank


def _mann_whitney(
    contrast: Contrast, plan: DiscoveryPlan, hypotheses: int, expected: int
) -> Callable[[int], LogEStatistic[Any]]:
    cases, controls = contrast.sizes

    def of(size: int) -> MannWhitney:
        return MannWhitney.designed(
            cases, controls, features=hypotheses, size=size, alpha=plan.alpha, value_mu=_value_mu(plan, size)
        )

    if plan.size != "adaptive" or math.isinf(plan.mu):
        return of
    fewest, most = max(1, round(expected / SPAN)), min(hypotheses, expected * SPAN)
    tilts = sorted((of(fewest).tilt, of(most).tilt))
    return lambda size: ChosenTilt(of(min(max(size, fewest), most)), *tilts)


def dosage_statistic(genotypes: Genotypes, phenotype: Phenotype, plan: DiscoveryPlan) -> DosageStatistic:
    """The statistic of a study's phenotype over its variants, made for the expected size."""
    cases, controls = phenotype.sizes
    expected = released_of(plan, genotypes.variants)
    return DosageStatistic.designed(
        cases,
        controls,
        frequency=genotypes.frequency,
        features=genotypes.variants,
        size=expected,
        alpha=plan.alpha,
        value_mu=_value_mu(plan, expected),
    )


def _value_mu(plan: DiscoveryPlan, size: int) -> float:
    return value_mu(plan.mu, size, adaptive=plan.size == "adaptive")


def released_of(plan: DiscoveryPlan, hypotheses: int) -> int:
    """How many values the e-values of a plan are made for; CohortSpecError for a fixed size above `hypotheses`."""
    if plan.size == "adaptive":
        return min(plan.expected, hypotheses)
    if plan.size > hypotheses:
        raise CohortSpecError(
            f"contrast {plan.contrast!r} has {hypotheses} hypotheses: {plan.size} cannot be selected, use fewer"
        )
    return plan.size


def nelson_aalen(rows: EncodedRows) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Times of events among `rows`, increasing, and the Nelson-Aalen cumulative hazard from each on.

    Raises CohortSpecError without an event.
    """
    if not rows.event.any():
        raise CohortSpecError("no public row has an event, so there is no public hazard: log_rank cannot be used")
    from lifelines import NelsonAalenFitter  # noqa: PLC0415 (half a second of imports, for log_rank alone)

    fitter = NelsonAalenFitter(nelson_aalen_smoothing=False).fit(rows.time, rows.event)
    hazard = fitter.cumulative_hazard_.iloc[:, 0]
    jumps = hazard[hazard.diff() > 0]
    return tuple(jumps.index.tolist()), tuple(jumps.tolist())
