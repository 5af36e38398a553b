"""Intervals behind released counts: every true count that a release can be of, and no other, by trying them all."""

from itertools import product

import numpy as np
import pytest

from synth_platform.margins.coarsen import coarsen
from synth_platform.margins.disclosure.intervals import ReleaseRule, count_intervals
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero

TRUE = np.arange(61)
EVERY = np.ones(61, dtype=bool)


def release(variant, limit, zeros, rounding="nearest", adjustment=None):
    domain = Domain((Variable("n", tuple(map(str, TRUE))),))
    margins = MarginSet(domain, (Margin(("n",), TRUE.astype(float), ("counted",)),))
    adjusted = {} if adjustment is None else {"adjustment": adjustment, "total": 1600}
    return next(iter(coarsen(margins, limit, variant, zeros=zeros, rounding=rounding, **adjusted)))


def assert_tight(released, rule):
    """The interval of each released count runs from its least to its greatest true count."""
    intervals = count_intervals(released, EVERY, rule)
    for count in np.unique(released):
        behind = TRUE[released == count]
        if behind.max() + 2 * rule.limit > TRUE.max():
            continue  # larger counts than were tried are behind it too
        assert (intervals.lower[behind] == behind.min()).all()
        assert (intervals.upper[behind] == behind.max()).all()


@pytest.mark.parametrize(
    ("limit", "zeros", "rounding"), list(product((2, 3, 5, 10), ("kept", "lifted"), ("nearest", "up", "down")))
)
def test_intervals_of_coarsened_counts_hold_every_true_count_and_no_other(limit, zeros, rounding):
    released = release("coarsened", limit, zeros, rounding).counts
    assert_tight(released, ReleaseRule("coarsened", limit, zeros, rounding))


@pytest.mark.parametrize(("limit", "zeros"), list(product((2, 3, 10), ("kept", "lifted"))))
def test_intervals_of_controlled_counts_hold_every_true_count_and_no_other(limit, zeros):
    assert_tight(release("controlled", limit, zeros).counts, ReleaseRule("controlled", limit, zeros))


@pytest.mark.parametrize(
    ("adjustment", "zeros"),
    list(product(("subtract", "subtract_multiple", "subtract_below_limit"), ("kept", "lifted"))),
)
def test_intervals_of_shifted_counts_hold_every_true_count_and_no_other(adjustment, zeros):
    released = release("adjusted", 10, zeros, adjustment=adjustment)
    shift = -float(released.provenance[-1].split(", ")[-1].split(" off")[0])
    assert shift < 0
    floor = 0.0 if adjustment == "subtract_below_limit" else 10.0
    rule = ReleaseRule("adjusted", 10, zeros, shift=(shift, shift), floor=floor)
    assert_tight(released.counts, rule)
    loose = count_intervals(
        released.counts, EVERY, ReleaseRule("adjusted", 10, zeros, shift=(shift - 13, shift + 2), floor=floor)
    )
    tight = count_intervals(released.counts, EVERY, rule)
    assert (loose.lower <= tight.lower).all()
    assert (loose.upper >= tight.upper).all()
    assert loose.upper.sum() > tight.upper.sum()


def test_published_counts_are_themselves_and_impossible_cells_are_empty():
    intervals = count_intervals(np.array([3.0, 0.0, 7.0]), np.array([True, False, True]), ReleaseRule("unaltered"))
    assert intervals.lower.tolist() == intervals.upper.tolist() == [3, 0, 7]
    lifted = count_intervals(np.array([10.0, 0.0]), np.array([True, False]), ReleaseRule("coarsened", 10, "lifted"))
    assert lifted.lower.tolist() == [0, 0]
    assert lifted.upper.tolist() == [14, 0]


@pytest.mark.parametrize(
    ("count", "rule"),
    [
        (2.5, ReleaseRule("unaltered")),
        (8.0, ReleaseRule("controlled", 10)),
        (0.0, ReleaseRule("controlled", 10, "lifted")),
        (15.0, ReleaseRule("coarsened", 10)),
        (0.0, ReleaseRule("coarsened", 10, "lifted")),
        (16.0, ReleaseRule("adjusted", 10, shift=(-3.0, -1.0))),
    ],
)
def test_a_count_that_the_rule_cannot_make_is_refused(count, rule):
    with pytest.raises(ValueError, match=f"none that the rule {rule.variant}"):
        count_intervals(np.array([count]), np.array([True]), rule)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ReleaseRule("coarsened", 1), "limit 1"),
        (lambda: ReleaseRule("adjusted", shift=(1.0, 0.0)), "least shift stands first"),
        (lambda: ReleaseRule("coarsened", shift=(0.0, 1.0)), "variant coarsened shifts no count"),
        (lambda: ReleaseRule("adjusted", floor=-1.0), "floor"),
        (lambda: ReleaseRule("coarsened", total=(5, 4)), "least number of people"),
    ],
)
def test_what_is_wrong_with_a_rule_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_structural_zeros_stay_impossible():
    domain = Domain((Variable("a", ("0", "1")), Variable("b", ("0", "1"))))
    margins = MarginSet(
        domain,
        (Margin(("a", "b"), np.array([[0.0, 4.0], [3.0, 20.0]]), ()),),
        (StructuralZero.of({"a": ["0"], "b": ["0"]}),),
    )
    margin = next(iter(coarsen(margins, 10, "coarsened", zeros="lifted")))
    intervals = count_intervals(margin.counts, margins.possible(margin), ReleaseRule("coarsened", 10, "lifted"))
    assert intervals.upper.tolist() == [[0, 14], [14, 24]]
