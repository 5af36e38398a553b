"""Labels that stand in a table because somebody has them, and whom the ledger takes for the same people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from synth_platform.contract.census_spec import CensusSpec, SdcPlan
from synth_platform.contract.recipe import Recipe
from synth_platform.margins.planned import protect
from synth_platform.margins.reading.census import Microdata, read_census
from synth_platform.margins.reading.curate import CurationError, curate
from synth_platform.margins.seen import SeenCategoriesError

PLAN = SdcPlan(policy="sdc", limit=10)


def people(rare: int) -> pl.DataFrame:
    names = ["ordinary illness"] * 300 + ["SECRET ILLNESS"] * rare
    return pl.DataFrame({"illness": names, "sex": ["f", "m"] * (len(names) // 2) + ["f"] * (len(names) % 2)})


def protected(frame: pl.DataFrame, recipe: dict[str, Any]) -> Any:
    made = Recipe.model_validate(recipe)
    return protect(curate(frame, made, "people.csv").margin_set(), PLAN, made)


@pytest.mark.parametrize("rare", [1, 9])
def test_a_label_that_only_few_people_brought_is_refused(rare: int) -> None:
    """Claim: the variable and what to write are named, no label and no count of people."""
    with pytest.raises(
        SeenCategoriesError, match=r"illness: no recipe.*fewer than 10 people.*combine_below: 10"
    ) as told:
        protected(people(rare), {})
    assert "SECRET" not in str(told.value)


def test_a_label_of_enough_people_or_one_that_is_declared_may_stand() -> None:
    assert protected(people(10), {})
    declared = {"variables": {"illness": {"categories": ["ordinary illness", "SECRET ILLNESS", "none"]}}}
    assert protected(people(1), declared)


def test_combining_is_no_way_round_where_too_few_are_combined() -> None:
    """Claim: a merged category of fewer people than the limit says of them what its members did."""
    with pytest.raises(SeenCategoriesError, match="illness"):
        protected(people(3), {"combine_below": 10})


def test_one_value_that_everybody_has_is_refused_unless_it_is_declared() -> None:
    with pytest.raises(SeenCategoriesError, match="illness: everybody has the one value"):
        protected(people(0), {})
    assert protected(people(0), {"variables": {"illness": {"categories": ["ordinary illness"]}}})


def spec(file: str, recipe: dict[str, Any]) -> CensusSpec:
    return CensusSpec.model_validate(
        {"name": "t", "kind": "census", "title": "t", "dua_tag": "x", "source": {"microdata": file}, "recipe": recipe,
         "plans": {"sdc": {"policy": "sdc"}}}
    )  # fmt: skip


def test_the_same_people_are_known_again_in_any_order_format_and_recipe(tmp_path: Path) -> None:
    """Claim: rows and columns in another order, CSV or Parquet in any row groups, and another recipe have one name;
    long and missing values too, for which Arrow keeps other bytes. One cell more is another name."""
    frame = people(40).with_columns(
        note=pl.Series([f"a note that is longer than twelve bytes, {n % 7}" for n in range(340)]),
        late=pl.Series(["x" if n % 5 else None for n in range(340)]),
    )
    drop = {"variables": {"late": {"missing": "none"}}}
    files = {
        "plain.csv": frame,
        "shuffled.csv": frame.sample(fraction=1.0, shuffle=True, seed=3),
        "columns.csv": frame.select(reversed(frame.columns)),
    }
    for name, table in files.items():
        table.write_csv(tmp_path / name)
    frame.reverse().write_parquet(tmp_path / "groups.parquet", row_group_size=7)
    names = set()
    for name in (*files, "groups.parquet"):
        for recipe in (drop, {"drop": ["late", "note"]}):
            read = read_census(spec(name, recipe), tmp_path)
            assert isinstance(read, Microdata)
            names.add(read.people)
    assert len(names) == 1
    frame.with_columns(pl.Series("sex", ["f", *frame["sex"][1:-1].to_list(), "x"])).write_csv(tmp_path / "other.csv")
    other = read_census(spec("other.csv", drop), tmp_path)
    assert isinstance(other, Microdata)
    assert other.people not in names


def test_a_variable_called_count_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    people(10).rename({"sex": "Count"}).write_csv(tmp_path / "p.csv")
    with pytest.raises(CurationError, match=r"p\.csv: a variable is called Count"):
        read_census(spec("p.csv", {}), tmp_path)
