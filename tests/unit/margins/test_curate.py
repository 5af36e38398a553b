"""Curation against recoding by hand and by polars, every row kept, the order of steps, and errors without values."""

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.contract.recipe import Recipe
from synth_platform.margins.reading.curate import CurationError, curate
from synth_platform.margins.reading.microdata import read_microdata
from synth_platform.margins.rows import count_margins

CENSUS = Path(__file__).parents[3].parent / "shared" / "data" / "census"


def by(recipe, frame, **table):
    """Curate one column `x` by its recipe."""
    return curate(frame, Recipe.model_validate({"variables": {"x": recipe}, **table}))


def labels(curated, name="x"):
    """The label of every row."""
    axis = curated.rows.domain.names.index(name)
    return [curated.rows.domain.variables[axis].categories[code] for code in curated.rows.codes[:, axis]]


def categories(curated, name="x"):
    return curated.rows.domain.project([name]).variables[0].categories


def column(values, dtype=None):
    return pl.DataFrame({"x": pl.Series(values, dtype=dtype)})


def steps(curated):
    """Steps of the first column, without what a step says nothing about."""
    told = curated.report.to_json()["columns"][0]["steps"]
    return [{field: value for field, value in step.items() if value is not None} for step in told]


# --- as it is


def test_without_a_recipe_values_and_types_stay():
    frame = pl.DataFrame(
        {
            "age": [10, 9, 9, 100],
            "own": [True, True, True, True],
            "name": ["b", "a", "", "b"],
            "rooms": [1.5, 2.0, 1.5, -0.0],
            "day": pl.Series(["2020-01-02"] * 4).str.to_date(),
            "kind": pl.Series(["v", "u", "v", "v"], dtype=pl.Categorical),
        }
    )
    curated = curate(frame, Recipe())
    expected = frame.with_columns(pl.col("day", "kind").cast(pl.String))
    assert curated.rows.domain.frame(curated.rows.codes).equals(expected)
    assert categories(curated, "age") == ("9", "10", "100")
    assert categories(curated, "own") == ("false", "true")
    assert categories(curated, "rooms") == ("0", "1.5", "2")
    assert len(curated.margins) == 15


def test_a_missing_category_comes_back_as_null():
    curated = by({"missing": "?"}, column([1.0, None, float("nan"), 3.0]))
    assert labels(curated) == ["1", "?", "?", "3"]
    assert curated.rows.domain.frame(curated.rows.codes)["x"].to_list() == [1.0, None, None, 3.0]
    assert steps(curated) == [{"step": "missing", "labels": ["?"], "rows": 2}]


def test_a_missing_category_is_there_without_missing_values_and_is_all_there_is_of_an_empty_column():
    assert categories(by({"missing": "?"}, column([1, 2]))) == ("1", "2", "?")
    assert categories(by({"missing": "?"}, column([None, None], pl.String))) == ("?",)


def test_declared_categories_are_the_domain_in_their_order():
    assert categories(by({"categories": ["c", "a", "b"]}, column(["a", "c"]))) == ("c", "a", "b")
    assert categories(by({"categories": [3, 1, 2]}, column([1, 3]))) == ("3", "1", "2")


def test_a_declared_category_that_is_no_number_makes_text_of_numbers():
    """Claim: nobody being in a category is no reason to refuse a table that would pass with somebody in it."""
    declared = {"categories": [10, 30, "unknown"]}
    curated = by(declared, column([30, 10]))
    assert labels(curated) == ["30", "10"]
    assert curated.rows.domain == by(declared, column(["30", "unknown"])).rows.domain
    assert categories(by({"categories": ["true", "false", "?"]}, column([True]))) == ("true", "false", "?")


# --- steps


@pytest.mark.parametrize("values", [[-3, 0, 1, 84, 85, 90], [-3.0, 0.0, 1.0, 84.0, 85.0, 90.0], [*list("019"), "85"]])
def test_top_and_bottom_coding(values):
    coded = by({"bottom": 0, "top": 85}, column(values))
    assert labels(coded) == ["0-" if float(v) <= 0 else "85+" if float(v) >= 85 else str(int(v)) for v in values]
    assert categories(coded) == ("0-", *map(str, range(1, 85)), "85+")


def test_only_a_top_keeps_the_numbers_of_the_table_in_their_order():
    coded = by({"top": 85.5}, column([100, 85, 9, 10, 86]))
    assert labels(coded) == ["85.5+", "85", "9", "10", "85.5+"]
    assert categories(coded) == ("9", "10", "85", "85.5+")
    assert steps(coded) == [{"step": "top_coded", "labels": ["85.5+"], "rows": 2}]


def test_bands_are_half_open():
    banded = by({"bands": [0, 16, 17, 25], "top": 25, "bottom": -1}, column([0, 15, 16, 24, 17, 25, -1, 40]))
    assert labels(banded) == ["0-15", "0-15", "16", "17-24", "17-24", "25+", "-1-", "25+"]
    assert categories(banded) == ("-1-", "0-15", "16", "17-24", "25+")
    assert labels(by({"bands": [0, 16, 25]}, column([0.5, 16.0]))) == ["[0, 16)", "[16, 25)"]
    assert labels(by({"bands": [0, 0.5, 2]}, column([0, 1]))) == ["[0, 0.5)", "[0.5, 2)"]


def test_groups_are_the_domain_and_the_report_tells_who_is_in_them():
    grouped = by({"groups": {"health": ["nurse", "surgeon"], "none": ["idle"]}}, column(["surgeon", "nurse", "nurse"]))
    assert labels(grouped) == ["health"] * 3
    assert categories(grouped) == ("health", "none")
    told = {"step": "grouped", "labels": ("health", "none"), "rows": 3, "merged": {"health": ("nurse", "surgeon")}}
    assert steps(grouped)[0] == json.loads(json.dumps(told))


def test_small_categories_are_combined_by_their_counts():
    frame = column(["a"] * 5 + ["b"] * 4 + ["c"] * 3 + ["d"] * 5)
    combined = by({"combine_below": 5, "into": "rest"}, frame)
    assert labels(combined) == ["a"] * 5 + ["rest"] * 7 + ["d"] * 5
    assert categories(combined) == ("a", "d", "rest")
    assert steps(combined) == [
        {"step": "combined", "labels": ["rest"], "rows": 7, "merged": {"rest": ["b", "c"]}, "small": False}
    ]
    assert labels(curate(frame, Recipe(combine_below=5))) == ["a"] * 5 + ["other"] * 7 + ["d"] * 5


def test_a_combined_category_that_is_still_small_is_told():
    assert steps(by({"combine_below": 5}, column(["a"] * 5 + ["b"] * 4)))[0]["small"] is True


def test_small_categories_join_one_that_is_there():
    combined = by({"combine_below": 3}, column(["other", "a", "b", "b", "b"]))
    assert labels(combined) == ["other", "other", "b", "b", "b"]
    assert categories(combined) == ("b", "other")


def test_empty_categories_alone_are_no_reason_to_combine_and_types_stay_where_nothing_was():
    kept = by({"categories": [1, 2, 3], "combine_below": 2}, column([1, 1, 3, 3]))
    assert categories(kept) == ("1", "2", "3")
    assert kept.rows.domain.variables[0].kind == "integer"


def test_the_order_is_group_then_code_then_combine():
    """Grade -> years; years >= 12 are coded; of what is left the small ones are combined. No other order gives this."""
    frame = column(["g8"] * 3 + ["g9"] * 2 + ["hs"] * 2 + ["ba"] * 2 + ["gone"])
    recipe = {
        "groups": {"8": ["g8"], "9": ["g9"], "12": ["hs"], "16": ["ba"], "left": ["gone"]},
        "top": 12,
        "combine_below": 3,
    }
    ordered = by(recipe, frame)
    assert labels(ordered) == ["8"] * 3 + ["other"] * 2 + ["12+"] * 4 + ["other"]
    assert categories(ordered) == ("8", "12+", "other")
    assert [step["step"] for step in steps(ordered)] == ["grouped", "top_coded", "combined"]


def test_values_without_a_group_are_numbers_where_numbers_are_coded():
    mixed = by(
        {"groups": {"unstated": ["x", "999"]}, "bands": [0, 10, 20], "null_values": ["N"], "missing": "n/a"},
        column(["3", "x", "N", "12.0", "999"]),
    )
    assert labels(mixed) == ["0-9", "unstated", "n/a", "10-19", "unstated"]
    assert categories(mixed) == ("0-9", "10-19", "unstated", "n/a")


def test_missing_values_are_never_combined():
    kept = by({"missing": "?", "combine_below": 3}, column(["a"] * 3 + [None]))
    assert labels(kept) == ["a"] * 3 + ["?"]


# --- margins and zeros


FAMILY = pl.DataFrame({"age": [10, 30, 30, 70], "marital": ["single", "married", "single", "married"]})
BANDS = {"age": {"bands": [0, 16, 65], "top": 65}}


def test_margins_and_zeros_are_those_of_the_recipe():
    recipe = Recipe.model_validate(
        {"variables": BANDS, "structural_zeros": [{"age": ["0-15"], "marital": ["married"]}]}
    )
    margins = curate(FAMILY, recipe, "census.csv").margin_set()
    (margin,) = margins
    assert margin.provenance == ("census.csv",)
    assert margin.counts.tolist() == [[0, 1], [1, 1], [1, 0]]
    assert margins.possible(margin).tolist() == [[False, True], [True, True], [True, True]]
    recipe = Recipe.model_validate({"variables": BANDS, "margins": [["marital"], ["age"]]})
    assert [margin.names for margin in curate(FAMILY, recipe).margin_set()] == [("marital",), ("age",)]


def test_named_margins_stand_beside_every_pair():
    frame = FAMILY.with_columns(sex=pl.Series(["f", "m", "f", "m"]))
    recipe = Recipe.model_validate({"margins": ["two_way", ["sex", "age", "marital"]]})
    margins = curate(frame, recipe).margin_set()
    pairs = [("age", "marital"), ("age", "sex"), ("marital", "sex")]
    assert [margin.names for margin in margins] == [*pairs, ("sex", "age", "marital")]
    assert [margin.total for margin in margins] == [4] * 4


def test_margins_of_too_many_cells_are_refused_before_they_are_counted():
    frame = pl.DataFrame({name: np.arange(2 * 300) // 2 for name in ("a", "b", "c")})
    recipe = Recipe.model_validate({"margins": ["two_way", ["a", "b", "c"]], "variables": {n: {} for n in "abc"}})
    with pytest.raises(
        CurationError, match=r"more than 20,000,000 cells together, a × b × c the most of them: combine"
    ):
        curate(frame, recipe)
    rows = curate(frame, Recipe.model_validate({"variables": {n: {} for n in "abc"}})).rows
    with pytest.raises(ValueError, match=r"more than 20,000,000 cells together, a × b × c the most"):
        count_margins(rows, [("a", "b", "c")], "microdata")


# --- what is wrong


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"variables": {"income": {"top": 3}}}, "no column 'income', which the recipe names; it has age, marital"),
        ({"drop": ["income"]}, "no column 'income'"),
        ({"drop": ["age", "marital"]}, "no column is left"),
        ({"margins": [["age", "income"]]}, "unknown variable income"),
        ({"structural_zeros": [{"income": ["1"]}]}, "unknown variable income"),
        ({"structural_zeros": [{"age": ["11"]}]}, "variable age has no category '11'"),
        ({"structural_zeros": [{"age": ["30"], "marital": ["married"]}]}, "structural zero of age × marital"),
        (
            {"variables": {"marital": {"categories": ["single"]}}},
            "'marital': values are none of its categories",
        ),
        ({"variables": {"marital": {"groups": {"s": ["single"]}}}}, "'marital': values are in no group"),
        ({"variables": {"marital": {"top": 1}}}, "'marital': values are no numbers"),
        ({"variables": {"age": {"bands": [20, 40]}}}, "'age': values are outside of the bands"),
        ({"variables": {"age": {"missing": "30"}}}, "'age': a value is written as its missing category"),
    ],
)
def test_what_does_not_go_with_the_table_is_named(recipe, message):
    with pytest.raises(CurationError, match=f"census.csv.*{message}"):
        curate(FAMILY, Recipe.model_validate(recipe), "census.csv")


def test_digits_of_other_scripts_are_no_numbers():
    with pytest.raises(CurationError, match="'age': values are no numbers") as caught:
        curate(pl.DataFrame({"age": ["20", "٣"]}), Recipe.model_validate({"variables": {"age": {"top": 30}}}))
    assert "٣" not in str(caught.value)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (column([], pl.Int64), "microdata has no rows"),
        (pl.DataFrame(), "no column is left"),
        (column(["a", None]), "'x' has missing values"),
        (column([1.0, float("nan")]), "'x' has missing values"),
        (column([[1], [2]]), "'x' holds List"),
        (column([timedelta(1)]), "'x' holds Duration"),
        (column([b"secret"]), "'x' holds Binary"),
        (column([2**63, 1], pl.UInt64), "'x' holds whole numbers beyond 64 bits"),
        (column(list(range(101)) + [0] * 50), "'x' looks like an identifier"),
        (column([i / 8 for i in range(1001)] * 2), "'x' holds more than 1,000 distinct decimal"),
        (column(list(range(10_001)) * 2), "'x' has more than 10,000 categories"),
    ],
)
def test_a_column_that_a_person_has_to_decide_about_is_named(frame, message):
    with pytest.raises(CurationError, match=message):
        curate(frame, Recipe())


def test_limits_of_what_is_taken_as_it_is():
    curate(column(list(range(100))), Recipe())
    curate(column(list(range(101)) * 2), Recipe())
    curate(column([i / 8 for i in range(1000)] * 2), Recipe())
    curate(column(list(range(10_000)) * 2), Recipe())


def test_a_million_categories():
    million = pl.DataFrame({"x": pl.Series(range(1_000_000)).cast(pl.String)})
    with pytest.raises(CurationError, match="'x' looks like an identifier"):
        curate(million, Recipe())
    with pytest.raises(CurationError, match="'x' has more than 10,000 categories") as caught:
        by({}, million.head(20_000))
    assert "20,000" not in str(caught.value)
    banded = by({"bands": [0, 50_000, 100_000]}, million.head(60_000))
    assert banded.rows.count(["x"]).tolist() == [50_000, 10_000]


@pytest.mark.parametrize(
    "recipe",
    [{"categories": ["a"]}, {"groups": {"g": ["a"]}}, {"top": 1, "groups": {"g": ["a"]}}, {}, {"missing": "a"}],
)
def test_messages_hold_no_value(recipe):
    with pytest.raises(CurationError) as caught:
        by(recipe, column(["a", "secret", *([None] if "missing" not in recipe else [])]))
    assert "secret" not in str(caught.value)


def test_the_report_is_json_and_says_that_it_is_restricted():
    curated = by({"top": 2, "combine_below": 1}, column([1, 2]).with_columns(y=1), drop=["y"])
    report = json.loads(json.dumps(curated.report.to_json()))
    assert report["zone"] == "restricted"
    assert report["dropped"] == ["y"]
    assert report["rows"] == 2
    assert [(told["name"], told["kind"], told["categories"]) for told in report["columns"]] == [("x", "text", 2)]


# --- independent recoding


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.none() | st.integers(-20, 120), st.sampled_from("abcdefg"), st.booleans()), min_size=1, max_size=80
    ),
    st.integers(1, 12),
)
def test_counts_are_those_of_a_group_by_of_recoded_values_and_every_row_is_kept(people, limit):
    frame = pl.DataFrame(people, schema={"age": pl.Int64, "job": pl.String, "own": pl.Boolean}, orient="row")
    recipe = Recipe.model_validate(
        {
            "variables": {
                "age": {"bottom": -1, "bands": [0, 16, 65], "top": 65, "missing": "?"},
                "job": {"groups": {label: list(label) for label in ("ab", "c", "d", "efg")}, "combine_below": limit},
            }
        }
    )
    age, job = pl.col("age"), pl.col("job").replace({"a": "ab", "b": "ab", "e": "efg", "f": "efg", "g": "efg"})
    expected = frame.select(
        pl.when(age < 0)
        .then(pl.lit("-1-"))
        .when(age < 16)
        .then(pl.lit("0-15"))
        .when(age < 65)
        .then(pl.lit("16-64"))
        .when(age >= 65)
        .then(pl.lit("65+"))
        .otherwise(pl.lit("?"))
        .alias("age"),
        job.alias("job"),
        pl.col("own").cast(pl.String),
    ).with_columns(pl.when(pl.len().over("job") < limit).then(pl.lit("other")).otherwise("job").alias("job"))
    curated = curate(frame, recipe)
    assert {name: labels(curated, name) for name in frame.columns} == expected.to_dict(as_series=False)
    cells = {tuple(key): n for *key, n in expected.group_by(frame.columns).len().iter_rows()}
    counts = curated.rows.count(frame.columns)
    assert counts.sum() == len(frame)
    for at in np.ndindex(*counts.shape):
        cell = tuple(v.categories[code] for v, code in zip(curated.rows.domain.variables, at, strict=True))
        assert counts[at] == cells.get(cell, 0)


@pytest.mark.skipif(not CENSUS.is_dir(), reason="needs shared/data/census")
def test_the_american_community_survey_and_adult():
    survey = read_microdata(CENSUS / "nist_acs_national2019.csv.gz")
    money = {"null_values": ["N"], "missing": "none"}
    recipe = Recipe.model_validate(
        {
            "drop": ["INDP", "WGTP"],
            "variables": {
                "AGEP": {"bands": [0, 16, 25, 65], "top": 65},
                "PINCP": {**money, "bottom": -1, "bands": [0, 20_000, 50_000], "top": 50_000},
                "POVPIP": {**money, "bands": [0, 100, 501], "top": 501},
                "PWGTP": {"bands": [1, 50, 100], "top": 100},
            },
        }
    )
    curated = curate(survey, recipe, "nist")
    assert curated.rows.codes.shape == (27_253, 22)
    age, income = pl.col("AGEP"), pl.col("PINCP").cast(pl.Float64, strict=False)
    grouped = survey.select(
        pl.when(age < 16)
        .then(pl.lit("0-15"))
        .when(age < 25)
        .then(pl.lit("16-24"))
        .when(age < 65)
        .then(pl.lit("25-64"))
        .otherwise(pl.lit("65+"))
        .alias("AGEP"),
        pl.when(income < 0)
        .then(pl.lit("-1-"))
        .when(income < 20_000)
        .then(pl.lit("0-19999"))
        .when(income < 50_000)
        .then(pl.lit("20000-49999"))
        .when(income >= 50_000)
        .then(pl.lit("50000+"))
        .otherwise(pl.lit("none"))
        .alias("PINCP"),
    )
    cells = {(age, money): n for age, money, n in grouped.group_by("AGEP", "PINCP").len().iter_rows()}
    counts = curated.rows.count(["AGEP", "PINCP"])
    assert {
        (age, money): counts[i, j]
        for i, age in enumerate(categories(curated, "AGEP"))
        for j, money in enumerate(categories(curated, "PINCP"))
        if counts[i, j]
    } == cells
    adult = read_microdata(CENSUS / "adult.csv.gz")
    as_it_is = curate(adult, Recipe())
    assert as_it_is.rows.domain.frame(as_it_is.rows.codes).equals(adult)
