"""The disclosure audit and differencing: planted attacks are named, tables without one pass."""

from itertools import combinations

import numpy as np
import pytest

from synth_platform.margins.coarsen import coarsen
from synth_platform.margins.disclosure.audit import cell_bounds, disclosure_bounds
from synth_platform.margins.disclosure.differencing import Difference, coarser
from synth_platform.margins.disclosure.intervals import ReleaseRule
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.rows import Rows, two_way_margins
from synth_platform.margins.structural_zeros import StructuralZero

UNALTERED = ReleaseRule("unaltered", 10)
METHODS = ("linear_programming", "relaxation", "triples", "shuttle")


def margins_of(zeros=(), **tables):
    """Unaltered tables: {"a_b": counts}; categories are positions."""
    sizes = {}
    for title, counts in tables.items():
        sizes |= dict(zip(title.split("_"), np.shape(counts), strict=True))
    domain = Domain(tuple(Variable(name, tuple(map(str, range(size)))) for name, size in sizes.items()))
    made = (Margin(tuple(title.split("_")), np.array(counts, float), ("table",)) for title, counts in tables.items())
    return MarginSet(domain, tuple(made), zeros)


def table(report, title):
    return next(each for each in report.tables if each.title == title)


def rows(count, shape, seed=0):
    codes = np.random.default_rng(seed).integers(0, shape, (count, len(shape)))
    return Rows(Domain(tuple(Variable(f"v{at}", tuple(map(str, range(n)))) for at, n in enumerate(shape))), codes)


@pytest.mark.parametrize("method", METHODS)
def test_an_unaltered_table_with_one_person_in_a_cell_is_flagged(method):
    report = disclosure_bounds(margins_of(a_b=[[1, 20], [30, 40]]), UNALTERED, method)
    assert report.reasons == ("small_cell_recoverable",)
    assert not report.passed
    only = report.tables[0]
    assert (only.cells, only.small, only.recoverable, only.exact, only.zeros, only.narrowest) == (4, 1, 1, 4, 0, 0)


@pytest.mark.parametrize("method", [*METHODS, "auto"])
@pytest.mark.parametrize("zeros", ["kept", "lifted"])
def test_well_filled_coarsened_tables_pass(method, zeros):
    margins = coarsen(two_way_margins(rows(2_000, (3, 2, 3))), 10, "coarsened", zeros=zeros)
    report = disclosure_bounds(margins, ReleaseRule("coarsened", 10, zeros), method)
    assert report.passed
    assert report.consistent
    assert all(each.narrowest > 0 and each.exact == each.small == each.zeros == 0 for each in report.tables)


@pytest.mark.parametrize("method", METHODS)
def test_small_cells_that_overlapping_coarsened_tables_give_away_are_found(method):
    """A group of 1 … 14 by the first table is spread over six categories by the second: each has at most nine."""
    margins = margins_of(a_b=[[10, 0], [200, 300]], a_c=[[10] * 6, [80] * 6])
    report = disclosure_bounds(margins, ReleaseRule("coarsened", 10), method)
    assert table(report, "a × b").recoverable == 0
    assert (table(report, "a × c").small, table(report, "a × c").recoverable) == (0, 6)
    assert "small_cell_recoverable" in report.reasons


def test_a_group_that_is_all_in_one_category_is_an_attribute_disclosed():
    report = disclosure_bounds(margins_of(a_b=[[20, 0, 0], [30, 40, 50]]), UNALTERED)
    assert table(report, "a × b").groups_disclosed == 3  # a = 0 is all in b = 0; b = 1 and b = 2 are all in a = 1
    assert report.reasons == ("attribute_disclosed",)
    nobody = StructuralZero.of({"a": ["0"], "b": ["1", "2"]})
    assert disclosure_bounds(margins_of((nobody,), a_b=[[20, 0, 0], [30, 40, 50]]), UNALTERED).passed


@pytest.mark.parametrize("method", METHODS)
def test_a_lifted_zero_that_exact_totals_give_away_is_inferred(method):
    """The total of a = 0 is exact in the second table and met by the large count of the first."""
    margins = margins_of(a_b=[[9, 50], [30, 40]], a_c=[[20, 30], [40, 30]])
    report = disclosure_bounds(margins, ReleaseRule("controlled", 10, "lifted"), method)
    assert table(report, "a × b").zeros_inferred == 1
    assert report.reasons == ("attribute_disclosed", "zero_inferred")


@pytest.mark.parametrize("method", METHODS)
def test_two_tables_that_differ_by_three_people_are_flagged(method):
    everybody = np.array([[40, 50], [60, 70]])
    without_three = np.array([[25, 62], [80, 50]])  # by c; three people of a = 0 left out
    report = disclosure_bounds(margins_of(a_b=everybody, a_c=without_three), UNALTERED, method)
    assert report.differences == (Difference("a × b", "a × c", ("a",), 1),)
    assert report.reasons == ("differencing", "margins_contradict")
    turned = disclosure_bounds(margins_of(a_c=without_three, a_b=everybody), UNALTERED, method)
    assert turned.differences == (Difference("a × c", "a × b", ("a",), 1),)
    rounded = ReleaseRule("coarsened", 10)
    coarse = disclosure_bounds(margins_of(a_b=[[40, 50], [60, 70]], a_c=[[30, 60], [80, 50]]), rounded, method)
    assert coarse.differences == ()


def test_a_coarser_version_is_subtracted_from_the_finer_one():
    """Bands 0, 1 | 2, 3 of age over one population, less four people of the older band."""
    nested = (
        StructuralZero.of({"age": ["0", "1"], "band": ["1"]}),
        StructuralZero.of({"age": ["2", "3"], "band": ["0"]}),
    )
    fine = [[20, 21], [22, 23], [24, 25], [26, 27]]
    band = [[42, 44], [50, 48]]
    released = margins_of(nested, age_sex=fine, band_sex=band)
    domain = released.domain
    assert coarser(domain, *domain.axes(("age", "band")), nested).tolist() == [0, 0, 1, 1]
    assert coarser(domain, *domain.axes(("band", "age")), nested) is None
    assert coarser(domain, *domain.axes(("age", "band")), nested[:1]) is None
    report = disclosure_bounds(released, UNALTERED)
    assert report.differences == (Difference("age × sex", "band × sex", ("sex", "band"), 1),)
    same = disclosure_bounds(margins_of(nested, age_sex=fine, band_sex=[[42, 44], [50, 52]]), UNALTERED)
    assert same.consistent
    assert same.differences == ()


def test_margins_named_in_another_order_and_rules_of_their_own():
    margins = margins_of(a_b=[[40, 50, 30], [60, 70, 20]])
    turned = margins_of(b_a=[[40, 60], [50, 70], [30, 20]])
    assert disclosure_bounds(margins, UNALTERED).tables[0].exact == 6
    assert disclosure_bounds(turned, {"b × a": UNALTERED}).tables[0].title == "b × a"
    mixed = MarginSet(margins.domain, (*margins, Margin(("b", "a"), margins.margins[0].counts.T, ()))[:1])
    assert disclosure_bounds(mixed, {"a × b": ReleaseRule("coarsened", 10)}).passed


@pytest.mark.parametrize("method", METHODS)
def test_a_public_total_narrows_what_rounded_counts_say(method):
    """Of 93 or 94 people 61 … 70 and 31 … 40 are rounded up to 70 and 40: with the total, one count tells the other."""
    released, rule = margins_of(a_b=[[70, 40]]), ReleaseRule("coarsened", 10, rounding="up")
    assert disclosure_bounds(released, rule, method).tables[0].narrowest == 9
    told = ReleaseRule("coarsened", 10, rounding="up", total=(93, 94))
    assert disclosure_bounds(released, told, method).tables[0].narrowest == 2


@pytest.mark.parametrize("method", METHODS)
def test_structural_zeros_speak_of_pairs_that_no_margin_is_of(method):
    """Who is a = 0 is not b = 1, so that b = 1 is a = 1 and the pair is known."""
    zero = StructuralZero.of({"a": ["0"], "b": ["1"]})
    report = disclosure_bounds(margins_of((zero,), a=[20, 40], b=[30, 30]), UNALTERED, method)
    pair = table(report, "a × b")
    assert (pair.cells, pair.exact, pair.released, pair.groups_disclosed) == (3, 3, False, 0)


def test_tables_that_were_not_released_are_bounded_when_asked_for():
    margins = two_way_margins(rows(60, (2, 2, 2), seed=3))
    report = disclosure_bounds(margins, ReleaseRule("unaltered", 2), also=[("v2", "v0", "v1")])
    three_way = table(report, "v0 × v1 × v2")
    assert not three_way.released
    assert three_way.cells == 8
    assert three_way.small == three_way.zeros_inferred == 0


def test_the_size_of_the_joint_table_says_how_tables_are_bounded():
    """6⁸ cells go to triples, 2⁸ to fractions, 3² to whole people; threes of variables are bounded by the last two."""
    rule = ReleaseRule("coarsened", 10, total=(3_000, 3_000))
    for shape, method, widest in (
        ((6,) * 8, "triples", 2),
        ((2,) * 8, "relaxation", 3),
        ((3, 3), "linear_programming", 2),
    ):
        report = disclosure_bounds(coarsen(two_way_margins(rows(3_000, shape)), 10, "coarsened"), rule)
        assert (report.method, report.passed, report.unsettled) == (method, True, 0)
        assert len(report.tables) == sum(len(list(combinations(shape, size))) for size in range(1, widest + 1))


def pairs_of(joint, limit, rounding):
    """The audited margins of all pairs of a table, coarsened with lifted zeros, and their rule."""
    domain = Domain(tuple(Variable(f"v{axis}", tuple(map(str, range(n)))) for axis, n in enumerate(joint.shape)))
    made = tuple(
        Margin(
            tuple(domain.names[axis] for axis in pair),
            joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in pair)).astype(float),
            (),
        )
        for pair in combinations(range(joint.ndim), 2)
    )
    released = coarsen(MarginSet(domain, made), limit, "coarsened", zeros="lifted", rounding=rounding)
    return released, ReleaseRule("coarsened", limit, "lifted", rounding)


def test_a_pair_that_only_programs_narrow_is_found_with_256_joint_cells():
    """79 people in 2⁸ cells: what 28 pairs of 2 × 2 say together, the shuttle does not see."""
    joint = np.zeros(256, dtype=int)
    joint[list(SPREAD)] = list(SPREAD.values())
    released, rule = pairs_of(joint.reshape((2,) * 8), 10, "nearest")
    assert disclosure_bounds(released, rule, "shuttle").passed
    report = disclosure_bounds(released, rule)
    assert report.method == "relaxation"
    assert table(report, "v4 × v5").recoverable == 1
    assert not report.passed


# Position among the 256 cells, and people there.
SPREAD = {4: 19, 24: 4, 42: 3, 53: 3, 54: 11, 76: 7, 83: 2, 108: 7, 181: 4, 197: 2, 212: 15, 227: 1, 229: 1}


def test_a_pair_that_only_programs_narrow_is_found_among_three_of_many_variables():
    """Three variables of two categories, and two of 20 that say nothing of them: 3,200 joint cells."""
    released, rule = pairs_of(np.array([17, 1, 37, 87, 109, 5, 1, 14]).reshape(2, 2, 2), 10, "up")
    long = [Variable(name, tuple(map(str, range(20)))) for name in ("v3", "v4")]
    more = tuple(Margin((each.name,), np.full(20, 20.0), ()) for each in long)
    wide = MarginSet(Domain((*released.domain.variables, *long)), (*released.margins, *more))
    assert disclosure_bounds(wide, rule, "shuttle").passed
    report = disclosure_bounds(wide, rule)
    assert (report.method, report.reasons, report.unsettled) == ("triples", ("small_cell_recoverable",), 0)
    assert [each.title for each in report.tables if each.recoverable] == ["v1 × v2"]


@pytest.mark.parametrize("method", ["linear_programming", "relaxation"])
def test_a_joint_cell_of_three_is_known_though_all_pairs_pass(method):
    """Of 2 × 2 × 2 people, rounded up, one joint cell holds 1 to 9 (all tables that fit were counted to see it)."""
    released, rule = pairs_of(np.array([[[2, 2], [0, 0]], [[5, 12], [16, 29]]]), 10, "up")
    report = disclosure_bounds(released, rule, method)
    assert not any(each.recoverable for each in report.tables if each.title != "v0 × v1 × v2")
    assert table(report, "v0 × v1 × v2").recoverable == 1
    assert report.reasons == ("small_cell_recoverable",)
    assert disclosure_bounds(released, rule, "triples").passed


def test_the_effort_of_relaxations_is_bounded_and_what_was_left_is_told(monkeypatch):
    released, rule = pairs_of(np.random.default_rng(0).poisson(1.5, (4, 4, 4, 4, 4, 4)), 10, "nearest")
    monkeypatch.setattr("synth_platform.margins.disclosure.together.EFFORT", 0)
    report = disclosure_bounds(released, rule, "triples")
    small = sum(int((bounds.lower == 0).sum()) for bounds in cell_bounds(released, rule, "triples").tables.values())
    assert report.unsettled == small
    monkeypatch.undo()
    assert disclosure_bounds(released, rule, "triples").unsettled == 0


@pytest.mark.parametrize(
    ("rule", "also", "message"),
    [
        ({"a": UNALTERED}, (), "margin a × b has no release rule"),
        (ReleaseRule("coarsened", 7), (), "margin a × b: a released count is none that the rule coarsened"),
        (UNALTERED, [("a", "income")], "unknown variable income"),
        ({"a × b": UNALTERED, "b × c": ReleaseRule("unaltered", 5)}, (), "share their limit"),
    ],
)
def test_what_is_wrong_is_named(rule, also, message):
    released = margins_of(a_b=[[40, 50], [60, 71]], b_c=[[100], [121]])
    with pytest.raises(ValueError, match=message):
        disclosure_bounds(released, rule, also=also)
