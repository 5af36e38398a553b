"""What synthetic tables made of margins promise: statistical disclosure control or differential privacy, never both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synth_platform.contract.census_spec import CensusSpec, DpPlan, SdcPlan
from synth_platform.margins.margin import MarginSet

Document = Mapping[str, Any]

_VARIANT = {
    "controlled": "a count below {L} became {below}, every other count is the true one",
    "coarsened": "a count below {L} became {L}, every other one a multiple of {L} (rounded {rounding})",
    "adjusted": (
        "a count below {L} became {L}, every other one a multiple of {L} (rounded {rounding}); then the counts were "
        "brought towards the number of people ({adjustment})"
    ),
}
_ROUNDED = {"nearest": "to the nearest", "up": "up", "down": "down"}
_ZEROS = {
    "lifted": "a combination in which nobody was counts as any small one, unless it is declared impossible",
    "kept": "a combination in which nobody was stayed empty, which says so of the people",
}
NOT_COVERED = (
    "how likely each count within its interval is",
    "somebody who knows some of the people already",
    "other releases of the same people",
    "sets of cells that are small together",
    "the synthetic rows themselves, which are drawn from the released counts",
)
BANDS = (
    "Bands of utility in this package were read off the private rows, outside of all that is said above: they carry no "
    "guarantee, and beside a small table a band may tell more of its cells than the counts do."
)
# Which tables are bounded, and how.
_METHOD = {
    "linear_programming": (
        "all margins, single variables, pairs and threes of variables, taken together by linear programming over their "
        "joint table; the intervals of margins, variables and pairs are the narrowest there are"
    ),
    "relaxation": (
        "all margins, single variables, pairs and threes of variables, taken together by linear programming over their "
        "joint table with people in fractions, which somebody who keeps to whole people may narrow"
    ),
    "triples": (
        "all margins, single variables and pairs, not combinations of three variables or more, taken together by "
        "shuttle bounds and by linear programming over the joint table of each three variables, which somebody with "
        "larger programs may narrow"
    ),
    "shuttle": (
        "all margins, single variables and pairs, not combinations of three variables or more, taken together by "
        "shuttle bounds, which somebody with linear programming may narrow"
    ),
    "each_alone": (
        "the margins, each by itself, since published totals differ and no one table of people fits them all"
    ),
}


def assurance(
    spec: CensusSpec, protected: MarginSet, disclosure: Document | None, decision: Document
) -> dict[str, Any]:
    """kind ("SDC" or "DP"), the statement in paragraphs, and what the statement rests on, in JSON values."""
    plan = spec.plan(decision["plan"])
    told = (
        _noisy(spec, plan, protected, decision)
        if isinstance(plan, DpPlan)
        else _coarsened(plan, protected, disclosure, decision)
    )
    if spec.publication == "aggregates" and spec.source.microdata is not None:
        told["statement"].append(BANDS)
    return told


def _coarsened(plan: SdcPlan, protected: MarginSet, disclosure: Document | None, decision: Document) -> dict[str, Any]:
    if disclosure is None:
        raise ValueError("disclosure: tables of policy sdc rest on the audit of their margins; give its document")
    L = plan.limit
    rule = _VARIANT[plan.variant].format(
        L=L, below=L - 1, rounding=_ROUNDED[plan.rounding], adjustment=plan.adjustment.replace("_", " ")
    )
    tables = disclosure["tables"]
    narrowest = min((table["narrowest"] for table in tables if table["narrowest"] is not None), default=None)
    found = {
        "status": disclosure["status"],
        "method": disclosure["method"],
        "unsettled": disclosure["unsettled"],
        "tables": len(tables),
        "cells": sum(table["cells"] for table in tables),
        "narrowest_interval": narrowest,
        "not_covered": list(NOT_COVERED),
    }
    statement = [
        "Statistical disclosure control. Coarsening is not differential privacy: there is no epsilon, and nothing "
        "bounds what is learned about a person by somebody who knows enough of the others.",
        f"Every count of the {_margins(protected)} was coarsened by a public rule with limit {L}: {rule}; "
        f"{_ZEROS[plan.zeros]}.",
        f"The released counts were turned back into intervals of the true ones, over {len(tables):,} tables "
        f"({_METHOD[disclosure['method']]}{_unsettled(disclosure)}). No cell is found to be within 1 "
        f"to {L - 1}, no group to have all its people in one category, no cell released with people to be empty"
        + (f"; the narrowest interval holds {narrowest + 1:,} counts." if narrowest is not None else "."),
        f"Not covered: {'; '.join(NOT_COVERED)}.",
    ]
    return {
        "kind": decision["assurance"],
        "statement": statement,
        "rule": {"limit": L, "variant": plan.variant, "zeros": plan.zeros, "rounding": plan.rounding}
        | ({"adjustment": plan.adjustment, "total": plan.total} if plan.variant == "adjusted" else {}),
        "audit": found,
    }


def _unsettled(disclosure: Document) -> str:
    cells = disclosure["unsettled"]
    return f"; for {cells:,} cells not every such program was run, as there are too many" if cells else ""


def _noisy(spec: CensusSpec, plan: DpPlan, protected: MarginSet, decision: Document) -> dict[str, Any]:
    if spec.privacy is None:
        raise ValueError(f"census {spec.name!r} has no privacy section, which a plan of policy dp needs")
    mu = "" if decision["mu"] is None else f" ({decision['mu']:.6g}-GDP)"
    choice = "" if plan.margins == "declared" else ", some of the answers choosing which margins to count"
    statement = [
        f"Differential privacy: one {spec.privacy.unit} more or less among those counted changes the probability of "
        f"any content of the tables by at most a factor e^{decision['epsilon']:.6g}, "
        f"up to {decision['delta']:.6g}{mu}.",
        f"The {_margins(protected)} carry noise that the ledger paid for{choice}, and tables, fit and card were made "
        "of them alone. Totals are noisy too and were not replaced by the true number of people. Other releases from "
        "the same privacy domain add to the cost.",
        "Releases of the same people under policy sdc are outside of any such account: nothing bounds what is learned "
        "from both together.",
        "Not covered: whether anything was published at all.",
    ]
    return {
        "kind": decision["assurance"],
        "statement": statement,
        "epsilon": decision["epsilon"],
        "delta": decision["delta"],
        "mu": decision["mu"],
        "unit": spec.privacy.unit,
        "neighbouring": "one added or removed",
        "domain": spec.privacy.domain,
        "entries": list(decision["ledger"]["entries"]),
        "spent": {name: decision["ledger"][name] for name in ("epsilon_rdp", "epsilon_pld", "mu")},
        "totals": "noisy",
    }


def _margins(protected: MarginSet) -> str:
    number = len(protected.margins)
    return "1 margin" if number == 1 else f"{number:,} margins"
