"""The generated population: reproducible, in households, true to its structural zeros, as wide as it says."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from synth_platform.contract.census_spec import load_census_spec
from synth_platform.margins import coarsen, curate, disclosure_bounds
from synth_platform.margins.disclosure.intervals import ReleaseRule
from synth_platform.margins.noise.declared import declared_domain
from synth_platform.margins.reading.microdata import read_microdata
from synth_platform.sources.census_1901 import PEOPLE, census_1901

DEMO = Path(__file__).parents[3] / "cohorts" / "census_demo"


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return census_1901()


@pytest.fixture(scope="module")
def members(people: pl.DataFrame) -> pl.DataFrame:
    """With the household of each row, and the head's sex, age and marital status."""
    home = (pl.col("relationship") == "head").cum_sum().alias("home")
    head = [pl.col(name).first().over("home").alias(f"head_{name}") for name in ("sex", "age", "marital_status")]
    return people.with_columns(home).with_columns(head)


def test_the_bundled_file_is_what_the_command_makes(people: pl.DataFrame) -> None:
    assert read_microdata(DEMO / "persons.parquet").equals(people)
    assert (DEMO / "persons.parquet").stat().st_size < 400_000


def test_a_seed_gives_its_own_people_and_as_many_as_asked_for(people: pl.DataFrame) -> None:
    assert people.shape == (PEOPLE, 11)
    other = census_1901(seed=7, people=3000)
    assert other.height == 3000
    assert other.equals(census_1901(seed=7, people=3000))
    assert not other.equals(people.head(3000))
    assert people.null_count().sum_horizontal().item() == 0


def test_the_full_table_has_fifty_million_cells(people: pl.DataFrame) -> None:
    banded = people.with_columns(pl.col("age").clip(0, 70) // 5, pl.col("rooms").clip(1, 7).replace(5, 6))
    assert math.prod(banded[name].n_unique() for name in banded.columns) == 52_254_720


def test_households_are_made_of_people_who_can_live_together(members: pl.DataFrame) -> None:
    assert members["relationship"][0] == "head"
    whole = members.filter(pl.col("home") < members["home"].max())  # the last household is cut
    homes = whole.group_by("home").agg(
        (pl.col("relationship") == "head").sum().alias("heads"),
        (pl.col("relationship") == "wife").sum().alias("wives"),
        pl.col("head_sex").first(),
        pl.col("head_marital_status").first(),
    )
    assert (homes["heads"] == 1).all()
    married = homes["head_marital_status"] == "married"
    assert (homes["wives"] == married).all()
    assert (homes.filter(married)["head_sex"] == "male").all()
    of_mothers = members.filter(pl.col("head_sex") == "female", pl.col("relationship") == "child")
    assert (of_mothers["head_age"] - of_mothers["age"]).is_between(19, 48).all()
    for name in ("district", "rooms", "servants"):
        assert (members.group_by("home").agg(pl.col(name).n_unique())[name] == 1).all()


def test_small_children_have_neither_work_nor_a_place(people: pl.DataFrame) -> None:
    small = people.filter(pl.col("age") < 10)
    assert set(small["occupation"]) == set(small["employment_status"]) == {"none"}
    assert set(small["marital_status"]) == {"single"}
    assert set(small["relationship"]) <= {"child", "relative", "boarder", "visitor"}


def test_households_have_servants_where_a_servant_lives(members: pl.DataFrame) -> None:
    whole = members.filter(pl.col("home") < members["home"].max())
    lives_in = (pl.col("relationship") == "servant").any().over("home")
    assert whole.select(((pl.col("servants") == "yes") == lives_in).all()).item()


@pytest.mark.parametrize("seed", range(1, 6))
def test_every_population_keeps_to_the_declared_domain_and_zeros(seed: int) -> None:
    """`curate` refuses people in a structural zero and values that are not declared."""
    recipe = load_census_spec(DEMO / "census.yaml").recipe
    assert curate(census_1901(seed), recipe).rows.domain == declared_domain(recipe)


def test_the_registered_plan_passes_the_disclosure_gate_and_kept_zeros_do_not(people: pl.DataFrame) -> None:
    """Nobody in a single room keeps a servant, though it is possible: a kept zero discloses it of all of them."""
    margins = curate(people, load_census_spec(DEMO / "census.yaml").recipe).margin_set()
    for zeros, reasons in (("lifted", ()), ("kept", ("small_cell_recoverable", "attribute_disclosed"))):
        released = coarsen(margins, 10, "coarsened", zeros=zeros)
        assert disclosure_bounds(released, ReleaseRule("coarsened", 10, zeros)).reasons == reasons


def test_pairs_of_variables_have_small_cells_as_those_of_a_census_do(people: pl.DataFrame) -> None:
    """Under the finest categories at least a twentieth of the occupied cells count fewer than ten."""
    fine = people.with_columns(pl.col("age") // 5)
    counts = [
        fine.group_by(one, other).len()["len"].to_numpy()
        for place, one in enumerate(fine.columns)
        for other in fine.columns[:place]
    ]
    occupied = np.concatenate(counts)
    assert (occupied < 10).mean() > 0.05


def test_too_few_people_for_households_are_refused() -> None:
    with pytest.raises(ValueError, match=r"people: give 1,000 at least"):
        census_1901(people=999)
