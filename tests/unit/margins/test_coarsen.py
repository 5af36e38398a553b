"""Coarsening: three tables worked by hand, and what holds for any counts, limit and order."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.contract.census_spec import Adjustment, Rounding, Zeros
from synth_platform.margins.coarsen import coarsen
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.targets import normalise
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero

DOMAIN = Domain(
    (Variable("age", ("child", "adult")), Variable("work", ("none", "farm", "mill")), Variable("sex", ("f", "m")))
)
NAMES = (("age", "work"), ("work", "sex"), ("age", "sex"))
CHILD_MILL = StructuralZero.of({"age": ["child"], "work": ["mill"]})
TABLE = [[3, 14, 0], [25, 8, 50]]  # 100 people
LIMITS = st.sampled_from((2, 3, 5, 10, 25))
OF_LIMIT_AND_MULTIPLES = ("apportion", "subtract_multiple")


def one(counts, zeros=()):
    return MarginSet(DOMAIN.project(NAMES[0]), (Margin(NAMES[0], np.array(counts, float), ("census.csv",)),), zeros)


def released(margins, *args, **options):
    return coarsen(margins, *args, **options).margins[0].counts.tolist()


@st.composite
def any_margins(draw):
    margins = []
    for names in NAMES:
        shape = DOMAIN.project(names).shape
        few, many = st.integers(0, 12), st.integers(0, 400)
        cells = draw(st.lists(st.one_of(few, many), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
        counts = np.array(cells, float).reshape(shape)
        counts[-1, 0] += 1
        if names == NAMES[0]:
            counts[0, 2] = 0
        margins.append(Margin(names, counts, ("census.csv",)))
    return MarginSet(DOMAIN, tuple(margins), (CHILD_MILL,))


class TestByHand:
    def test_small_cells_become_nine_and_the_rest_stays(self):
        assert released(one(TABLE), variant="controlled") == [[9, 14, 0], [25, 9, 50]]
        assert released(one(TABLE), variant="controlled", zeros="lifted") == [[9, 14, 9], [25, 9, 50]]

    def test_multiples_of_ten(self):
        assert released(one(TABLE), variant="coarsened") == [[10, 10, 0], [30, 10, 50]]
        assert released(one(TABLE), variant="coarsened", rounding="up") == [[10, 20, 0], [30, 10, 50]]
        assert released(one(TABLE), variant="coarsened", rounding="down") == [[10, 10, 0], [20, 10, 50]]
        assert released(one(TABLE), variant="coarsened", zeros="lifted") == [[10, 10, 10], [30, 10, 50]]

    def test_the_excess_of_ten_people_is_taken_off(self):
        """The coarsened table holds 110 for 100 people: 11 tens for 10, of which the cells of 10 keep one each."""
        assert released(one(TABLE)) == [[10, 10, 0], [30, 10, 40]]  # 7 tens as 3 : 5, that is 2.625 : 4.375
        assert released(one(TABLE), adjustment="subtract") == [[10, 10, 0], [25, 10, 45]]
        assert released(one(TABLE), adjustment="subtract_multiple") == [[10, 10, 0], [30, 10, 50]]  # or 90: as far off
        assert released(one(TABLE), adjustment="subtract_multiple", total=98) == [[10, 10, 0], [20, 10, 40]]
        assert released(one(TABLE), adjustment="subtract_below_limit") == [[8, 8, 0], [28, 8, 48]]

    def test_a_total_that_is_too_small_is_filled_up(self):
        assert released(one(TABLE), adjustment="subtract", total=120) == [[12, 12, 0], [32, 12, 52]]
        assert released(one(TABLE), total=130) == [[10, 10, 0], [40, 10, 60]]  # 1.18 ×3, 3.55, 5.91 of 13 tens


def test_provenance_tells_every_step():
    assert coarsen(one(TABLE), adjustment="subtract").margins[0].provenance == (
        "census.csv",
        "coarsened: limit 10, zeros kept, rounding nearest",
        "adjusted: subtract, total 100, 5 off each cell",
    )
    assert coarsen(one(TABLE), 5, "controlled").margins[0].provenance[1:] == ("controlled: limit 5, zeros kept",)


def test_without_a_total_the_sample_size_goes_out_rounded():
    assert coarsen(one([[3, 14, 0], [25, 8, 54]])).margins[0].total == 100
    assert coarsen(one([[3, 14, 0], [25, 8, 55]])).margins[0].total == 110


@settings(max_examples=40, deadline=None)
@given(any_margins(), LIMITS, st.sampled_from(get_args(Zeros)), st.sampled_from(get_args(Rounding)))
def test_coarsened_counts_are_multiples_that_say_their_interval(margins, limit, zeros, rounding):
    out = coarsen(margins, limit, "coarsened", zeros=zeros, rounding=rounding)
    for before, after in zip(margins, out, strict=True):
        n, c, possible = before.counts, after.counts, margins.possible(before)
        assert (c % limit == 0).all()
        assert (c[n > 0] >= limit).all()
        assert not c[~possible].any()
        assert (c[possible & (n == 0)] == (limit if zeros == "lifted" else 0)).all()
        low, high = {
            "nearest": (c - limit / 2, c + limit / 2 - 0.5),
            "up": (c - limit + 1, c),
            "down": (c, c + limit - 1),
        }[rounding]
        assert (n[n > 0] <= high[n > 0]).all()
        assert (n[c > limit] >= low[c > limit]).all()
    again = coarsen(out, limit, "coarsened", zeros=zeros, rounding=rounding)
    assert all((a.counts == b.counts).all() for a, b in zip(out, again, strict=True))


@settings(max_examples=40, deadline=None)
@given(any_margins(), LIMITS, st.sampled_from(get_args(Zeros)))
def test_controlled_counts_are_exact_or_one_below_the_limit(margins, limit, zeros):
    for before, after in zip(margins, coarsen(margins, limit, "controlled", zeros=zeros), strict=True):
        small = (before.counts < limit) & ((before.counts > 0) | (zeros == "lifted")) & margins.possible(before)
        assert (after.counts == np.where(small, limit - 1, before.counts)).all()


@settings(max_examples=120, deadline=None)
@given(
    any_margins(), LIMITS, st.sampled_from(get_args(Zeros)), st.sampled_from(get_args(Adjustment)), st.integers(0, 900)
)
def test_adjusted_counts_keep_what_their_adjustment_promises(margins, limit, zeros, adjustment, more):
    total = 6 * limit + more
    coarse = coarsen(margins, limit, "coarsened", zeros=zeros)
    if adjustment == "subtract_below_limit":
        total += int(max(margin.total for margin in coarse))
    out = coarsen(margins, limit, zeros=zeros, adjustment=adjustment, total=total)
    for before, after in zip(coarse, out, strict=True):
        c, r = before.counts, after.counts
        assert ((r > 0) == (c > 0)).all()
        if adjustment in OF_LIMIT_AND_MULTIPLES:
            assert (r % limit == 0).all()
        if adjustment != "subtract_below_limit":
            assert (r[c > 0] >= limit * (1 - 1e-12)).all()
        if adjustment == "apportion":
            assert abs(r.sum() - total) <= limit / 2
            assert (np.diff(r.ravel()[np.argsort(c.ravel(), kind="stable")]) >= -limit).all()
        elif adjustment == "subtract_multiple":
            tried = [np.maximum(c - v, limit)[c > 0].sum() for v in np.arange(-1000, 500) * limit]
            assert abs(r.sum() - total) == min(abs(t - total) for t in tried)
        else:
            assert r.sum() == pytest.approx(total)
            kept = r > limit if adjustment == "subtract" else c > 0
            assert np.ptp((c - r)[kept]) < 1e-9 if kept.any() else True


@settings(max_examples=40, deadline=None)
@given(any_margins(), LIMITS, st.sampled_from(get_args(Adjustment)), st.permutations(range(3)), st.booleans())
def test_neither_the_order_of_margins_nor_of_variables_matters(margins, limit, adjustment, order, turned):
    options = {"adjustment": adjustment, "total": 2000}
    moved = tuple(margins.margins[k] for k in order)
    if turned:
        moved = tuple(Margin(m.names[::-1], m.counts.T, m.provenance) for m in moved)
    out = coarsen(margins.with_margins(moved), limit, **options)
    straight = {frozenset(m.names): m.counts for m in coarsen(margins, limit, **options)}
    for margin in out:
        assert (straight[frozenset(margin.names)] == (margin.counts.T if turned else margin.counts)).all()


def test_the_step_among_equal_cells_goes_to_the_same_one_in_a_turned_table():
    margins = one([[0, 20, 20], [20, 0, 20]])  # 9 tens for 4 cells of 2
    turned = Margin(NAMES[0][::-1], margins.margins[0].counts.T, ())
    assert released(margins, total=90) == [[0, 30, 20], [20, 0, 20]]
    assert released(margins.with_margins((turned,)), total=90) == [[0, 20], [30, 0], [20, 20]]


def test_lifting_leaves_structural_zeros():
    margins = one(TABLE, (CHILD_MILL,))
    for options in ({"variant": "controlled"}, {"variant": "coarsened"}, {"total": 200}):
        assert released(margins, zeros="lifted", **options)[0][2] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 1}, "whole number above 1, such as 10; 1 is none"),
        ({"limit": 0}, "whole number above 1"),
        ({"limit": -10}, "whole number above 1"),
        ({"limit": True}, "whole number above 1"),
        ({"limit": 2.5}, "whole number above 1"),
        ({"variant": "rounded"}, "variant 'rounded' is none of controlled, coarsened, adjusted"),
        ({"zeros": "hidden"}, "zeros 'hidden' is none of kept, lifted"),
        ({"rounding": "random"}, "rounding 'random' is none of nearest, up, down"),
        ({"adjustment": "scale"}, "adjustment 'scale' is none of apportion"),
        ({"variant": "controlled", "rounding": "up"}, "controlled variant rounds nothing"),
        ({"variant": "coarsened", "total": 100}, "coarsened variant is not adjusted"),
        ({"variant": "controlled", "adjustment": "subtract"}, "controlled variant is not adjusted"),
        ({"total": 0}, "above 0"),
        ({"limit": 25}, "margin age × work: its cells, at 25 people each, are too many for the total; combine"),
        ({"adjustment": "subtract_below_limit", "total": 40}, "margin age × work: subtracting one value"),
    ],
)
def test_what_is_wrong_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        coarsen(one(TABLE), **options)


def test_an_adjustment_and_a_fit_stand_for_the_same_number_of_people():
    """The median of totals that disagree: one table that counts others does not move it."""
    counts = {"a": [30.0, 14.0], "b": [60.0, 44.0], "c": [1e6, 0.0]}
    domain = Domain(tuple(Variable(name, ("0", "1")) for name in counts))
    margins = MarginSet(domain, tuple(Margin((name,), np.array(c), ()) for name, c in counts.items()))
    assert normalise(margins).total == 104
    for adjusted in coarsen(margins, 10):
        assert adjusted.total == 100
        assert adjusted.provenance[-1] == "adjusted: apportion, total 100"
