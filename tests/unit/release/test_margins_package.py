"""The package of synthetic tables: written whole or not at all, its margins readable again, nothing private in it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from synth_platform.contract.census_spec import CensusSpec, DpPlan, SdcPlan
from synth_platform.margins.fitting.fitted import Fitted
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.noise.noisy import NoisyMargins, measure_declared
from synth_platform.margins.planned import compare, model, protect, tables
from synth_platform.margins.reading.curate import Curated, curate
from synth_platform.margins.reading.published import read_tables
from synth_platform.margins.replicates import replicate, stacked
from synth_platform.margins.rows import Rows
from synth_platform.margins.store import content_digest
from synth_platform.privacy.accounting import gaussian_mu
from synth_platform.privacy.curator import Curator
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.noise import CryptographicNoise
from synth_platform.privacy.restricted import seal
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.release.folder import PackageError, verify_package
from synth_platform.release.margins import DP_STAGE, SDC_STAGE, decide_coarsened, decide_noisy
from synth_platform.release.margins_package import released_margins, table_sha256, write_margins_package
from synth_platform.release.standing import standing_fault

Document = dict[str, Any]
NAME = "toy-margins-sdc"
SECRET = 1237  # a true count: 1240 goes out
RECIPE: Document = {
    "variables": {"age": {"bands": [0, 15, 65], "top": 65}, "혼인|상태": {"missing": "unknown"}},
    "structural_zeros": [{"age": ["0-14"], "혼인|상태": ["married"]}],
}
AUDIT = {
    "status": "PASS",
    "reasons": [],
    "limit": 10,
    "method": "shuttle",
    "unsettled": 0,
    "tables": [{"title": "age × sex", "cells": 6, "narrowest": 9}],
}


def frame() -> pl.DataFrame:
    cells = [(7, "f", "single", SECRET), (40, "f", "married", 700), (40, "m", "married", 702), (7, "m", None, 1301)]
    cells += [(70, "m", "single", 333), (70, "f", "married", 444), (40, "m", "single", 3)]
    rows = [(age, sex, marital) for age, sex, marital, times in cells for _ in range(times)]
    return pl.DataFrame(rows, schema=["age", "sex", "혼인|상태"], orient="row")


def spec(**changes: Any) -> CensusSpec:
    document = {
        "name": "toy",
        "kind": "census",
        "title": "Toy census",
        "dua_tag": "RELEASE_REVIEWED",
        "source": {"microdata": "toy.csv"},
        "recipe": RECIPE,
        "plans": {"sdc": {"policy": "sdc", "replicates": 2, "rows": 500}},
    }
    return CensusSpec.model_validate({**document, **changes})


@dataclass(frozen=True)
class Made:
    """A plan of policy sdc from rows to tables."""

    spec: CensusSpec
    curated: Curated
    protected: MarginSet
    fitted: Fitted
    synthetic: pl.DataFrame
    utility: Document

    def decide(self, **changes: Any) -> Document:
        decided = decide_coarsened(
            spec=self.spec,
            plan="sdc",
            disclosure=AUDIT,
            fit=self.fitted.report,
            violations=0,
            utility=self.utility,
        )
        return {**decided, **changes}

    def write(self, root: Path, **changes: Any) -> Path:
        arguments = {
            "name": NAME,
            "spec": self.spec,
            "stage": SDC_STAGE,
            "protected": self.protected,
            "fit": self.fitted.report,
            "synthetic": self.synthetic,
            "disclosure": AUDIT,
            "utility": self.utility,
            "decision": self.decide(),
        }
        return write_margins_package(root, **{**arguments, **changes})


def make(**changes: Any) -> Made:
    own = spec(**changes)
    plan = own.plan("sdc")
    assert isinstance(plan, SdcPlan)
    curated = curate(frame(), own.recipe, "toy.csv")
    protected = protect(curated.margin_set(), plan)
    fitted = model(protected, plan)
    drawn = tables(fitted, plan)
    utility = compare(curated.rows, drawn[0], protected, plan)
    return Made(own, curated, protected, fitted, stacked(drawn), utility)


@pytest.fixture(scope="module")
def made() -> Made:
    return make()


def test_a_package_is_written_whole(made: Made, tmp_path: Path) -> None:
    """Claim: every file that the README lists and no other, in a flat folder that `sha256sum` accepts, whatever the
    variables are called; each replicate is a table, the first one also as CSV."""
    folder = made.write(tmp_path / "released")
    assert {file.name for file in folder.iterdir()} == {
        "README.md",
        "SHA256SUMS",
        "card.json",
        "data_dictionary.csv",
        "decision.json",
        "disclosure.json",
        "domain.json",
        "margin_01_age_sex.csv",
        "margin_02_age_-.csv",
        "margin_03_sex_-.csv",
        "provenance.json",
        "structural_zeros.json",
        "table.csv",
        "table.parquet",
        "table_2.parquet",
    }
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    verify_package(folder)
    for number, file in enumerate(("table.parquet", "table_2.parquet"), start=1):
        assert pl.read_parquet(folder / file).equals(replicate(made.synthetic, number))
    assert pl.read_csv(folder / "table.csv").equals(replicate(made.synthetic))
    assert json.loads((folder / "decision.json").read_text("utf-8")) == {**made.decide(), "utility": None}
    assert json.loads((folder / "disclosure.json").read_text("utf-8")) == AUDIT


def test_the_table_has_one_digest(made: Made, tmp_path: Path) -> None:
    """Claim: what a register keeps is the SHA-256 of table.parquet as `sha256sum` tells it."""
    folder = made.write(tmp_path)
    told = subprocess.run(["sha256sum", "table.parquet"], cwd=folder, check=True, capture_output=True, text=True)
    assert told.stdout.split()[0] == table_sha256(made.synthetic)


def test_the_margins_of_a_package_are_read_again(made: Made, tmp_path: Path) -> None:
    """Claim: domain, counts, declared zeros and provenance come back, and the same plan makes the same tables of them:
    coarsening what was coarsened changes nothing."""
    folder = tmp_path / "margins"
    folder.mkdir()
    released_margins(made.write(tmp_path), folder)
    again = read_tables(folder, totals="differ")
    assert again.domain == made.protected.domain
    assert again.zeros == made.protected.zeros
    for read, written in zip(again, made.protected, strict=True):
        assert read.names == written.names
        np.testing.assert_array_equal(read.counts, written.counts)
        assert read.provenance[: len(written.provenance)] == written.provenance
    plan = made.spec.plan("sdc")
    assert isinstance(plan, SdcPlan)
    assert stacked(tables(model(protect(again, plan), plan), plan)).equals(made.synthetic)


def test_nothing_private_goes_out(made: Made, tmp_path: Path) -> None:
    """Claim: neither a true count nor a ratio of the utility document, which compares with the rows, is in any text."""
    assert SECRET in made.curated.margin_set().margins[0].counts
    folder = made.write(tmp_path)
    content = "".join(
        file.read_text("utf-8") for file in folder.iterdir() if file.suffix in (".json", ".md") or "margin" in file.name
    )
    assert str(SECRET) not in content
    ratios = [f"{each['s_pmse']:.3g}" for size in ("two_way", "three_way") for each in made.utility[size]]
    assert not any(f"| {ratio} |" in content for ratio in ratios)
    assert "s_pmse" not in content
    assert not (folder / "heat_map.png").exists()


def test_bands_go_out_where_the_policy_says_so(tmp_path: Path) -> None:
    """Claim: under aggregates the decision's status of utility, bands, and still no figure and no picture."""
    opened = make(publication="aggregates")
    folder = opened.write(tmp_path)
    assert not (folder / "heat_map.png").exists()
    card = json.loads((folder / "card.json").read_text("utf-8"))
    assert sum(card["utility"]["bands"]["two_way"].values()) == len(opened.utility["two_way"]) == 3
    assert json.loads((folder / "decision.json").read_text("utf-8")) == opened.decide()
    assert opened.decide()["utility"] == {"status": opened.utility["status"]}
    assert "## Utility, measured beside the private rows" in (folder / "README.md").read_text("utf-8")
    assert not any("s_pmse" in file.read_text("utf-8") for file in folder.glob("*.json"))


def test_a_package_stands_while_its_published_decision_does(made: Made, tmp_path: Path) -> None:
    """Claim: the stored decision keeps the status of utility, that of the package does not tell it, and both agree
    under the policy that it was published by; another stored decision, or another policy, is a fault."""
    folder = made.write(tmp_path)
    decision = made.decide()
    assert decision["utility"]["status"] in ("good", "acceptable", "poor")
    assert json.loads((folder / "decision.json").read_text("utf-8")) == {**decision, "utility": None}
    assert standing_fault(folder, decision, "statuses_only") is None
    assert "is not the one" in str(standing_fault(folder, decision, "aggregates"))
    assert "is not the one" in str(standing_fault(folder, {**decision, "notes": ["OTHER"]}, "statuses_only"))
    assert "BLOCKED" in str(standing_fault(folder, {**decision, "decision": "BLOCKED"}, "statuses_only"))


@pytest.mark.parametrize(("missed", "reasons"), [(0.1, []), (0.1001, ["FIT_FAIL"])])
def test_a_fit_that_misses_a_tenth_is_not_released(made: Made, tmp_path: Path, missed: float, reasons: Any) -> None:
    """Claim: what the model misses of its worst margin blocks from a tenth on, below it is a note."""
    residuals = dict.fromkeys(made.fitted.report.residuals, 0.01) | {"age × sex": missed}
    far = replace(made.fitted.report, residuals=residuals, status="limit_cycle")
    assert far.largest_residual == missed
    decision = decide_coarsened(
        spec=made.spec, plan="sdc", disclosure=AUDIT, fit=far, violations=0, utility=made.utility
    )
    assert decision["reasons"] == reasons
    assert decision["notes"] == ["MARGINS_NOT_MATCHED"]
    assert decision["decision"] == ("BLOCKED" if reasons else "ELIGIBLE_SDC")
    if reasons:
        with pytest.raises(PackageError, match="FIT_FAIL"):
            made.write(tmp_path / "released", decision=decision)


def test_the_dictionary_and_the_readme_are_tables(made: Made, tmp_path: Path) -> None:
    """Claim: a line for each variable, the missing category told apart; a bar in a name does not break the README."""
    folder = made.write(tmp_path)
    dictionary = pl.read_csv(folder / "data_dictionary.csv")
    assert dictionary["column"].to_list() == ["age", "sex", "혼인|상태"]
    assert dictionary.row(2) == ("혼인|상태", "text", "unknown", "married|single")
    lines = (folder / "README.md").read_text("utf-8").splitlines()
    described = [line for line in lines if line.startswith("| 혼인")]
    assert len(described) == 1
    assert described[0].replace("\\|", "").count("|") == 5
    assert "- age `0-14` with 혼인|상태 `married`" in lines
    assert "2 tables of 500 synthetic rows, 3 variables." in " ".join(lines)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"decision": "BLOCKED", "reasons": ["DISCLOSURE_FAIL"]}, "DISCLOSURE_FAIL"),
        ({"reasons": ["SCHEMA_VIOLATION"]}, "SCHEMA_VIOLATION"),
        ({"decision": "ELIGIBLE_FORMAL"}, "decision does not hold"),
        ({"generator": "dp_margins"}, "decision does not hold"),
        ({"cohort": "other"}, "cohort does not hold"),
    ],
)
def test_another_decision_writes_nothing(made: Made, tmp_path: Path, changes: Document, fault: str) -> None:
    with pytest.raises(PackageError, match=f"NOT_ELIGIBLE: {NAME} .*{fault}.*nothing was written"):
        made.write(tmp_path / "released", decision=made.decide(**changes))
    assert not (tmp_path / "released").exists()


def test_what_the_decision_rests_on_is_looked_at_again(made: Made, tmp_path: Path) -> None:
    """Claim: an eligible decision does not carry a failed audit, a table with a foreign cell, a missing replicate, or a
    census whose agreement was not reviewed."""
    wrong = made.synthetic.with_columns(pl.lit("x").alias("sex"))
    cases: list[tuple[Document, str]] = [
        ({"disclosure": {**AUDIT, "status": "FAIL"}}, "disclosure"),
        ({"disclosure": None}, "disclosure"),
        ({"synthetic": wrong}, "schema"),
        ({"synthetic": made.synthetic.head(500)}, "schema"),
        ({"spec": made.spec.model_copy(update={"dua_tag": "PENDING"})}, "dua"),
    ]
    for changes, fault in cases:
        with pytest.raises(PackageError, match=f"NOT_ELIGIBLE.*{fault} does not hold"):
            made.write(tmp_path / "released", **changes)
    assert not (tmp_path / "released").exists()


def test_a_release_is_immutable(made: Made, tmp_path: Path) -> None:
    """Claim: the same again returns the same folder; other tables under its name are refused."""
    folder = made.write(tmp_path)
    before = (folder / "SHA256SUMS").read_bytes()
    assert made.write(tmp_path) == folder
    other = replace(made, synthetic=made.synthetic.reverse())
    with pytest.raises(PackageError, match="EXISTS"):
        other.write(tmp_path)
    assert (folder / "SHA256SUMS").read_bytes() == before


def test_noisy_tables_go_with_their_ledger(tmp_path: Path) -> None:
    """Claim: under policy dp ledger.json tells domain, unit, cost and the entries that paid, and there is no disclosure
    audit; the card's entries are the ledger's."""
    privacy = {"domain": "toy", "n_ref": 5000, "budget": {"epsilon": 2.0, "delta": 1e-6}}
    recipe = {
        "variables": {
            "age": {"bands": [0, 15, 65], "top": 65},
            "sex": {"categories": ["f", "m"]},
            "혼인|상태": {"categories": ["married", "single"], "missing": "unknown"},
        }
    }
    own = spec(privacy=privacy, recipe=recipe, plans={"eps1": {"policy": "dp", "epsilon": 1.0}})
    plan = own.plan("eps1")
    assert isinstance(plan, DpPlan)
    rows = curate(frame(), own.recipe, "toy.csv")
    ledger, store = Ledger(f"sqlite:///{tmp_path}/ledger.db"), StatisticStore(tmp_path / "statistics")
    ledger.set_budget("toy", 2.0, 1e-6)
    curator = Curator(ledger, store, CryptographicNoise(), domain="toy", cohort="toy", run_id="run-17")
    table = seal(rows.rows, key=FingerprintKey(bytes(range(32))), digest=content_digest)
    margins, releases = measure_declared(
        lambda query: table.measure(query, curator), rows.rows.domain, rows.margins, (), gaussian_mu(1.0, 1e-6)
    )
    measured = NoisyMargins(margins, tuple(r.entry_id for r in releases), False, (), table.fingerprint)
    fitted = model(margins, plan)
    drawn: tuple[Rows, ...] = tables(fitted, plan)
    decision = decide_noisy(
        spec=own,
        plan="eps1",
        measured=measured,
        fit=fitted.report,
        violations=0,
        utility={"status": "good"},
        ledger=ledger,
        store=store,
    )
    folder = write_margins_package(
        tmp_path / "released",
        name="toy-dp_margins-eps1",
        spec=own,
        stage=DP_STAGE,
        protected=margins,
        fit=fitted.report,
        synthetic=stacked(drawn),
        disclosure=None,
        utility={"status": "good"},
        decision=decision,
        ledger_table=ledger.table(),
    )
    told = json.loads((folder / "ledger.json").read_text("utf-8"))
    assert (told["domain"], told["unit"], told["head_hash"]) == ("toy", "person", ledger.table()[-1]["hash"])
    assert [entry["entry_id"] for entry in told["entries"]] == list(measured.entries)
    card = json.loads((folder / "card.json").read_text("utf-8"))
    assert card["assurance"]["kind"] == "DP"
    assert card["assurance"]["entries"] == list(measured.entries)
    assert not (folder / "disclosure.json").exists()
    content = "".join(file.read_text("utf-8") for file in folder.glob("*.json"))
    assert "run-17" not in content
    assert table.fingerprint not in content
