"""A registered plan as calls of the library: the one way from counts to tables, for assets, release and command alike.

All randomness comes from the plan's seed, which is public: what is drawn depends on protected margins alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth_platform.contract.census_spec import DpPlan, SdcPlan
from synth_platform.contract.recipe import Recipe
from synth_platform.margins.coarsen import coarsen
from synth_platform.margins.disclosure.plan import audit_released
from synth_platform.margins.fitting.fit import fit
from synth_platform.margins.fitting.fitted import Fitted
from synth_platform.margins.invented import refuse_invented
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.reading.published import Totals
from synth_platform.margins.rows import Rows
from synth_platform.margins.sample import sample
from synth_platform.margins.seen import refuse_seen

NOT_ASSESSED = "NOT_ASSESSED"
_FIT, _SAMPLE, _COMPARE = range(3)


def protect(counted: MarginSet, plan: SdcPlan, recipe: Recipe | None = None) -> MarginSet:
    """Margins coarsened as the plan says.

    recipe: that the rows were counted by; None for published tables, whose labels are public. Raises ValueError as
    `coarsen`, `refuse_seen` and `refuse_invented` do.
    """
    if recipe is not None:
        refuse_seen(counted, recipe, plan.limit)
    refuse_invented(counted, plan)
    return coarsen(
        counted,
        plan.limit,
        plan.variant,
        zeros=plan.zeros,
        rounding=plan.rounding,
        adjustment=plan.adjustment,
        total=plan.total,
    )


def judge(counted: MarginSet, plan: SdcPlan, totals: Totals = "equal") -> dict[str, Any]:
    """The disclosure document of a plan: what can be inferred from its margins, and whether they pass.

    counted: as for `protect`, which the audit goes back to where the plan adjusts what it coarsened; the document is a
    function of coarsened margins and public rules alone. totals: of published tables, as they were read.
    """
    return audit_released(counted, plan, totals=totals).document()


def model(margins: MarginSet, plan: SdcPlan | DpPlan) -> Fitted:
    """The distribution of maximum entropy that has the margins. Raises ValueError as `fit` does."""
    return fit(margins, np.random.default_rng((plan.seed, _FIT)))


def tables(fitted: Fitted, plan: SdcPlan | DpPlan) -> tuple[Rows, ...]:
    """The plan's synthetic tables, independent of one another given the model."""
    return sample(fitted, np.random.default_rng((plan.seed, _SAMPLE)), plan.rows, plan.replicates)


def compare(real: Rows | None, synthetic: Rows, margins: MarginSet, plan: SdcPlan | DpPlan) -> dict[str, Any]:
    """The utility document of the first table, with the worst band of its two-way tables as `status`.

    real: the private rows; None where only tables were published, and nothing can be compared. Restricted.
    """
    if real is None:
        return {"zone": "restricted", "status": NOT_ASSESSED}
    from synth_platform.margins.utility import utility  # noqa: PLC0415 (scikit-learn, for a comparison)

    preserved = [margin.names for margin in margins]
    document = utility(real, synthetic, np.random.default_rng((plan.seed, _COMPARE)), preserved).document()
    order = ("good", "acceptable", "poor")
    bands = [table["band"] for table in document["two_way"] if table["preserved"]]
    return {**document, "status": max(bands, key=order.index) if bands else NOT_ASSESSED}
