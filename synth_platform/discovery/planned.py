"""The e-value of a plan: which statistic, with which public constants, made for how many discoveries.

The tilt of every statistic is the one that passes e-BH most often under the noise of the plan. Nothing private enters:
sizes, terms and frequencies are registered, and a hazard or a clip is of the public rows.
"""

from __future__ import annotations

import numpy as np
from lifelines import NelsonAalenFitter

from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.contract.discovery_options import Contrast, DiscoveryPlan
from synth_platform.contract.genotype_spec import Genotypes, Phenotype
from synth_platform.discovery.peeling import value_mu
from synth_platform.discovery.statistics.dosage import DosageStatistic
from synth_platform.discovery.statistics.log_rank import LogRank, Survival
from synth_platform.discovery.statistics.mann_whitney import MannWhitney
from synth_platform.normalize.rows import EncodedRows

CLIP = 0.5  # of martingale residuals: under the noise of many discoveries it passes more often than 1 (log_rank)
CUT = 0.0  # the public mean of a standardised feature


def contrast_statistic(
    contrast: Contrast, plan: DiscoveryPlan, hypotheses: int, public: EncodedRows
) -> MannWhitney | LogRank:
    """The statistic of a cohort's contrast over `hypotheses` features; `public` rows give the hazard of `log_rank`.

    Raises CohortSpecError where the public rows have no event.
    """
    released = released_of(plan, hypotheses)
    spent = value_mu(plan.mu, released, adaptive=plan.size == "adaptive")
    if contrast.statistic == "mann_whitney":
        cases, controls = contrast.sizes
        return MannWhitney.designed(
            cases, controls, features=hypotheses, size=released, alpha=plan.alpha, value_mu=spent
        )
    size = contrast.sizes[0]
    times, hazard = nelson_aalen(public)
    return LogRank.designed(
        size,
        times,
        hazard,
        CLIP,
        CUT,
        reference=Survival(public.time, public.event.astype(np.bool_)),
        share_above=0.5,
        features=hypotheses,
        released=released,
        alpha=plan.alpha,
        value_mu=spent,
    )


def dosage_statistic(genotypes: Genotypes, phenotype: Phenotype, plan: DiscoveryPlan) -> DosageStatistic:
    """The statistic of a study's phenotype over its variants."""
    cases, controls = phenotype.sizes
    released = released_of(plan, genotypes.variants)
    return DosageStatistic.designed(
        cases,
        controls,
        frequency=genotypes.frequency,
        features=genotypes.variants,
        size=released,
        alpha=plan.alpha,
        value_mu=value_mu(plan.mu, released, adaptive=plan.size == "adaptive"),
    )


def released_of(plan: DiscoveryPlan, hypotheses: int) -> int:
    """How many values the e-values of a plan are made for; CohortSpecError for a fixed size above `hypotheses`."""
    if plan.size == "adaptive":
        return min(plan.expected, hypotheses)
    if plan.size > hypotheses:
        raise CohortSpecError(
            f"contrast {plan.contrast!r} has {hypotheses} hypotheses, of which {plan.size} cannot be selected: use fewer"
        )
    return plan.size


def nelson_aalen(rows: EncodedRows) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Times of events among `rows`, increasing, and the Nelson-Aalen cumulative hazard from each on.

    Raises CohortSpecError without an event.
    """
    if not rows.event.any():
        raise CohortSpecError("no public row has an event, so there is no public hazard: log_rank cannot be used")
    fitter = NelsonAalenFitter(nelson_aalen_smoothing=False).fit(rows.time, rows.event)
    hazard = fitter.cumulative_hazard_.iloc[:, 0]
    jumps = hazard[hazard.diff() > 0]
    return tuple(jumps.index.tolist()), tuple(jumps.tolist())
