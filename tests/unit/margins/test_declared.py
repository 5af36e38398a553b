"""Declared domains: what a recipe says alone is what curation makes of any table, and nothing else passes."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.contract.categories import MOST_CATEGORIES
from synth_platform.contract.recipe import Recipe
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.noise.declared import OtherCategoriesError, UndeclaredError, declared_domain, in_declared
from synth_platform.margins.reading.curate import curate
from synth_platform.margins.rows import Rows

WORDS = st.lists(st.sampled_from(["a", "b c", "007", "x+", "0-4", "[1, 2)", "ü", "2.5"]), min_size=1, unique=True)


@st.composite
def chosen(draw):
    """`categories`, perhaps with null values; values are labels."""
    labels = draw(st.one_of(st.lists(st.integers(-3, 30), min_size=1, unique=True), WORDS))
    return {"categories": labels}, {label: str(label) for label in labels}, [str(label) for label in labels]


@st.composite
def grouped(draw):
    """`groups` of some values, perhaps with `categories`."""
    values = draw(WORDS)
    of = {value: draw(st.sampled_from(["one", "two", "three"])) for value in values}
    groups = {label: [value for value in values if of[value] == label] for label in sorted({*of.values(), "empty"})}
    recipe = {"groups": groups} | ({"categories": values} if draw(st.booleans()) else {})
    return recipe, of, list(groups)


@st.composite
def banded(draw):
    """`bands`, with or without what is below, above and no number; of whole numbers and others."""
    edges = sorted(draw(st.lists(st.integers(-20, 20), min_size=2, max_size=5, unique=True)))
    low, high = draw(st.booleans()), draw(st.booleans())
    half = draw(st.booleans())
    shown = [e + 0.5 for e in edges] if half else edges
    recipe = {"bands": shown} | ({"bottom": edges[0] - 1} if low else {}) | ({"top": edges[-1] + 1} if high else {})
    labels = [f"[{a}, {b})" if half else str(a) if b - a == 1 else f"{a}-{b - 1}" for a, b in pairwise(shown)]
    of = {}
    step = draw(st.sampled_from([1, 0.25]))
    for (a, b), label in zip(pairwise(shown), labels, strict=True):
        numbers = np.arange(np.ceil(a), b, step) if step == 1 else np.arange(a, b, step)
        of |= {int(x) if step == 1 else float(x): label for x in numbers}
    if low:
        of[edges[0] - 1], of[edges[0] - 40] = (f"{edges[0] - 1}-",) * 2
    if high:
        of[edges[-1] + 1], of[edges[-1] + 40] = (f"{edges[-1] + 1}+",) * 2
    labels = [*([f"{edges[0] - 1}-"] if low else []), *labels, *([f"{edges[-1] + 1}+"] if high else [])]
    if draw(st.booleans()):
        recipe["groups"] = {"none": ["N", "NA"], "80": ["many"]} if high else {"none": ["N", "NA"]}
        of = {str(x): label for x, label in of.items()} | {"N": "none", "NA": "none"}
        of |= {"many": labels[-1]} if high else {}
        labels.append("none")
    return recipe, of, labels


@st.composite
def coded(draw):
    """`bottom` and `top` with the whole numbers between."""
    bottom, inner = draw(st.integers(-5, 5)), draw(st.integers(0, 6))
    top = bottom + inner + 1
    between = {x: str(x) for x in range(bottom + 1, top)}
    of = {bottom - 3: f"{bottom}-", bottom: f"{bottom}-", **between, top: f"{top}+", top + 9: f"{top}+"}
    return {"bottom": bottom, "top": top}, of, [f"{bottom}-", *between.values(), f"{top}+"]


@st.composite
def tables(draw):
    """A recipe, its domain by hand as {name: labels}, a table, and the label of every cell of it."""
    rows = draw(st.integers(1, 12))
    recipe, labels, frame, expected = {}, {}, {}, {}
    for position in range(draw(st.integers(1, 3))):
        name = f"v{position}"
        own, of, categories = draw(st.one_of(chosen(), grouped(), banded(), coded()))
        values = list(of)
        missing = draw(st.booleans())
        if missing:
            own, categories = own | {"missing": "?", "null_values": ["gone"]}, [*categories, "?"]
            of = of | {None: "?"}
            values.append(None)
        column = [draw(st.sampled_from(values)) if values else None for _ in range(rows)]
        if not values:
            return draw(tables())
        whole = all(isinstance(x, int) for x in column if x is not None)
        dtype = pl.Int64 if whole else pl.String if any(isinstance(x, str) for x in column) else pl.Float64
        if dtype == pl.String and missing:
            column = ["gone" if x is None and draw(st.booleans()) else x for x in column]
            of = of | {"gone": "?"}
        recipe[name], labels[name] = own, categories
        frame[name] = pl.Series(name, column, dtype=dtype if any(x is not None for x in column) else pl.String)
        expected[name] = [of[x] for x in column]
    names = draw(st.permutations(list(frame)))
    return {"variables": recipe}, labels, pl.DataFrame([frame[name] for name in names]), expected


@given(tables())
@settings(max_examples=60, deadline=None)
def test_curated_rows_go_with_the_declared_domain_whoever_is_in_the_table(drawn):
    """Claim: for every kind of step, the categories are those that were declared by hand, in their order, and every
    row has the label it has by hand: with columns in any order, categories that nobody is in, and numbers that happen
    to be whole or not."""
    document, labels, frame, expected = drawn
    recipe = Recipe.model_validate(document)
    domain = declared_domain(recipe)
    assert {v.name: list(v.categories) for v in domain.variables} == labels
    curated = curate(frame, recipe).rows
    rows = in_declared(curated, domain)
    assert rows.domain == domain
    for axis, variable in enumerate(domain.variables):
        assert [variable.categories[code] for code in rows.codes[:, axis]] == expected[variable.name]
    if all(dtype == pl.Int64 for dtype in frame.schema.values()):
        assert curated.domain.project(domain.names).shape == domain.shape
        assert [v.categories for v in curated.domain.project(domain.names).variables] == [
            v.categories for v in domain.variables
        ]


def test_the_domain_of_a_table_of_integers_is_the_declared_one():
    recipe = Recipe.model_validate(
        {
            "variables": {
                "age": {"bands": [0, 16, 65], "top": 65},
                "rooms": {"categories": [1, 2, 3], "missing": "?"},
                "job": {"groups": {"work": [1, 2], "none": [0]}},
            },
            "drop": ["name"],
        }
    )
    domain = declared_domain(recipe)
    assert domain == Domain(
        (
            Variable("age", ("0-15", "16-64", "65+")),
            Variable("rooms", ("1", "2", "3", "?"), "integer", "?"),
            Variable("job", ("work", "none")),
        )
    )
    frame = pl.DataFrame({"age": [3, 90], "rooms": [2, None], "job": [0, 2], "name": ["Kim", "Lee"]})
    assert curate(frame, recipe).rows.domain == domain


def test_a_kind_does_not_depend_on_who_is_there():
    """Claim: labels that are all integers make integers, others text, whatever the table holds."""

    def kind(labels):
        return declared_domain(Recipe.model_validate({"variables": {"x": {"categories": labels}}})).variables[0].kind

    assert [kind(labels) for labels in ([1, 2], ["01", "2"], [1, "x"], ["true", "false"])] == [
        "integer", "text", "text", "text",
    ]  # fmt: skip
    recipe = Recipe.model_validate({"variables": {"x": {"categories": [1, 2, "x"]}}})
    for values in ([1, 2], ["1", "x"]):
        assert in_declared(curate(pl.DataFrame({"x": values}), recipe).rows, declared_domain(recipe)).domain == (
            declared_domain(recipe)
        )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "no variable.*drop"),
        ({"variables": {"age": {}}}, "variable age has no declared categories; write `categories`.*drop"),
        ({"variables": {"age": {"missing": "?"}}}, "variable age has no declared categories"),
        ({"variables": {"age": {"top": 85}}}, "variable age: which numbers.*`bottom` and `top` both"),
        ({"variables": {"age": {"bottom": 0}}}, "variable age: which numbers"),
        ({"variables": {"age": {"categories": [1, 2, 99], "top": 85}}}, "variable age: which numbers"),
        ({"variables": {"age": {"bottom": 0, "top": MOST_CATEGORIES + 1}}}, "variable age: there are too many"),
        ({"variables": {"age": {"bottom": 0, "top": MOST_CATEGORIES}}}, "age has 10,001 categories"),
        ({"variables": {"job": {"categories": ["a"], "combine_below": 5}}}, "variable job: combine_below.*`groups`"),
        ({"variables": {"job": {"categories": ["a"]}}, "combine_below": 5}, "combine_below.*depends on counts"),
        ({"variables": {"age": {"bottom": 0, "top": 5, "missing": "3"}}}, "variable age: a category.*name `missing`"),
    ],
)
def test_what_depends_on_rows_is_refused_with_what_to_write(document, message):
    with pytest.raises(UndeclaredError, match=message):
        declared_domain(Recipe.model_validate(document))


DECLARED = Domain((Variable("age", ("0-15", "16+")), Variable("sex", ("f", "m", "?"), "text", "?")))


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        (Domain((*DECLARED.variables, Variable("secret", ("k",)))), "variable secret is in the rows or.*drop"),
        (Domain(DECLARED.variables[:1]), "variable sex is in the rows or the declared domain, not in both"),
        (Domain((Variable("age", ("0-15", "Kim")), DECLARED.variables[1])), "variable age: the rows do not have"),
        (Domain((Variable("age", ("16+", "0-15")), DECLARED.variables[1])), "variable age: the rows do not have"),
        (Domain((Variable("age", ("0-15", "16+", "Kim")), DECLARED.variables[1])), "variable age: the rows do not"),
        (Domain((Variable("age", ("[0, 15)", "16+")), DECLARED.variables[1])), "variable age: the rows do not"),
        (Domain((DECLARED.variables[0], Variable("sex", ("f", "m", "?")))), "variable sex: the rows do not have"),
    ],
)
def test_other_categories_are_named_by_their_variable_alone(domain, message):
    rows = Rows(domain, np.zeros((2, len(domain.variables)), dtype=np.int64))
    with pytest.raises(OtherCategoriesError, match=message) as refused:
        in_declared(rows, DECLARED)
    assert "Kim" not in str(refused.value)


def test_variables_come_in_the_declared_order_with_bands_of_numbers_that_are_not_whole():
    swapped = Domain((DECLARED.variables[1], Variable("age", ("[0, 16)", "16+"))))
    codes = np.array([[random.Random(row).randrange(3), row % 2] for row in range(9)])
    rows = in_declared(Rows(swapped, codes), DECLARED)
    assert rows.domain == DECLARED
    assert (rows.codes == codes[:, ::-1]).all()
