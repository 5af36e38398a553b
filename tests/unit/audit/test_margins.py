"""Evidence of real coarsened margins passes; whatever is changed in it, and covered up by a new seal, is named."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from synth_platform.audit import margins_bounds
from synth_platform.audit.margins import audit_margins
from synth_platform.audit.reading import digest
from synth_platform.audit.report import Report
from tests.unit.audit.margins_runs import coarsened_evidence, people

Document = dict[str, Any]
EXPECTED = {"cohort": "c", "stage": "margins", "plan": "p"}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """An eligible plan of two replicates with its package."""
    return coarsened_evidence(tmp_path_factory.mktemp("eligible"), replicates=2)


@pytest.fixture
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One linear program: seconds less over all tests."""
    monkeypatch.setattr(margins_bounds, "MOST_THREES", 1)
    monkeypatch.setattr(margins_bounds, "MOST_PROGRAMS", 2)


def failures(report: Report) -> list[str]:
    return [f"{check.name} [{check.kind}] {check.detail}" for check in report.failures]


def test_an_eligible_plan_passes(evidence: Document) -> None:
    report = audit_margins(evidence, expected=EXPECTED)
    assert failures(report) == []
    assert report.ok
    assert evidence["documents"]["decision"]["decision"] == "ELIGIBLE_SDC"
    assert report.documents["margins/decision"] == digest(evidence["documents"]["decision"])
    assert set(report.documents) == {
        f"margins/{name}" for name in ("protected", "model", "synthetic", "disclosure_gate", "utility_gate", "decision")
    }
    json.dumps(report.as_dict())


def test_a_report_shows_no_label_and_no_figure_of_private_rows(evidence: Document) -> None:
    """Details of failed checks as well: every count, label and figure of utility is changed, and none is told."""
    wrong = copy.deepcopy(evidence)
    for margin in wrong["protected"]:
        margin["counts"] = [count + 7_777_777 for count in margin["counts"]]
    for table in wrong["people"]["tables"]:
        table[0] += 7_777_777
    for table in wrong["documents"]["utility_gate"]["two_way"]:
        table["vw"] += 7_777_777
    told = json.dumps(audit_margins(resealed(wrong)).as_dict())
    assert "7777777" not in told.replace(".", "").replace(",", "")
    assert "region 0" not in told


def resealed(evidence: Document) -> Document:
    evidence["body_sha256"] = digest({key: value for key, value in evidence.items() if key != "body_sha256"})
    return evidence


Change = Callable[[Document], object]


OTHERS: dict[str, Document] = {
    "kept zeros": {"zeros": "kept"},
    "controlled": {"variant": "controlled"},
    "rounded up": {"rounding": "up"},
    "rounded down": {"rounding": "down", "limit": 7},
    "apportioned": {"variant": "adjusted"},
    "subtracted": {"variant": "adjusted", "adjustment": "subtract"},
    "subtracted multiples": {"variant": "adjusted", "adjustment": "subtract_multiple"},
    "subtracted below the limit": {"variant": "adjusted", "adjustment": "subtract_below_limit"},
    "a registered total": {"variant": "adjusted", "total": 3_333},
    "few rows": {"rows": 10, "replicates": 6},
    "margins by name": {"margins": [["sex", "age"], ["marital status", "age", "region"]]},
    "not reviewed": {"dua_tag": "OPEN"},
    "nothing to compare with": {"real": False},
    "few people": {"frame": people(150)},
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.usefixtures("few_programs")
def test_other_plans_pass_whether_blocked_or_not(other: str) -> None:
    evidence = coarsened_evidence(**OTHERS[other])
    report = audit_margins(evidence, expected=EXPECTED)
    assert failures(report) == []
    blocked = evidence["documents"]["decision"]["decision"] == "BLOCKED"
    assert blocked is (other in ("controlled", "not reviewed", "few people"))


@pytest.mark.usefixtures("few_programs")
def test_a_fit_that_misses_a_tenth_has_to_be_blocked() -> None:
    """Of 150 people lifted zeros make up most counts; a decision that lets the fit pass is named."""
    evidence = coarsened_evidence(**OTHERS["few people"])
    assert evidence["model"]["largest_residual"] > 0.1
    assert evidence["documents"]["decision"]["reasons"] == ["FIT_FAIL"]
    evidence["documents"]["decision"] |= {"reasons": [], "decision": "ELIGIBLE_SDC"}
    names = {check.name for check in audit_margins(resealed(evidence), expected=EXPECTED).failures}
    assert names == {"G4/margins/decision/reasons", "G4/margins/decision/grade"}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """An eligible plan whose package tells bands of utility."""
    return coarsened_evidence(tmp_path_factory.mktemp("opened"), publication="aggregates", limit=80)


@pytest.mark.usefixtures("few_programs")
def test_bands_may_be_in_a_package_where_that_is_registered(opened: Document) -> None:
    assert failures(audit_margins(opened, expected=EXPECTED)) == []
    assert opened["package"]["decision"]["utility"] == opened["documents"]["decision"]["utility"]
    assert opened["package"]["card"]["utility"]["bands"]["two_way"] == {"good": 1, "acceptable": 4, "poor": 1}


FIGURES: dict[str, Change] = {
    "a figure": lambda utility: utility.update(independent_sample=2.0),
    "figures of a table": lambda utility: utility["not_good"]["two_way"][0].update(s_pmse=3.4),
    "a count as a fraction": lambda utility: utility["bands"]["two_way"].update(
        {band: float(number) for band, number in utility["bands"]["two_way"].items()}
    ),
    "a band of other tables": lambda utility: utility["bands"].update(two_way={"good": 7}),
    "a table that is called good": lambda utility: utility["not_good"]["two_way"].pop(),
    "another status": lambda utility: utility.update(status="good"),
}


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.usefixtures("few_programs")
def test_no_figure_of_utility_may_be_on_a_card(figure: str, opened: Document) -> None:
    wrong = copy.deepcopy(opened)
    FIGURES[figure](wrong["package"]["card"]["utility"])
    names = [check.name for check in audit_margins(resealed(wrong), expected=EXPECTED).failures]
    assert names == ["G4/margins/package/card/utility"]


def part(name: str, /, **changes: object) -> Change:
    """Fields of a stored document."""
    return lambda evidence: evidence["documents"][name].update(changes)


def all_of(*changes: Change) -> Change:
    return lambda evidence: [change(evidence) for change in changes]


def margin(evidence: Document, *names: str) -> Document:
    """The released margin over the named variables."""
    return cast(Document, next(m for m in evidence["protected"] if m["names"] == list(names)))


def gate_table(**changes: int) -> Change:
    """Figures of the first table of the disclosure gate."""
    return lambda evidence: evidence["documents"]["disclosure_gate"]["tables"][0].update(changes)


def without_threes(evidence: Document) -> None:
    """The tables that a weaker method would have, by the name of the stronger."""
    gate = evidence["documents"]["disclosure_gate"]
    gate["tables"] = [table for table in gate["tables"] if table["title"].count("×") < 2]


def one_count(evidence: Document, by: float, of: str = "age") -> None:
    counts = margin(evidence, of, "sex" if of == "age" else "region")["counts"]
    counts[int(np.argmax(counts))] += by


def structural_zero_filled(evidence: Document) -> None:
    """Married children, among the released counts."""
    margin(evidence, "age", "marital status")["counts"][1] = 10


def small_cell(evidence: Document) -> None:
    counts = margin(evidence, "region", "marital status")["counts"]
    counts[int(np.argmin(counts))] = 3


def failed_gate(evidence: Document) -> None:
    """A gate that found something says PASS, and so does the decision."""
    gate_table(recoverable=1)(evidence)


def understated(evidence: Document) -> None:
    model = evidence["model"]
    model["residuals"] = [residual / 2 for residual in model["residuals"]]
    model["largest_residual"] /= 2
    evidence["documents"]["decision"]["fit"]["largest_residual"] /= 2


def true_rows(evidence: Document) -> None:
    """The second replicate is the private rows: every table of it."""
    tables, two = evidence["people"]["tables"], evidence["synthetic"][1]
    two["rows"], two["tables"] = evidence["people"]["rows"], copy.deepcopy(tables)
    shapes = {v["name"]: len(v["categories"]) for v in evidence["variables"]}
    for at, name in enumerate(shapes):
        held, table = next((n, t) for n, t in zip(evidence["tables"], tables, strict=True) if name in n)
        counts = np.reshape(table, [shapes[n] for n in held])
        two["one_way"][at] = counts.sum(axis=tuple(i for i, n in enumerate(held) if n != name)).tolist()
    evidence["registered"]["plan"]["rows"] = evidence["people"]["rows"]


def one_row_moved(evidence: Document) -> None:
    """Twenty people more in one cell of a replicate, and in everything it adds up to."""
    two = evidence["synthetic"][1]
    two["tables"][0][0] += 400
    two["rows"] += 400


def skewed(evidence: Document) -> None:
    """A replicate of another model: two regions swapped in all its tables, as in a consistent table of people."""
    for replicate in evidence["synthetic"][:1]:
        shapes = {v["name"]: len(v["categories"]) for v in evidence["variables"]}
        for names, at in [((n,), i) for i, n in enumerate(shapes)]:
            if names == ("region",):
                replicate["one_way"][at].reverse()
        for at, names in enumerate(evidence["tables"]):
            if "region" in names:
                table = np.reshape(replicate["tables"][at], [shapes[n] for n in names])
                replicate["tables"][at] = np.flip(table, axis=names.index("region")).ravel().tolist()


def copied(evidence: Document) -> None:
    evidence["synthetic"][1] = copy.deepcopy(evidence["synthetic"][0])


def child_married(evidence: Document) -> None:
    """A row of a replicate in a structural zero."""
    at = evidence["tables"].index(["age", "marital status"])
    table = evidence["synthetic"][0]["tables"][at]
    table[0], table[1] = table[0] - 1, 1


def better_band(evidence: Document) -> None:
    utility = evidence["documents"]["utility_gate"]
    table = max(utility["two_way"], key=lambda each: each["s_pmse"])
    table["band"] = "good" if table["band"] != "good" else "acceptable"


def better_utility(evidence: Document) -> None:
    """Statistics of a better table, with bands that fit."""
    for table in evidence["documents"]["utility_gate"]["two_way"]:
        table |= {"vw": table["vw"] / 10, "s_pmse": table["s_pmse"] / 10, "band": "good"}
    evidence["documents"]["utility_gate"]["status"] = "good"
    evidence["documents"]["decision"]["utility"]["status"] = "good"


def exact_count_in_the_package(evidence: Document) -> None:
    lines = evidence["package"]["margins"][0]
    lines[1][-1] = "437"


def an_altered_file(evidence: Document) -> None:
    evidence["package"]["files"]["README.md"] = "0" * 64


def probabilities_moved(evidence: Document) -> None:
    table = evidence["model"]["tables"][0]
    table[0], table[1] = table[0] + 0.01, table[1] - 0.01


def another_count_of_the_people(evidence: Document) -> None:
    """True counts that the released one is right for, but not those of the rows."""
    counts = evidence["counted"][0]["counts"]
    counts[0] += 1


TOUCHED: dict[str, tuple[str, Change]] = {
    "another format": ("G1/format", lambda e: e.update(format="synth-discovery-evidence-1")),
    "a section more": ("G1/sections", lambda e: e.update(remarks={})),
    "free text": ("G1/registered/codes", lambda e: e["registered"].update(unit="Anna, ward 3")),
    "another plan": ("G1/scope/plan", lambda e: e["scope"].update(plan="q")),
    "another stage": ("G1/scope/stage", lambda e: e["scope"].update(stage="dp_margins")),
    "another cohort registered": ("G1/registered/cohort", lambda e: e["registered"].update(cohort="other")),
    "a missing document": ("G1/documents", lambda e: e["documents"].pop("disclosure_gate")),
    "a registration that is no digest": ("G1/registration", lambda e: e["registered"].update(registration="x")),
    "a table twice": ("G1/tables", lambda e: e["tables"].append(e["tables"][0])),
    "a released count off by a multiple": ("age+sex/counts", lambda e: one_count(e, 10)),
    "a released count off by a little": ("age+sex/counts", lambda e: one_count(e, 0.01)),
    "an exact count": ("age+sex/counts", lambda e: margin(e, "age", "sex").update(counts=e["counted"][0]["counts"])),
    "a structural zero filled": ("coarsened/02:age+marital?status/structural", structural_zero_filled),
    "a small cell": ("region+marital?status/limit", small_cell),
    "a zero kept": (
        "region+marital?status/zeros",
        lambda e: margin(e, "region", "marital status")["counts"].__setitem__(0, 0),
    ),
    "another limit registered": ("/counts", lambda e: e["registered"]["plan"].update(limit=5)),
    "another rule told": (
        "01:age+region/provenance",
        lambda e: margin(e, "age", "region")["provenance"].__setitem__(1, "coarsened: limit 10, zeros kept"),
    ),
    "a margin left out": ("coarsened/declared", lambda e: e["protected"].pop()),
    "another margin declared": ("coarsened/declared", lambda e: e["registered"].update(margins=[["age", "sex"]])),
    "a zero nobody declared": (
        "coarsened/structural_zeros",
        lambda e: e["registered"].update(structural_zeros=[]),
    ),
    "true counts of other rows": ("G3/margins/counted/age+sex", another_count_of_the_people),
    "a gate that found a cell": ("disclosure_gate/reasons", failed_gate),
    "a gate that passes with a reason": (
        "disclosure_gate/status",
        all_of(gate_table(recoverable=1), part("disclosure_gate", reasons=["small_cell_recoverable"])),
    ),
    "a gate with another limit": ("disclosure_gate/limit", part("disclosure_gate", limit=5)),
    "a gate of fewer tables": ("disclosure_gate/tables", lambda e: e["documents"]["disclosure_gate"]["tables"].pop()),
    "a gate without its threes": ("disclosure_gate/tables", without_threes),
    "a gate of fewer cells": ("disclosure_gate/age+sex/cells", gate_table(cells=9)),
    "a gate with wider bounds": ("disclosure_gate/age+sex/narrowest", gate_table(narrowest=500)),
    "a gate that finds what is not there": ("disclosure_gate/age+sex/recoverable/true", gate_table(recoverable=3)),
    "bounds of each table alone": ("disclosure_gate/method", part("disclosure_gate", method="each_alone")),
    "people who differ from themselves": (
        "disclosure_gate/differences",
        part("disclosure_gate", differences=[{"first": "age × sex", "second": "age × region", "over": [], "cells": 1}]),
    ),
    "margins that contradict": (
        "disclosure_gate/reasons",
        part("disclosure_gate", reasons=["margins_contradict"], status="FAIL"),
    ),
    "residuals understated": ("/residual", understated),
    "a largest residual understated": ("model/largest", lambda e: e["model"].update(largest_residual=0.0)),
    "a fit that says it matched": ("model/status", lambda e: e["model"].update(status="matched")),
    "another tolerance": ("model/tolerance", lambda e: e["model"].update(tolerance=0.5)),
    "another total": ("model/total", lambda e: e["model"].update(total=e["model"]["total"] + 1)),
    "probabilities of another model": ("model/sex/agrees", probabilities_moved),
    "the private rows as a replicate": ("synthetic/1/age+region/people", true_rows),
    "tables of the private rows": ("synthetic/1/region+marital?status/identical", true_rows),
    "a replicate of other people": ("synthetic/0/region/drawn", skewed),
    "a replicate that does not add up": ("synthetic/1/age+sex/age", one_row_moved),
    "a replicate of more rows": ("synthetic/1/rows", one_row_moved),
    "a copy of a replicate": ("synthetic/0-1/apart", copied),
    "a replicate less": ("synthetic/replicates", lambda e: e["synthetic"].pop()),
    "a married child": ("synthetic/0/age+marital?status/structural", child_married),
    "a married child is a violation": ("G4/margins/decision/schema", child_married),
    "a better band": ("/band", better_band),
    "better utility": ("utility_gate/age+sex/vw", better_utility),
    "a better status": ("utility_gate/status", part("utility_gate", status="NOT_ASSESSED")),
    "a table that was fitted": (
        "/preserved",
        lambda e: e["documents"]["utility_gate"]["two_way"][0].update(preserved=False),
    ),
    "a table of utility left out": (
        "utility_gate/two_way",
        lambda e: e["documents"]["utility_gate"]["two_way"].pop(),
    ),
    "the ratio of a model": (
        "utility_gate/cart/s_pmse",
        lambda e: e["documents"]["utility_gate"]["cart"].update(s_pmse=1.0),
    ),
    "another decision": ("decision/grade", part("decision", decision="ELIGIBLE_FORMAL")),
    "a decision blocked for nothing": ("decision/reasons", part("decision", reasons=["DUA_NOT_REVIEWED"])),
    "not reviewed": ("decision/reasons", lambda e: e["registered"].update(dua_tag="OPEN")),
    "an assurance of more": ("decision/assurance", part("decision", assurance="DP")),
    "an epsilon": ("decision/epsilon/promised", part("decision", epsilon=1.0)),
    "ledger entries": ("decision/ledger/promised", part("decision", ledger={"entries": ["M_COUNTS-1"]})),
    "a ledger": ("G2/margins/ledger", lambda e: e.update(ledger={"rows": []})),
    "a gate passed in the decision alone": (
        "decision/disclosure",
        lambda e: e["documents"]["disclosure_gate"].update(status="FAIL"),
    ),
    "violations hidden": ("decision/schema", part("decision", schema={"violations": 2})),
    "options of another plan": ("decision/options", lambda e: e["registered"]["plan"].update(seed=2)),
    "another word on the card": ("package/card/assurance", lambda e: e["package"]["card"].update(kind="DP")),
    "another word in the README": ("package/card/readme", lambda e: e["package"]["card"].update(readme=["DP"])),
    "a card that promises": ("package/card/epsilon", lambda e: e["package"]["card"].update(epsilon=1.0)),
    "a card that hides what it is not": (
        "package/card/not_private",
        lambda e: e["package"]["card"].update(not_private=False),
    ),
    "an exact count in the package": ("package/age+sex/counts", exact_count_in_the_package),
    "a margin missing in the package": ("package/margins", lambda e: e["package"]["margins"].pop()),
    "other rows in the package": ("package/tables", lambda e: e["package"].update(tables=["0" * 64, "0" * 64])),
    "an altered file": ("package/README.md/sha256", an_altered_file),
    "a picture": ("package/files", lambda e: e["package"]["files"].update({"heat_map.png": "0" * 64})),
    "a status of utility in the package": (
        "package/decision",
        lambda e: e["package"]["decision"].update(utility=e["documents"]["decision"]["utility"]),
    ),
    "utility on the card": ("package/card/utility", lambda e: e["package"]["card"].update(utility={"status": "good"})),
    "a section more on the card": ("package/card/fields", lambda e: e["package"]["card"]["fields"].append("s_pmse")),
    "a file more": ("package/files", lambda e: e["package"]["files"].update({"persons.csv": "0" * 64})),
    "another gate in the package": ("package/disclosure", lambda e: e["package"]["disclosure"].update(limit=5)),
    "a package of a blocked plan": ("package/eligible", part("decision", decision="BLOCKED")),
}


@pytest.mark.parametrize("touched", TOUCHED)
@pytest.mark.usefixtures("few_programs")
def test_what_is_changed_is_named(touched: str, evidence: Document) -> None:
    name, change = TOUCHED[touched]
    wrong = copy.deepcopy(evidence)
    change(wrong)
    report = audit_margins(resealed(wrong), expected=EXPECTED)
    assert not report.ok
    assert any(name in check.name for check in report.failures), failures(report)


@pytest.mark.parametrize("figure", ["recoverable", "small", "exact"])
@pytest.mark.usefixtures("few_programs")
def test_a_gate_that_misses_a_cell_is_named(figure: str) -> None:
    """A controlled release says of its small cells outright that they are small; the gate counts one fewer."""
    evidence = coarsened_evidence(variant="controlled", zeros="kept")
    gate = evidence["documents"]["disclosure_gate"]
    table = next(each for each in gate["tables"] if each[figure])
    table[figure] -= 1
    names = [check.name for check in audit_margins(resealed(evidence)).failures]
    assert len(names) == 1
    assert names[0].endswith(f"/{figure}")


def test_a_broken_seal_is_named(evidence: Document) -> None:
    wrong = copy.deepcopy(evidence) | {"body_sha256": "0" * 64}
    assert [check.name for check in audit_margins(wrong).failures] == ["G1/body"]


@pytest.mark.parametrize("body", [None, [], {}, {"scope": 3, "documents": []}, {"variables": [{"name": 1}]}])
def test_nothing_that_is_read_stops_the_audit(body: object) -> None:
    report = audit_margins(body)
    assert not report.ok
    assert report.failures


def test_every_section_may_be_missing_or_nonsense(evidence: Document, few_programs: None) -> None:
    for section in set(evidence) - {"body_sha256"}:
        for nonsense in (None, [None], {"a": [1, "b"]}):
            if section in ("package", "people", "ledger", "measured") and nonsense is None:
                continue
            wrong = {**evidence, section: nonsense}
            assert not audit_margins(resealed(wrong), expected=EXPECTED).ok, (section, nonsense)


def test_a_package_is_not_asked_of_a_plan_that_has_none(tmp_path: Path, few_programs: None) -> None:
    evidence = coarsened_evidence(replicates=2)
    assert evidence["package"] is None
    assert audit_margins(evidence, expected=EXPECTED).ok
