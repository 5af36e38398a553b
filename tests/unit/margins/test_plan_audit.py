"""The audit of plans: every true table is inside the bounds, and bounds are what all tables of a tiny world say."""

import json
from collections import defaultdict
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.contract.census_spec import SdcPlan
from synth_platform.margins.coarsen import coarsen
from synth_platform.margins.disclosure.audit import cell_bounds, disclosure_bounds
from synth_platform.margins.disclosure.intervals import ReleaseRule
from synth_platform.margins.disclosure.plan import audit_released, audited, released_rule
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero, possible

ZEROS = ("kept", "lifted")
ROUNDINGS = ("nearest", "up", "down")
ADJUSTMENTS = ("apportion", "subtract", "subtract_multiple", "subtract_below_limit")
PLANS = [
    *({"variant": "controlled", "zeros": zeros} for zeros in ZEROS),
    *({"variant": "coarsened", "zeros": z, "rounding": r} for z, r in product(ZEROS, ROUNDINGS)),
    *(
        {"variant": "adjusted", "zeros": z, "rounding": r, "adjustment": a}
        for z, r, a in product(ZEROS, ROUNDINGS, ADJUSTMENTS)
    ),
]


def plan_of(options, limit=3, **more):
    return SdcPlan.model_validate({"policy": "sdc", "limit": limit, **options, **more})


def domain_of(shape):
    return Domain(tuple(Variable(f"v{axis}", tuple(map(str, range(n)))) for axis, n in enumerate(shape)))


def summed(joint, axes):
    return joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in axes))


def counted(joint, tables, zeros=()):
    domain = domain_of(joint.shape)
    margins = (Margin(tuple(domain.names[a] for a in axes), summed(joint, axes).astype(float), ()) for axes in tables)
    return MarginSet(domain, tuple(margins), zeros)


def protected(margins, plan):
    return coarsen(
        margins,
        plan.limit,
        plan.variant,
        zeros=plan.zeros,
        rounding=plan.rounding,
        adjustment=plan.adjustment,
        total=plan.total,
    )


@st.composite
def worlds(draw):
    shape = draw(st.sampled_from([(2, 2), (3, 2, 2), (2, 4, 3), (2, 2, 2, 2)]))
    axes = range(len(shape))
    zeros = ()
    if draw(st.booleans()):
        pair = draw(st.sampled_from(list(combinations(axes, 2))))
        zeros = (StructuralZero.of({f"v{a}": [str(draw(st.integers(0, shape[a] - 1)))] for a in pair}),)
    rate = draw(st.sampled_from([0.3, 1, 3, 10]))
    joint = np.random.default_rng(draw(st.integers(0, 2**32))).poisson(rate, shape) * possible(domain_of(shape), zeros)
    if not joint.any():
        joint[np.unravel_index(possible(domain_of(shape), zeros).argmax(), shape)] = 1
    tables = list(combinations(axes, 2))
    if draw(st.booleans()):
        tables = tables[1:] or tables
        tables += [(a,) for a in axes if not any(a in table for table in tables)]
    return joint, tables, zeros


@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize("variant", ["controlled", "coarsened", "adjusted"])
@settings(max_examples=40, deadline=None)
@given(world=worlds(), data=st.data())
def test_every_true_table_is_inside_the_bounds(variant, zeros, world, data):
    joint, tables, structural = world
    options = data.draw(st.sampled_from([o for o in PLANS if (o["variant"], o["zeros"]) == (variant, zeros)]))
    total = int(joint.sum())
    exact = data.draw(st.booleans())
    own = {"total": total} if variant == "adjusted" and exact else {}
    plan = plan_of(options, data.draw(st.sampled_from([2, 3, 5, 10])), **own)
    public = data.draw(st.sampled_from([None, total]))
    margins, rule = audited(counted(joint, tables, structural), plan, public)
    if public or own:
        assert rule.total == (total, total)
    method = data.draw(st.sampled_from(["shuttle", "relaxation", "triples", "linear_programming"]))
    bounds = cell_bounds(margins, rule, method, also=[margins.domain.names[:3]])
    assert bounds.consistent
    for axes, cells in bounds.tables.items():
        truth = summed(joint, axes)
        assert (cells.lower <= truth).all()
        assert (truth <= cells.upper).all()


TABLES = ((0, 1), (0, 2), (1, 2))


@pytest.mark.parametrize(
    "options",
    [options for options in PLANS if options.get("adjustment", "apportion") == "apportion"],
    ids=lambda options: "-".join(options.values()),
)
def test_bounds_are_what_every_table_of_a_tiny_world_says(options):
    """Of all tables of 2 × 2 × 2 cells and one to four people, all that stand for a target of 3.

    Alike are those with the same coarsened margins, and the same number of people where the plan adjusts none.
    """
    every = np.array([w for w in product(range(5), repeat=8) if 0 < sum(w) < 5]).reshape(-1, 2, 2, 2)
    plan, adjusted = plan_of(options), options["variant"] == "adjusted"
    views = np.concatenate([every.sum(axis=1 + left).reshape(-1, 4) for left in (2, 1, 0)], axis=1)
    coarse, people = protected_by_hand(views, plan), every.sum(axis=(1, 2, 3))
    for at in np.random.default_rng(0).choice(len(every), 4, replace=False):
        margins, rule = audited(counted(every[at], TABLES), plan, None if adjusted else int(people[at]))
        bounds = cell_bounds(margins, rule, "linear_programming")
        alike = every[(coarse == coarse[at]).all(axis=1) & (adjusted | (people == people[at]))]
        for axes in TABLES:
            cells = np.array([summed(table, axes) for table in alike])
            assert (bounds.tables[axes].lower == cells.min(axis=0)).all()
            assert (bounds.tables[axes].upper == cells.max(axis=0)).all()


def protected_by_hand(counts, plan):
    if plan.variant == "controlled":
        made = np.where(counts < plan.limit, plan.limit - 1, counts)
    else:
        up = {"nearest": (2 * counts + plan.limit) // (2 * plan.limit), "up": -(-counts // plan.limit)}
        made = np.maximum(up.get(plan.rounding, counts // plan.limit), 1) * plan.limit
    return made if plan.zeros == "lifted" else np.where(counts == 0, 0, made)


@pytest.mark.parametrize("adjustment", ADJUSTMENTS)
def test_adjusted_margins_are_a_function_of_what_the_audit_takes_as_known(adjustment):
    """Tables of 2 × 2 cells: the same coarsened margins and target, the same release."""
    released = defaultdict(set)
    plan = plan_of({"variant": "adjusted", "adjustment": adjustment, "zeros": "kept"})
    for world in product((0, 1, 4, 5), repeat=4):
        if not any(world):
            continue
        margins = counted(np.reshape(world, (2, 2)), [(0, 1)])
        try:
            made = protected(margins, plan).margins[0]
        except ValueError:
            continue
        coarse, rule = audited(margins, plan)
        released[coarse.margins[0].counts.tobytes(), rule.total].add(made.counts.tobytes())
    assert len(released) > 20
    assert {len(each) for each in released.values()} == {1}


def test_what_a_target_tells_of_the_total():
    joint = np.array([[20, 30], [40, 54]])
    adjusted = plan_of({"variant": "adjusted"}, limit=10)
    assert audited(counted(joint, [(0, 1)]), adjusted)[1].total == (135, 144)
    few = counted(np.array([[1, 2], [3, 0]]), [(0, 1)])
    assert audited(few, plan_of({"variant": "adjusted"}, limit=5))[1].total == (1, 7)
    exact = plan_of({"variant": "adjusted"}, limit=10, total=144)
    assert audited(counted(joint, [(0, 1)]), exact)[1].total == (144, 144)
    other = plan_of({"variant": "adjusted"}, limit=10, total=1_000)
    assert audited(counted(joint, [(0, 1)]), other)[1].total is None
    assert audited(counted(joint, [(0, 1)]), plan_of({}))[1] == ReleaseRule("coarsened", 3, "lifted")
    assert released_rule(plan_of({"variant": "controlled"}), (5, 9)) == ReleaseRule(
        "controlled", 3, "lifted", total=(5, 9)
    )
    with pytest.raises(ValueError, match="public total: it is not the number of people") as wrong:
        audited(counted(joint, [(0, 1)]), adjusted, 145)
    assert "144" not in str(wrong.value)


def test_a_public_total_can_fail_what_passes_without_it():
    """Nine groups of people rounded up: whoever knows that there are nine people knows that each group has one."""
    joint = np.ones((3, 3), dtype=int)
    plan = plan_of({"rounding": "up", "zeros": "kept"})
    assert audit_released(counted(joint, [(0, 1)]), plan).document()["status"] == "PASS"
    told = audit_released(counted(joint, [(0, 1)]), plan, public_total=9)
    assert told.reasons == ("small_cell_recoverable",)


def test_rounded_tables_are_bounded_each_by_itself():
    tables = MarginSet(
        domain_of((2, 2, 2)),
        (
            Margin(("v0", "v1"), np.array([[50.0, 60], [70, 80]]), ()),
            Margin(("v0", "v2"), np.array([[90.0, 90], [70, 80]]), ()),
        ),
    )
    plan = plan_of({"variant": "coarsened"}, limit=10)
    assert "margins_contradict" in audit_released(tables, plan).reasons
    report = audit_released(tables, plan, totals="differ")
    assert report.document()["method"] == "each_alone"
    assert {table.title for table in report.tables} == {"v0 × v1", "v0 × v2"}
    assert "margins_contradict" not in report.reasons
    small = tables.with_margins((tables.margins[0], tables.margins[1].became(np.array([[3.0, 90], [70, 80]]), "")))
    controlled = plan_of({"variant": "controlled", "zeros": "kept"}, limit=10)
    assert "small_cell_recoverable" in audit_released(small, controlled, totals="differ").reasons


def test_tables_whose_totals_differ_are_audited_together_where_one_table_of_people_fits():
    """A group of 1 … 14 by the first table is spread over six categories by the second: each has at most nine."""
    domain = Domain(tuple(Variable(name, tuple(map(str, range(n)))) for name, n in (("a", 2), ("b", 2), ("c", 6))))
    tables = MarginSet(
        domain,
        (
            Margin(("a", "b"), np.array([[12.0, 0], [200, 300]]), ()),
            Margin(("a", "c"), np.array([[2.0] * 6, [80] * 6]), ()),
        ),
    )
    plan = plan_of({"variant": "coarsened", "zeros": "kept"}, limit=10)
    together = audit_released(tables, plan)
    differ = audit_released(tables, plan, totals="differ")
    assert "small_cell_recoverable" in together.reasons
    assert differ.document() == together.document()


def test_a_report_is_a_json_document():
    joint = np.arange(12).reshape(3, 2, 2)
    report = disclosure_bounds(counted(joint, TABLES), ReleaseRule("unaltered", 5))
    document = report.document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert (document["status"], document["limit"], document["method"]) == ("FAIL", 5, "linear_programming")
    assert document["reasons"] == list(report.reasons)
    assert [table["title"] for table in document["tables"]] == [table.title for table in report.tables]
    assert document["tables"][0]["recoverable"] == report.tables[0].recoverable
