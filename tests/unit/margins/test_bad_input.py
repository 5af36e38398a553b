"""What is wrong with a census is said in one message that names the file and what to do, and costs next to nothing.

Each case is a census.yaml and its file or folder, read and counted as a run does it.
"""

import json

import numpy as np
import polars as pl
import pytest

from synth_platform.contract.census_spec import CensusSpec, SdcPlan
from synth_platform.margins.disclosure.plan import audit_released
from synth_platform.margins.margin import Margin
from synth_platform.margins.planned import model, protect, tables
from synth_platform.margins.reading.census import Microdata, read_census

MANY = 10**6


def counted(folder, recipe=None, **source):
    spec = CensusSpec.model_validate(
        {
            "name": "toy",
            "kind": "census",
            "title": "Toy",
            "dua_tag": "none",
            "source": source,
            "recipe": recipe or {},
            "plans": {"p": {"policy": "sdc"}},
        }
    )
    read = read_census(spec, folder)
    return read.curated.margin_set() if isinstance(read, Microdata) else read


def file(folder, text):
    (folder / "people.csv").write_text(text)
    return {"microdata": "people.csv"}


def published(folder, **files):
    (folder / "tables").mkdir()
    for name, text in files.items():
        (folder / "tables" / name.replace("__", ".")).write_text(text)
    return {"tables": "tables"}


PEOPLE = "age,sex\nold,f\nyoung,m\nyoung,f\n"


@pytest.mark.parametrize(
    ("text", "recipe", "message"),
    [
        ("", {}, r"people\.csv is not readable as CSV with one header line"),
        ("age,sex\n", {}, r"people\.csv has no rows; give a table with people in it"),
        (
            PEOPLE,
            {"margins": [["age", "region"]]},
            r"people\.csv: margins and structural_zeros of the recipe: unknown variable region; there are age, sex",
        ),
        (PEOPLE, {"margins": [["age"]]}, "no margin counts variable sex; leave it out or add a margin"),
        (
            PEOPLE,
            {"variables": {"age": {"categories": ["young"]}}},
            r"people\.csv: column 'age': values are none of its categories in the recipe; add them there or correct",
        ),
        (
            "age,sex\nold,\nyoung,\n",
            {},
            r"people\.csv: column 'sex' has missing values; give them a category by `missing: LABEL`",
        ),
    ],
)
def test_microdata(tmp_path, text, recipe, message):
    with pytest.raises(ValueError, match=message):
        counted(tmp_path, recipe, **file(tmp_path, text))


AGE = "age,count\nold,30\nyoung,40\n"


@pytest.mark.parametrize(
    ("files", "recipe", "message"),
    [
        ({}, {}, r"tables: there are no tables; put one file for each margin there"),
        ({"a__csv": ""}, {}, r"a\.csv is empty or not readable as CSV"),
        ({"a__csv": "age,count\n"}, {}, r"a\.csv: there is no line below the header; leave the file out or fill it"),
        ({"a__csv": "age,count\nold,0\n"}, {}, r"a\.csv: it counts nobody; leave it out"),
        (
            {"a__csv": "age,count\nold,30\nyoung,-4\n"},
            {},
            r"a\.csv, line 3: the count is '-4'; a plain number from 0 on is due",
        ),
        (
            {"a__csv": AGE, "b__csv": "sex,count\nf,30\nm,39\n"},
            {},
            r"different totals \(a\.csv: 70; b\.csv: 69\).*say totals: differ in census\.yaml, --totals differ at",
        ),
        (
            {"a__csv": AGE, "domain__json": json.dumps({"region": ["north"]})},
            {},
            r"a\.csv: variable age is not in the stated domain; there are region",
        ),
        (
            {"a__csv": AGE, "domain__json": json.dumps({"age": ["young"]})},
            {},
            r"a\.csv: column age: 'old' is no category of the stated domain \(1 such lines, the first is 2\); add it",
        ),
        (
            {"a__csv": AGE},
            {"structural_zeros": [{"age": ["child"]}]},
            "structural zero: variable age has no category 'child'",
        ),
    ],
)
def test_published_tables(tmp_path, files, recipe, message):
    with pytest.raises(ValueError, match=message):
        counted(tmp_path, recipe, **published(tmp_path, **files))


@pytest.mark.parametrize(
    "recipe", [{"margins": [["age", "sex"]]}, {"margins": ["two_way", ["age", "sex", "job"]]}, {"drop": ["age"]}]
)
def test_a_recipe_of_rows_is_refused_where_tables_are_published(tmp_path, recipe):
    with pytest.raises(ValueError, match="recipe: published tables are counted, and each is a margin; only structural"):
        counted(tmp_path, recipe, **published(tmp_path, a__csv=AGE))


def test_negative_counts_are_no_margin():
    with pytest.raises(ValueError, match="margin age: a count is negative") as wrong:
        Margin(("age",), np.array([3.0, -17.0]), ())
    assert "17" not in str(wrong.value)


def test_a_million_stated_categories(tmp_path):
    source = published(tmp_path)
    (tmp_path / "tables" / "a.csv").write_text("id,count\n1,30\n")
    (tmp_path / "tables" / "domain.json").write_text(json.dumps({"id": list(map(str, range(MANY)))}))
    with pytest.raises(ValueError, match=r"domain\.json: variable id has 1,000,000 categories, more than 10,000"):
        counted(tmp_path, **source)


def test_many_categories_are_combined_in_time_that_grows_with_their_number(tmp_path):
    """In time that grows with its square, 100,000 of them take minutes."""
    pl.DataFrame({"id": [*range(100_000), *[7] * 9], "sex": 1}).write_parquet(tmp_path / "people.parquet")
    recipe = {"variables": {"id": {"combine_below": 5}}}
    margins = counted(tmp_path, recipe, microdata="people.parquet")
    assert margins.domain.variables[0].categories == ("7", "other")
    assert margins.margins[0].counts.tolist() == [[10], [99_999]]


@pytest.mark.parametrize("text", ["age,sex\nold,f\n", "age\nold\n"])
@pytest.mark.parametrize("variant", ["controlled", "coarsened", "adjusted"])
def test_one_row_goes_all_the_way(tmp_path, text, variant):
    margins = counted(tmp_path, **file(tmp_path, text))
    plan = SdcPlan.model_validate({"policy": "sdc", "variant": variant})
    assert audit_released(margins, plan).passed
    (synthetic,) = tables(model(protect(margins, plan), plan), plan)
    assert len(synthetic) in (9, 10)
    assert set(synthetic.frame["age"]) == {"old"}


def test_a_column_of_missing_values_is_one_category(tmp_path):
    margins = counted(
        tmp_path, {"variables": {"sex": {"missing": "unknown"}}}, **file(tmp_path, "age,sex\nold,\nnew,\n")
    )
    assert margins.domain.variables[1].categories == ("unknown",)
    plan = SdcPlan.model_validate({"policy": "sdc"})
    (synthetic,) = tables(model(protect(margins, plan), plan), plan)
    assert synthetic.frame["sex"].null_count() == len(synthetic) == 20
