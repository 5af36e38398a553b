"""The disclosure audit of what a plan releases: which margins somebody is taken to know, and the rule that made them.

Controlled and coarsened margins are audited as they are released. Adjusted ones are a function of the coarsened margins
and a target total, so whoever holds those two knows at least as much: the audit takes the coarsened margins as known,
and what the target tells of the number of people. What an adjusted release discloses is flagged, by whichever
adjustment; so is what the coarsened margins alone would disclose.

Tables that were published with totals that differ were rounded before, and no one table of people need fit them. Where
one does fit their intervals they are audited together all the same, which is what somebody would try; only where they
contradict each other is each bounded by itself. Bounds are then of the published counts.
"""

from __future__ import annotations

import math
from typing import Literal

from synth_platform.contract.census_spec import SdcPlan
from synth_platform.margins.coarsen import adjustment_target, coarsen
from synth_platform.margins.disclosure.audit import DisclosureReport, disclosure_bounds
from synth_platform.margins.disclosure.intervals import ReleaseRule
from synth_platform.margins.disclosure.together import Together
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.reading.published import Totals


def audit_released(
    counted: MarginSet,
    plan: SdcPlan,
    public_total: int | None = None,
    totals: Totals = "equal",
    method: Literal["auto"] | Together = "auto",
) -> DisclosureReport:
    """The disclosure audit of margins that are counted or published, protected by a plan.

    public_total: number of people, where it is known to everybody. totals: of published tables, as they were read. The
    report tells of coarsened or controlled margins and of the total alone: it may be as public as these. Raises
    ValueError as `audited` and `disclosure_bounds` do.
    """
    margins, rule = audited(counted, plan, public_total)
    together = disclosure_bounds(margins, rule, method)
    if totals == "differ" and not together.consistent:
        return disclosure_bounds(margins, rule, "each_alone")
    return together


def audited(counted: MarginSet, plan: SdcPlan, public_total: int | None = None) -> tuple[MarginSet, ReleaseRule]:
    """The margins that somebody is taken to know and their rule, as `disclosure_bounds` takes them.

    Raises ValueError for a plan that cannot be carried out, or a public total that is not the margins' own.
    """
    margins = coarsen(counted, plan.limit, _variant(plan), zeros=plan.zeros, rounding=plan.rounding)
    return margins, released_rule(plan, _known_total(counted, plan, public_total))


def released_rule(plan: SdcPlan, total: tuple[int, int] | None = None) -> ReleaseRule:
    """The public rule of the margins that a plan is audited by. total: bounds on the number of people, if known."""
    return ReleaseRule(_variant(plan), plan.limit, plan.zeros, plan.rounding, total=total)


def _variant(plan: SdcPlan) -> Literal["controlled", "coarsened"]:
    return "controlled" if plan.variant == "controlled" else "coarsened"


def _known_total(counted: MarginSet, plan: SdcPlan, public_total: int | None) -> tuple[int, int] | None:
    """What is known of the number of people: all of it, or what a target rounded to a multiple of the limit tells."""
    people = {margin.total for margin in counted}
    if public_total is not None:
        if people != {public_total}:
            raise ValueError("public total: it is not the number of people in the margins; correct it or leave it out")
        return public_total, public_total
    if plan.variant != "adjusted" or len(people) > 1:
        return None
    if plan.total is not None:
        return (plan.total, plan.total) if people == {plan.total} else None
    target, half = adjustment_target(counted, plan.limit), plan.limit / 2
    least = 1 if target == plan.limit else math.ceil(target - half)
    return least, math.ceil(target + half) - 1
