"""The card names what is promised and what is lost; what it says of a fit is true of the fit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import pytest

from synth_platform.contract.census_spec import CensusSpec
from synth_platform.margins.disclosure.together import OF_THREES, Together
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.dense import fit_dense
from synth_platform.margins.fitting.fitted import FitReport
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.release.margins_card import margins_card, relations_lost
from synth_platform.release.margins_readme import aligned, render_margins_readme

BINARY = Domain(tuple(Variable(name, ("no", "yes")) for name in "abcd"))
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"))


def margins(*names: tuple[str, ...], domain: Domain = BINARY) -> MarginSet:
    return MarginSet(domain, tuple(Margin(n, np.full(domain.project(n).shape, 40.0), ("toy",)) for n in names))


def spec(**changes: Any) -> CensusSpec:
    document = {
        "name": "toy",
        "kind": "census",
        "title": "Toy census",
        "dua_tag": "RELEASE_REVIEWED",
        "source": {"microdata": "toy.csv"},
        "privacy": {"domain": "toy", "n_ref": 100, "budget": {"epsilon": 2.0, "delta": 1e-6}},
        "plans": {"sdc": {"policy": "sdc"}, "dp": {"policy": "dp", "epsilon": 1.0}},
    }
    return CensusSpec.model_validate({**document, **changes})


def decision(plan: str = "sdc", **changes: Any) -> dict[str, Any]:
    own = (
        {"assurance": "SDC", "ledger": None, "epsilon": None, "delta": None, "mu": None}
        if plan == "sdc"
        else {
            "assurance": "DP",
            "ledger": {"entries": ["e17"], "epsilon_rdp": 0.98, "epsilon_pld": 0.87, "mu": 0.25},
            "epsilon": 1.0,
            "delta": 1e-6,
            "mu": 0.25,
        }
    )
    return {"plan": plan, "registration": "f" * 64, "notes": [], **own, **changes}


def table(names: str, ratio: float, *, preserved: bool = True) -> dict[str, Any]:
    band = "good" if ratio < 3 else "acceptable" if ratio < 10 else "poor"
    return {"names": list(names), "vw": ratio, "df": 1, "s_pmse": ratio, "band": band, "preserved": preserved}


UTILITY = {
    "zone": "restricted",
    "status": "poor",
    "independent_sample": 2.0,
    "two_way": [table("ab", 1.25), table("ac", 12.5), table("bc", 4.75), table("ad", 77.5, preserved=False)],
    "three_way": [table("abc", 6.25, preserved=False)],
    "logistic": {"s_pmse": 3.625, "specks": 0.125, "pmse": 0.1, "expected": 0.2, "band": "acceptable"},
    "cart": {"s_pmse": 2.875, "specks": 0.25, "pmse": 0.1, "expected": 0.2, "band": "good"},
}
AUDIT = {
    "status": "PASS",
    "reasons": [],
    "limit": 10,
    "method": "shuttle",
    "unsettled": 0,
    "tables": [{"cells": 4, "narrowest": 9}, {"cells": 6, "narrowest": 7}, {"cells": 0, "narrowest": None}],
}


def card(plan: str = "sdc", protected: MarginSet | None = None, **changes: Any) -> dict[str, Any]:
    protected = protected or margins(*PAIRS)
    titles = [margin.title for margin in protected]
    residuals = {title: 0.001 * position for position, title in enumerate(titles)}
    report = FitReport("dense", "limit_cycle", 24, 1e-4, residuals, dict.fromkeys(titles, 160.0), 160.0)
    arguments = {
        "spec": spec(),
        "protected": protected,
        "fit": report,
        "rows": 160,
        "disclosure": AUDIT if plan == "sdc" else None,
        "utility": UTILITY,
        "decision": decision(plan),
    }
    made = margins_card(**{**arguments, **changes})
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    return made


def words(made: Mapping[str, Any]) -> str:
    return " ".join(render_margins_readme(made, [(["table.csv"], "the table")]).split())


def test_relations_that_no_margin_holds_are_named() -> None:
    """Claim: by hand for a, b, c, d with four pairs: a × d and b × d have no margin; a × b × c has all three pairs."""
    lost = relations_lost(margins(*PAIRS))
    assert lost["pairs"] == [["a", "d"], ["b", "d"]]
    assert lost["triples"] == {"number": 1, "of": 4, "every": False, "named": [["a", "b", "c"]]}
    assert lost["largest"] == 2


def test_a_margin_of_three_holds_its_triple_and_its_pairs() -> None:
    lost = relations_lost(margins(("c", "b", "a"), ("c", "d")))
    assert lost["pairs"] == [["a", "d"], ["b", "d"]]
    assert lost["triples"] == {"number": 0, "of": 4, "every": False, "named": []}
    assert lost["largest"] == 3


def test_where_all_pairs_are_held_every_triple_is_told_by_one_word() -> None:
    three = BINARY.project(("a", "b", "c"))
    lost = relations_lost(margins(("a", "b"), ("a", "c"), ("b", "c"), domain=three))
    assert lost == {"pairs": [], "triples": {"number": 1, "of": 1, "every": True, "named": []}, "largest": 2}


def test_the_fit_has_no_interaction_that_the_card_calls_lost() -> None:
    """Claim: of a table with a three-way interaction, the fit to its pairs has none: the log of the ratio of odds
    ratios, which is 3 log 8 in the table, is nought in the fit. The pairs themselves are kept."""
    counts = np.array([[[80.0, 10.0], [10.0, 80.0]], [[10.0, 80.0], [80.0, 80.0]]])
    three = BINARY.project(("a", "b", "c"))
    pairs = {("a", "b"): 2, ("a", "c"): 1, ("b", "c"): 0}
    fitted = fit_dense(
        MarginSet(three, tuple(Margin(n, counts.sum(axis=axis), ("toy",)) for n, axis in pairs.items()))
    ).probabilities("abc")

    def interaction(cells: np.ndarray) -> float:
        signs = np.array([-1, 1])
        return float((np.log(cells) * signs[:, None, None] * signs[:, None] * signs).sum())

    assert abs(interaction(counts)) == pytest.approx(3 * np.log(8))
    assert abs(interaction(fitted)) < 1e-3
    for axis in pairs.values():
        np.testing.assert_allclose(fitted.sum(axis=axis), counts.sum(axis=axis) / counts.sum(), atol=1e-4)


def test_every_margin_has_its_residual() -> None:
    """Claim: each is named with its residual, and is called matched up to the tolerance, 1e-4 here."""
    preserved = card()["preserved"]
    assert [each["margin"] for each in preserved] == ["a × b", "a × c", "b × c", "c × d"]
    assert [each["residual"] for each in preserved] == [0.0, 0.001, 0.002, 0.003]
    assert [each["matched"] for each in preserved] == [True, False, False, False]
    text = words(card())
    assert "3 of 4 are above 0.0001, the largest is 0.003" in text
    assert text.index("c × d") < text.index("b × c |") < text.index("a × b |")  # the worst first


def numbers(value: Any, path: str = "") -> set[str]:
    """Where numbers stand in a document."""
    if isinstance(value, Mapping):
        return set().union(*(numbers(each, f"{path}/{key}") for key, each in value.items()))
    if isinstance(value, list):
        return set().union(*(numbers(each, path) for each in value))
    return {path} if isinstance(value, int | float) else set()


@pytest.mark.parametrize("plan", ["sdc", "dp"])
def test_nothing_of_utility_goes_out_under_statuses_only(plan: str) -> None:
    """Claim: card and README are the same whatever the utility document says, its status included."""
    best = {**UTILITY, "status": "good", "independent_sample": 3.5, "two_way": [], "three_way": []}
    assert card(plan) == card(plan, utility=best)
    assert words(card(plan)) == words(card(plan, utility=best))
    assert card(plan)["utility"] is None
    assert "compared with the private rows inside, and is not told here" in words(card(plan))


@pytest.mark.parametrize("plan", ["sdc", "dp"])
def test_bands_alone_go_out_under_aggregates(plan: str) -> None:
    """Claim: no ratio, no share of synthetic rows (of which the number of people follows) and no figure of a model is
    in card or README; how many tables are in each band is, and which are not good. Of figures within bands the card
    is independent."""
    opened = card(plan, spec=spec(publication="aggregates"))
    assert opened["utility"] == {
        "status": "poor",
        "bands": {"two_way": {"good": 1, "acceptable": 1, "poor": 2}, "three_way": {"acceptable": 1}},
        "not_good": {
            "two_way": [
                {"variables": ["a", "c"], "band": "poor"},
                {"variables": ["b", "c"], "band": "acceptable"},
                {"variables": ["a", "d"], "band": "poor"},
            ],
            "three_way": [{"variables": ["a", "b", "c"], "band": "acceptable"}],
        },
    }
    assert all(path.startswith("/bands/") for path in numbers(opened["utility"]))
    text = json.dumps(opened) + words(opened)
    assert not any(figure in text for figure in ("12.5", "77.5", "6.25", "3.625", "2.875", "4.75", "s_pmse"))
    moved = {
        **UTILITY,
        "independent_sample": 2.5,
        "two_way": [{**each, "vw": each["vw"] * 1.01, "s_pmse": each["s_pmse"] * 1.01} for each in UTILITY["two_way"]],
        "logistic": {**UTILITY["logistic"], "s_pmse": 55.0, "band": "poor"},
    }
    assert card(plan, spec=spec(publication="aggregates"), utility=moved) == opened
    said = words(opened)
    assert "Tables of two variables: 1 good, 1 acceptable, 2 poor; of three: 1 acceptable." in said
    assert "Poor of two variables: a × c, a × d. Acceptable of two variables: b × c." in said


def test_bands_are_said_to_be_outside_of_the_promise() -> None:
    """Claim: the statement of both policies says so where bands go out, and where none do says nothing of them."""
    opened = spec(publication="aggregates")
    for plan in ("sdc", "dp"):
        assert "read off the private rows" in card(plan, spec=opened)["assurance"]["statement"][-1]
        assert "read off" not in json.dumps(card(plan)["assurance"])
    tables = spec(publication="aggregates", source={"tables": "yearbook"}, plans={"sdc": {"policy": "sdc"}})
    made = card(spec=tables, utility={"zone": "restricted", "status": "NOT_ASSESSED"})
    assert "read off" not in json.dumps(made["assurance"])
    assert made["utility"] == {"status": "NOT_ASSESSED"}
    assert "Utility was not assessed, since there were no rows to compare with." in words(made)


def test_a_census_of_single_variables_has_no_pair_to_keep() -> None:
    """Claim: where no margin holds a pair, the README says so, and not that there were no rows."""
    alone = {**UTILITY, "status": "NOT_ASSESSED", "two_way": [table("ab", 77.5, preserved=False)]}
    said = words(card(spec=spec(publication="aggregates"), utility=alone, protected=margins(*"abcd")))
    assert "No margin holds a pair of variables" in said
    assert "no rows to compare with" not in said


def test_sdc_says_what_it_is_not() -> None:
    """Claim: the rule with its limit, the audit's tables, cells and narrowest interval (8 counts for a width of 7),
    what it does not cover, and that none of it is differential privacy."""
    made = card()["assurance"]
    said = " ".join(made["statement"])
    assert made["kind"] == "SDC"
    assert made["rule"] == {"limit": 10, "variant": "coarsened", "zeros": "lifted", "rounding": "nearest"}
    assert made["audit"]["cells"] == 10
    assert made["audit"]["tables"] == 3
    assert made["audit"]["narrowest_interval"] == 7
    for phrase in ("not differential privacy", "no epsilon", "a count below 10 became 10", "Not covered", "8 counts"):
        assert phrase in said
    assert "knows some of the people" in said


@pytest.mark.parametrize("method", get_args(Together))
def test_sdc_says_how_far_its_audit_goes(method: str) -> None:
    """Claim: threes of variables are told of by methods that bound them, cells that programs left out by all."""
    for cells in (0, 1_234):
        made = card(disclosure=AUDIT | {"method": method, "unsettled": cells})["assurance"]
        said = " ".join(made["statement"])
        assert ("pairs and threes of variables" in said) == (method in OF_THREES)
        assert ("not combinations of three variables or more" in said) == (method not in OF_THREES)
        assert ("for 1,234 cells not every such program was run" in said) == bool(cells)
        assert (made["audit"]["method"], made["audit"]["unsettled"]) == (method, cells)


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"variant": "controlled"}, "a count below 10 became 9, every other count is the true one"),
        ({"variant": "adjusted", "adjustment": "subtract"}, "brought towards the number of people (subtract)"),
        ({"zeros": "kept"}, "stayed empty, which says so of the people"),
        ({"rounding": "up", "limit": 5}, "a count below 5 became 5, every other one a multiple of 5 (rounded up)"),
    ],
)
def test_the_rule_is_the_plans(options: dict[str, Any], phrase: str) -> None:
    own = spec(plans={"sdc": {"policy": "sdc", **options}})
    assert phrase in " ".join(card(spec=own)["assurance"]["statement"])


def test_dp_says_what_was_promised_and_paid() -> None:
    made = card("dp")["assurance"]
    said = " ".join(made["statement"])
    assert (made["kind"], made["epsilon"], made["delta"], made["mu"]) == ("DP", 1.0, 1e-6, 0.25)
    assert (made["entries"], made["unit"], made["neighbouring"]) == (["e17"], "person", "one added or removed")
    for phrase in ("one person more or less", "e^1,", "up to 1e-06 (0.25-GDP)", "Totals are noisy"):
        assert phrase in said
    assert "coarsen" not in words(card("dp")).lower()
    assert "Releases of the same people under policy sdc are outside of any such account" in said


def test_replicates_are_no_independent_evidence() -> None:
    several = spec(plans={"sdc": {"policy": "sdc", "replicates": 5}})
    assert "not independent evidence" in words(card(spec=several))
    assert "Replicates" not in words(card())


def test_notes_are_told_in_words() -> None:
    said = words(card(decision=decision(notes=["NOT_REGISTERED"])))
    assert "Note NOT_REGISTERED: Made by `synth margins`, outside of a registered cohort" in said


def test_what_the_recipe_left_to_the_rows_is_told() -> None:
    """Claim: small categories that counts decided on are named with their column, declared zeros with their labels."""
    recipe = {
        "variables": {"a": {"combine_below": 20}, "b": {"categories": ["no", "yes"]}},
        "structural_zeros": [{"a": ["no"], "d": ["yes"]}],
    }
    made = card(spec=spec(recipe=recipe))
    assert made["curation"]["data_dependent"] == ["a"]
    assert made["curation"]["recipe"]["variables"]["b"] == {"categories": ["no", "yes"]}
    assert "decided by counts of the rows: a." in words(made)


def test_tables_are_aligned_as_text() -> None:
    """Claim: all lines are equally wide, a wide letter counting twice; numbers stand to the right; a name of a file
    with a bar, a line break or a code that turns the line does not break the table."""
    text = aligned([("name", "rows"), ("혼인", "7"), ("a|b\n\u202e", "12")])
    assert text.splitlines() == [
        "| name   | rows |",
        "| ------ | ---: |",
        "| 혼인   |    7 |",
        "| a\\|b?? |   12 |",
    ]


def test_many_relations_are_counted_and_not_listed() -> None:
    """Claim: with 20 variables in a chain the README names twelve of 171 lost pairs and says where all are."""
    chain = Domain(tuple(Variable(f"v{number}", ("no", "yes")) for number in range(20)))
    held = margins(*((f"v{n}", f"v{n + 1}") for n in range(19)), domain=chain)
    made = card(protected=held)
    assert len(made["not_preserved"]["pairs"]) == 171
    assert re.search(r"Pairs that no margin holds \(171\): (v\d+ × v\d+, ){11}v\d+ × v\d+ and 159 more", words(made))
