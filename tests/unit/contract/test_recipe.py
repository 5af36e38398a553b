"""Recipes: scalars as they are written, hierarchies from beside the file, errors that name file and field."""

import pytest

from synth_platform.contract.recipe import Recipe, RecipeError, VariableRecipe, load_recipe

FULL = """
variables:
  age: {bands: [0, 16, 25], top: 25, missing: unknown}
  country: {categories: [no, se, 007, 1.50, true]}
  job: {hierarchy: jobs.csv, combine_below: 20, into: rest}
  grade: {groups: {low: [1, 2], high: [3]}}
drop: [id]
combine_below: 5
structural_zeros: [{age: [0-15], marital: [married]}]
margins: [[age, country], [age, job, grade]]
"""


@pytest.fixture
def load(tmp_path):
    (tmp_path / "jobs.csv").write_text("category,group\nnurse,health\nclerk,office\nsurgeon,health\n011,office\n")

    def load(text):
        (tmp_path / "recipe.yaml").write_text(text)
        return load_recipe(tmp_path / "recipe.yaml")

    return load


def test_a_recipe_says_what_its_file_says(load):
    recipe = load(FULL)
    assert recipe.variables["age"] == VariableRecipe(bands=(0, 16, 25), top=25, missing="unknown")
    assert recipe.variables["country"].categories == ("no", "se", "007", "1.50", "true")
    assert recipe.variables["job"].groups == {"health": ("nurse", "surgeon"), "office": ("clerk", "011")}
    assert recipe.variables["grade"].groups == {"low": ("1", "2"), "high": ("3",)}
    assert recipe.drop == ("id",)
    assert recipe.structural_zeros == ({"age": ("0-15",), "marital": ("married",)},)
    assert recipe.margins == (("age", "country"), ("age", "job", "grade"))


def test_a_column_s_own_limit_goes_before_the_table_s(load):
    recipe = load(FULL)
    assert (recipe.variable("job").combine_below, recipe.variable("job").into) == (20, "rest")
    assert recipe.variable("grade").combine_below is None  # it declares its categories
    assert recipe.variable("unnamed") == VariableRecipe(combine_below=5)


def test_the_table_s_limit_is_for_columns_that_declare_nothing(load):
    recipe = load("combine_below: 9\nvariables: {sex: {categories: [f, m]}, age: {top: 90, missing: none}}")
    assert (recipe.variable("sex").combine_below, recipe.variable("age").combine_below) == (None, 9)


def test_what_is_left_out_has_a_default(load):
    assert load("drop: [id]") == Recipe(drop=("id",))
    assert Recipe().margins == "two_way"


def test_margins_are_every_pair_or_named_or_both(load):
    higher = ("age", "job", "grade")
    every, named, both = (
        load(f"margins: {m}") for m in ("two_way", "[[age, job, grade]]", "[two_way, [age, job, grade]]")
    )
    assert (every.every_pair, every.named_margins) == (True, ())
    assert (named.every_pair, named.named_margins) == (False, (higher,))
    assert (both.every_pair, both.named_margins) == (True, (higher,))
    assert Recipe.model_validate(both.model_dump(mode="json")) == both
    assert load("margins: [two_way]") == every


@pytest.mark.parametrize(
    ("text", "of_rows"),
    [
        ("structural_zeros: [{age: [0-15]}]", False),
        ("margins: two_way", False),
        ("margins: [[age]]", True),
        ("combine_below: 5", True),
        ("drop: [id]", True),
        ("variables: {age: {top: 85}}", True),
    ],
)
def test_only_structural_zeros_say_nothing_of_rows(load, text, of_rows):
    assert load(text).of_rows is of_rows


def test_labels_of_python_are_written_as_in_a_file():
    assert VariableRecipe.model_validate({"categories": [1, True, "no"]}).categories == ("1", "true", "no")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a mapping"),
        ("a: [", "not readable as YAML"),
        ("variables:\n  age: {top: 85}\n  age: {bottom: 0}", "'age' is there twice"),
        ("variable: {}", "variable: Extra inputs"),
        ("variables: {age: {tops: 85}}", r"variables\.age\.tops: Extra inputs"),
        ("variables: {age: {top: old}}", r"variables\.age\.top: Input should be a valid number"),
        ("variables: {age: {top: .inf}}", r"variables\.age\.top: "),
        ("variables: {age: {bands: [0]}}", r"variables\.age\.bands: "),
        ("variables: {age: {bands: [0, 16, 16]}}", r"variables\.age\.bands: edges have to ascend"),
        ("variables: {age: {bottom: 5, top: 5}}", r"variables\.age: bottom has to be below top"),
        ("variables: {age: {bottom: 0, bands: [0, 9]}}", r"variables\.age: bottom has to be below the first edge"),
        ("variables: {age: {top: 8, bands: [0, 9]}}", r"variables\.age: top has to be the last edge"),
        ("variables: {sex: {categories: [m, m]}}", r"variables\.sex\.categories: 'm' is there twice"),
        ("variables: {sex: {categories: []}}", r"variables\.sex\.categories: "),
        ("variables: {job: {groups: {a: [x], b: [x]}}}", r"variables\.job\.groups: 'x' is grouped twice"),
        ("variables: {job: {groups: {a: [x]}, categories: [x, y]}}", "groups: category 'y' is in none"),
        ("variables: {job: {combine_below: 0}}", r"variables\.job\.combine_below: "),
        ("variables: {job: {combine_below: 9, missing: other}}", r"variables\.job: missing: 'other' is also"),
        ("variables: {job: {categories: [x], missing: x}}", r"variables\.job: missing: 'x' is also a category"),
        ("variables: {job: {categories: [x], null_values: [x]}}", "null_values: 'x' is also a category"),
        ("variables: {job: {hierarchy: none.csv}}", r"variables\.job\.hierarchy: .*none\.csv does not exist"),
        ("variables: {job: {hierarchy: jobs.csv, groups: {}}}", r"job\.hierarchy: there are groups as well"),
        ("drop: [age]\nvariables: {age: {top: 85}}", "variables: age is also in drop"),
        ("drop: [age]\nmargins: [[age, sex]]", "margins: age is also in drop"),
        ("drop: [age]\nstructural_zeros: [{age: [x]}]", "structural_zeros: age is also in drop"),
        ("margins: [[age, age]]", r"margins: \[age, age\] needs columns, and each of them once"),
        ("margins: [[age, sex], [sex, age]]", "margins: age × sex is there twice"),
        ("drop: [age]\nmargins: [two_way, [age, sex, job]]", "margins: age is also in drop"),
        ("margins: [two_way, [age, sex]]", r"margins: two_way counts \[age, sex\] already; take it out"),
        ("margins: [two_way, [age]]", r"margins: two_way counts \[age\] already"),
        ("margins: [[]]", r"margins: \[\] needs columns"),
        *(
            (f"margins: {written}", "margins: .*two_way, or a list of lists of columns such as")
            for written in ("three_way", "[]", "[age, sex]", "[[age, sex], two_way]", "[[[age]]]", "{age: sex}")
        ),
        ("structural_zeros: [{age: []}]", "structural_zeros: age has no categories"),
        ("structural_zeros: [{}]", "structural_zeros"),
    ],
)
def test_errors_name_the_file_and_the_field(load, text, message):
    with pytest.raises(RecipeError, match=rf"(?s)recipe\.yaml: .*{message}"):
        load(text)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("job,group\nx,a\n", "needs the two columns category and group"),
        ("category,group\nx,\n", "has to name a group for a category in every line"),
        ("category,group\n", "has to name a group"),
        ("", "not readable as CSV"),
        ("category,group\nx,a\nx,b\n", "'x' is grouped twice"),
    ],
)
def test_a_hierarchy_that_is_none_is_named(load, tmp_path, table, message):
    (tmp_path / "broken.csv").write_text(table)
    with pytest.raises(RecipeError, match=rf"(?s)variables\.job\..*{message}"):
        load("variables: {job: {hierarchy: broken.csv}}")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RecipeError, match=r"none\.yaml: no such file"):
        load_recipe(tmp_path / "none.yaml")
