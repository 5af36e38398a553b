"""Margins whose small counts, raised to the limit, outweigh the people: refused before anything is made of them.

A margin of limit L goes out with Σ max(n, L) people over the cells that may not be 0, instead of Σ n. What was added is
spread over all cells alike, so it hides every relation, and another share of it in each margin makes them contradict
each other. With L = 10 and zeros lifted, by the margin of which most was added (pairs of one synthetic table whose
S_pMSE is 10 or more; UCI Adult of 48,842 and the NIST excerpt of ACS 2019 of 27,253 people, with recipes of all kinds):

    Σ max(n, L) / Σ n     poor pairs
    1.01 to 1.05          5 to 8 %
    1.14 to 1.18          3 to 37 %
    1.37                  50 %
    1.67 to 2.3           97 to 100 %
    4.4                   93 %, no other good

Up to MOST_COUNTED there is something left to keep; above it hardly a pair is. Margins of a few cells are let through:
there it is people that are few, not categories that are many, and a trial with a handful of them is allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import yaml

from synth_platform.contract.census_spec import SdcPlan
from synth_platform.margins.domain import Domain
from synth_platform.margins.margin import Margin, MarginSet

MOST_COUNTED = 1.5  # times the people of a margin
FEW_CELLS = 100
COMBINED = 30  # times the limit: rows below which categories are combined, with which both files above pass


class InventedPeopleError(ValueError):
    """Margins would count many people who are not there; the message names variables and a recipe, no figure."""


def refuse_invented(counted: MarginSet, plan: SdcPlan) -> None:
    """Raises InventedPeopleError for a margin, not one of FEW_CELLS, that would count MOST_COUNTED times its people."""
    large = {margin.names: _times(counted, margin, plan) for margin in counted if margin.counts.size > FEW_CELLS}
    swollen = [names for names, times in large.items() if times > MOST_COUNTED]
    if not swollen:
        return
    wide, worst = _widest(counted.domain, swollen), max(swollen, key=lambda names: large[names])
    who = "" if plan.zeros == "lifted" else " with people"
    raise InventedPeopleError(
        f"{', '.join(wide)}: too many categories for the people there are. Every combination{who} counts as "
        f"{plan.limit} people at least, so that {' × '.join(worst)} would count half as many people again as there "
        "are, or more, and synthetic tables keep next to nothing. Band, group or drop these variables; a recipe of two "
        "lines to begin with (--recipe recipe.yaml, or `recipe:` of census.yaml):\n\n"
        f"    drop: {_flow(wide)}\n"
        f"    combine_below: {COMBINED * plan.limit}\n\n"
        "To keep a number, give it bands of your own instead of dropping it, and other categories groups:\n\n"
        f"    variables: {_flow({wide[0]: {'bands': [0, 100, 200], 'top': 200}})}"
    )


def _times(margins: MarginSet, margin: Margin, plan: SdcPlan) -> float:
    """People that the margin goes out with, but for rounding, over those it counts."""
    goes_out = margins.possible(margin) if plan.zeros == "lifted" else margin.counts > 0
    return float(np.maximum(margin.counts[goes_out], plan.limit).sum()) / margin.total


def _widest(domain: Domain, swollen: Sequence[tuple[str, ...]]) -> list[str]:
    """Few variables such that each of the margins has one: those in most of them first, the wider of equals."""
    width, left, chosen = dict(zip(domain.names, domain.shape, strict=True)), list(swollen), []
    while left:
        times = Counter(name for names in left for name in names)
        chosen.append(max(times, key=lambda name: (times[name], width[name])))
        left = [names for names in left if chosen[-1] not in names]
    return chosen


def _flow(value: object) -> str:
    """YAML in one line."""
    return str(yaml.safe_dump(value, default_flow_style=True, width=2**20, sort_keys=False, allow_unicode=True)).strip()
