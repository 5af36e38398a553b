"""census.yaml: what it registers, scalars as they are written, and errors that name the field and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from synth_platform.contract.census_spec import CensusSpec, DpPlan, SdcPlan, load_census_spec
from synth_platform.contract.cohort_spec import CohortSpecError

TEXT = """
name: town
kind: census
title: A town
dua_tag: IN_REVIEW
source: {microdata: people.csv}
recipe:
  variables:
    married: {categories: [no, yes]}
    parish: {categories: [007, 008]}
privacy:
  domain: town
  n_ref: 9000
  budget: {epsilon: 2, delta: 1e-6}
plans:
  rounded: {policy: sdc, limit: 5, replicates: 3}
  eps1: {policy: dp, epsilon: 1}
"""

Document = dict[str, Any]


def written(folder: Path, document: Document | str) -> Path:
    path = folder / "census.yaml"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path


def load(folder: Path, change: Callable[[Document], Any] | None = None) -> CensusSpec:
    document = yaml.load(TEXT, yaml.BaseLoader)
    if change is not None:
        change(document)
    return load_census_spec(written(folder, document))


def test_scalars_stay_as_they_are_written(tmp_path: Path) -> None:
    """Claim: the categories `no` and `007` are not False and seven, while numbers of the plans are numbers."""
    spec = load_census_spec(written(tmp_path, TEXT))
    assert spec.recipe.variables["married"].categories == ("no", "yes")
    assert spec.recipe.variables["parish"].categories == ("007", "008")
    assert spec.plan("rounded") == SdcPlan(policy="sdc", limit=5, replicates=3)
    assert spec.plan("eps1") == DpPlan(policy="dp", epsilon=1.0)


def test_by_default_a_plan_lifts_zeros(tmp_path: Path) -> None:
    plan = load(tmp_path).plan("rounded")
    assert isinstance(plan, SdcPlan)
    assert (plan.variant, plan.zeros, plan.rounding) == ("coarsened", "lifted", "nearest")


def test_a_hierarchy_beside_the_file_becomes_groups(tmp_path: Path) -> None:
    (tmp_path / "work.csv").write_text("category,group\nsmith,trade\ntailor,trade\nfarmer,land\n", "utf-8")
    spec = load(tmp_path, lambda d: d["recipe"]["variables"].update(work={"hierarchy": "work.csv"}))
    assert spec.recipe.variables["work"].groups == {"trade": ("smith", "tailor"), "land": ("farmer",)}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["plans"]["rounded"].update(limit="10"),
        lambda d: d["plans"]["rounded"].update(seed="2"),
        lambda d: d["recipe"]["variables"]["married"].update(categories=["no", "yes", "widowed"]),
        lambda d: d["source"].update(microdata="other.csv"),
        lambda d: d["privacy"].update(domain="village"),
        lambda d: d.update(publication="aggregates"),
    ],
)
def test_the_registration_is_of_all_that_tables_depend_on(tmp_path: Path, change: Callable[[Document], Any]) -> None:
    before = load(tmp_path).registration_of("rounded")
    assert load(tmp_path, change).registration_of("rounded") != before


def test_the_registration_is_not_of_words_or_other_plans(tmp_path: Path) -> None:
    before = load(tmp_path).registration_of("rounded")

    def words(document: Document) -> None:
        document.update(title="Another", dua_tag="RELEASE_REVIEWED")
        document["plans"]["eps1"]["epsilon"] = "2"

    assert load(tmp_path, words).registration_of("rounded") == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["source"].update(tables="published"), "microdata .a file. or tables"),
        (lambda d: d.update(source={}), "microdata .a file. or tables"),
        (lambda d: d["source"].update(totals="differ"), "microdata have one total"),
        (lambda d: d["plans"].update(bad={"policy": "k-anonymity"}), "plans.bad"),
        (lambda d: d["plans"]["rounded"].update(limit="1"), "limit"),
        (lambda d: d["plans"]["rounded"].update(total="100"), "not adjusted; leave them out"),
        (lambda d: d["plans"]["rounded"].update(variant="controlled", rounding="up"), "rounds nothing"),
        (lambda d: d["plans"]["rounded"].update(epsilon="1"), "epsilon"),
        (lambda d: d["plans"].update({"Ein Plan": {"policy": "sdc"}}), "plans"),
        (lambda d: d.update(plans={}), "plans"),
        (lambda d: d.pop("privacy"), "add the section privacy"),
        (lambda d: d["plans"]["eps1"].update(epsilon="3"), "could never be paid; lower it"),
        (lambda d: d["privacy"]["budget"].update(delta="0.001"), "below 1/n_ref"),
        (
            lambda d: d["recipe"]["variables"]["married"].update(combine_below="5"),
            "married.combine_below: beside declared",
        ),
        (lambda d: d.update(nme="town"), "nme"),
    ],
)
def test_a_fault_is_named_by_file_and_field(tmp_path: Path, change: Callable[[Document], Any], message: str) -> None:
    with pytest.raises(CohortSpecError, match=rf"(?s)census\.yaml: .*{message}"):
        load(tmp_path, change)


def test_published_tables_have_no_recipe_of_rows_and_no_noise(tmp_path: Path) -> None:
    def published(document: Document) -> None:
        document["source"] = {"tables": "yearbook", "totals": "differ"}

    with pytest.raises(CohortSpecError, match="policy dp adds noise to counts of microdata"):
        load(tmp_path, published)

    def without_noise(document: Document) -> None:
        published(document)
        del document["plans"]["eps1"]

    with pytest.raises(CohortSpecError, match="recipe: published tables are counted"):
        load(tmp_path, without_noise)

    def whole(document: Document) -> None:
        without_noise(document)
        document["recipe"] = {"structural_zeros": [{"age": ["0-15"], "married": ["yes"]}]}

    assert load(tmp_path, whole).source.totals == "differ"


@pytest.mark.parametrize("text", ["- a list", "name: [", "name: town\nname: village\n"])
def test_what_is_no_census_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(CohortSpecError, match=r"census\.yaml"):
        load_census_spec(written(tmp_path, text))
    with pytest.raises(CohortSpecError, match="no such file"):
        load_census_spec(tmp_path / "nowhere.yaml")


def test_a_plan_that_is_not_registered_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CohortSpecError, match="no plan 'eps9'; it has rounded, eps1"):
        load(tmp_path).plan("eps9")
