"""Domains, structural zeros, margins and rows: layout, restored values and errors that name what is wrong."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from synth_platform.contract.categories import MOST_CATEGORIES
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.rows import Rows, two_way_margins
from synth_platform.margins.structural_zeros import StructuralZero, possible

DOMAIN = Domain(
    (
        Variable("age", ("0-15", "16-64", "65+")),
        Variable("married", ("false", "true"), "boolean"),
        Variable("rooms", ("1", "2", "?"), "integer", "?"),
    )
)
CODES = np.array([[0, 0, 1], [1, 1, 2], [1, 0, 0], [2, 1, 0], [1, 1, 0]])
CHILD_MARRIED = StructuralZero.of({"age": ["0-15"], "married": ["true"]})


def test_original_values_and_types_come_back():
    expected = pl.DataFrame({"age": ["0-15", "16-64"], "married": [False, True], "rooms": [2, None]})
    assert DOMAIN.frame(CODES[:2]).equals(expected)


def test_margins_count_as_a_group_by_does():
    rows = Rows(DOMAIN, CODES)
    grouped = {(a, r): n for a, r, n in rows.domain.frame(CODES).group_by("age", "rooms").len().iter_rows()}
    counts = rows.count(("age", "rooms"))
    for a, age in enumerate(DOMAIN.variables[0].categories):
        for r, room in enumerate((1, 2, None)):
            assert counts[a, r] == grouped.get((age, room), 0)
    assert (rows.count(("rooms", "age")) == counts.T).all()


def test_two_way_margins_are_all_pairs_and_hold_everybody():
    margins = two_way_margins(Rows(DOMAIN, CODES), "microdata census.csv", (CHILD_MARRIED,))
    assert [margin.names for margin in margins] == [("age", "married"), ("age", "rooms"), ("married", "rooms")]
    assert {margin.total for margin in margins} == {5.0}
    assert {margin.provenance for margin in margins} == {("microdata census.csv",)}


def test_a_single_variable_has_its_own_margin():
    only = Domain(DOMAIN.variables[:1])
    assert [margin.names for margin in two_way_margins(Rows(only, CODES[:, :1]))] == [("age",)]


def test_structural_zeros_cover_their_combination_in_every_table_that_holds_it():
    full = possible(DOMAIN, (CHILD_MARRIED,))
    assert (~full).sum() == 3
    assert not full[0, 1].any()
    assert possible(DOMAIN.project(("married", "age")), (CHILD_MARRIED,)).tolist() == [[True] * 3, [False, True, True]]
    assert possible(DOMAIN.project(("age", "rooms")), (CHILD_MARRIED,)).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Variable("id", tuple(map(str, range(MOST_CATEGORIES + 1)))), "variable id has 10,001 categories"),
        (lambda: Variable("sex", ()), "variable sex has no categories"),
        (lambda: Variable("sex", ("m", "m")), "'m' twice"),
        (lambda: Variable("rooms", ("1", "many"), "integer"), "variable rooms: a category is no integer value"),
        (lambda: Variable("own", ("yes", "no"), "boolean"), "variable own: a category is no boolean value"),
        (lambda: Variable("sex", ("m", "f"), missing="?"), "the missing category '\\?' is none"),
        (lambda: Domain(()), "no variables"),
        (lambda: Domain(DOMAIN.variables[:1] * 2), "age is named twice"),
        (lambda: DOMAIN.axes(("age", "income")), "unknown variable income; there are age, married, rooms"),
        (lambda: Rows(DOMAIN, CODES[:, :2]), "codes of 3 variables"),
        (lambda: Rows(DOMAIN, np.add(CODES, (0, 1, 0))), "variable married: a code"),
        (lambda: StructuralZero.of({"age": []}), "needs categories of age"),
        (lambda: possible(DOMAIN, (StructuralZero.of({"age": ["16"]}),)), "variable age has no category '16'"),
        (lambda: Margin(("a",), np.array([1.0, -1.0]), ()), "margin a: a count is negative"),
        (lambda: Margin(("a",), np.array([1.0, np.nan]), ()), "margin a: a count is missing"),
        (lambda: Margin(("a", "a"), np.ones((2, 2)), ()), "each of them once"),
        (lambda: MarginSet(DOMAIN, ()), "no margins"),
        (lambda: of(Margin(("age",), np.ones(2), ())), "margin age: \\(2,\\) counts"),
        (lambda: of(Margin(("age",), np.zeros(3), ())), "margin age counts nobody"),
        (lambda: of(Margin(("age",), np.ones(3), ())), "no margin counts variable married"),
        (lambda: of(pair("age", "rooms"), pair("rooms", "age")), "margin rooms × age is there twice"),
        (lambda: of(pair("age", "married"), pair("age", "rooms")), "declared a structural zero"),
        (lambda: of(pair("age", "income")), "unknown variable income"),
    ],
)
def test_what_is_wrong_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def pair(first, second):
    sizes = {"age": 3, "married": 2, "rooms": 3, "income": 4}
    return Margin((first, second), np.ones((sizes[first], sizes[second])), ())


def of(*margins):
    return MarginSet(DOMAIN, margins, (CHILD_MARRIED,))


def test_zeros_of_a_wide_domain_are_checked_in_their_own_variables():
    wide = Domain(tuple(Variable(f"v{number}", ("a", "b")) for number in range(70)))
    margins = tuple(Margin((first, second), np.ones((2, 2)), ()) for first, second in pairwise(wide.names))
    zero = StructuralZero.of({"v0": ["a"], "v69": ["b"]})
    assert MarginSet(wide, margins, (zero,)).zeros == (zero,)
    with pytest.raises(ValueError, match="variable v69 has no category 'c'"):
        MarginSet(wide, margins, (StructuralZero.of({"v0": ["a"], "v69": ["c"]}),))
