"""Bounds on cells: closed forms, every table of a tiny world, and the truth of hundreds of random ones."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from synth_platform.margins.coarsen import coarsen
from synth_platform.margins.disclosure.bounds_lp import linear_programming_bounds
from synth_platform.margins.disclosure.bounds_relaxed import Effort, relaxed_bounds, undecided
from synth_platform.margins.disclosure.bounds_shuttle import ContradictoryMarginsError, shuttle_bounds
from synth_platform.margins.disclosure.intervals import Intervals, ReleaseRule, count_intervals
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.margin import Margin, MarginSet


def summed(joint, axes):
    return joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in axes))


def point(counts):
    whole = np.asarray(counts, dtype=np.int64)
    return Intervals(whole, whole)


def released(joint, tables, rule):
    """Intervals of the tables of a joint table, released by `coarsen`."""
    domain = Domain(tuple(Variable(str(axis), tuple(map(str, range(n)))) for axis, n in enumerate(joint.shape)))
    margins = MarginSet(
        domain, tuple(Margin(tuple(map(str, axes)), summed(joint, axes).astype(float), ()) for axes in tables)
    )
    made = coarsen(margins, rule.limit, rule.variant, zeros=rule.zeros, rounding=rule.rounding)
    return {
        axes: count_intervals(margin.counts, np.ones(margin.counts.shape, bool), rule)
        for axes, margin in zip(tables, made, strict=True)
    }


def both(shape, known, wanted):
    outer = shuttle_bounds(shape, known, wanted)
    outer = {axes: outer[axes] for axes in wanted}
    return outer, linear_programming_bounds(np.ones(shape, dtype=bool), known, outer)


def test_two_one_way_margins_give_frechet_bounds():
    rows, columns, people = np.array([7, 2, 4]), np.array([9, 4]), 13
    known = {(0,): point(rows), (1,): point(columns)}
    lower = np.maximum(0, rows[:, None] + columns - people)
    upper = np.minimum(rows[:, None], columns)
    for bounds in both((3, 2), known, [(0, 1)]):
        assert (bounds[0, 1].lower == lower).all()
        assert (bounds[0, 1].upper == upper).all()


def test_decomposable_margins_give_the_sharp_bounds_of_dobra_and_fienberg():
    joint = np.random.default_rng(0).poisson(2.0, (3, 2, 4))
    ab, bc, b = joint.sum(axis=2), joint.sum(axis=0), joint.sum(axis=(0, 2))
    known = {(0, 1): point(ab), (1, 2): point(bc)}
    lower = np.maximum(0, ab[:, :, None] + bc - b[:, None])
    upper = np.minimum(ab[:, :, None], bc)
    for bounds in both(joint.shape, known, [(0, 2), (0, 1, 2)]):
        assert (bounds[0, 1, 2].lower == lower).all()
        assert (bounds[0, 1, 2].upper == upper).all()
        assert (bounds[0, 2].lower == lower.sum(axis=1)).all()
        assert (bounds[0, 2].upper == upper.sum(axis=1)).all()


@pytest.mark.parametrize("third", [0, 1, 2])
def test_two_tables_bound_a_third_through_the_variable_that_they_share(third):
    joint = np.random.default_rng(third).poisson(1.0, (3, 4, 2))
    wanted = tuple(axis for axis in range(3) if axis != third)
    known = {tuple(sorted((axis, third))): point(summed(joint, {axis, third})) for axis in wanted}
    ac, bc = (summed(np.moveaxis(joint, third, 2), {at, 2}) for at in (0, 1))
    c = ac.sum(axis=0)
    for bounds in both(joint.shape, known, [wanted]):
        assert (bounds[wanted].lower == np.maximum(0, ac[:, None] + bc - c).sum(axis=2)).all()
        assert (bounds[wanted].upper == np.minimum(ac[:, None], bc).sum(axis=2)).all()


TABLES = ((0, 1), (0, 2), (1, 2))


@pytest.mark.parametrize(
    "rule",
    [
        ReleaseRule("coarsened", 3),
        ReleaseRule("coarsened", 2, "lifted", "up"),
        ReleaseRule("controlled", 3),
    ],
    ids=str,
)
def test_linear_programming_attains_what_every_table_of_a_tiny_world_says(rule):
    people = 5
    worlds = np.array([w for w in product(range(people + 1), repeat=7) if sum(w) <= people])
    worlds = np.column_stack([worlds, people - worlds.sum(axis=1)]).reshape(-1, 2, 2, 2)
    views = np.concatenate([worlds.sum(axis=1 + left).reshape(-1, 4) for left in (2, 1, 0)], axis=1)
    made = _rule_by_hand(views, rule)
    wanted = [*TABLES, (0, 1, 2)]
    for joint in worlds[np.random.default_rng(1).choice(len(worlds), 5, replace=False)]:
        alike = worlds[(made == made[(worlds == joint).all(axis=(1, 2, 3))]).all(axis=1)]
        known = released(joint, TABLES, rule) | {(): point(people)}
        _, bounds = both((2, 2, 2), known, wanted)
        for axes in wanted:
            cells = np.array([summed(world, axes) for world in alike])
            assert (bounds[axes].lower == cells.min(axis=0)).all()
            assert (bounds[axes].upper == cells.max(axis=0)).all()


def _rule_by_hand(counts, rule):
    if rule.variant == "controlled":
        return np.where((counts > 0) & (counts < rule.limit), rule.limit - 1, counts)
    near = {"nearest": (2 * counts + rule.limit) // (2 * rule.limit), "up": -(-counts // rule.limit)}[rule.rounding]
    multiples = np.maximum(near, 1) * rule.limit
    return multiples if rule.zeros == "lifted" else np.where(counts == 0, 0, multiples)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_the_truth_and_linear_programming_is_within_the_shuttle(seed):
    """100 random worlds a seed, 5 of them by linear programming too."""
    generator = np.random.default_rng(seed)
    for world in range(100):
        shape = tuple(generator.integers(2, 4, size=4 if world % 10 == 9 else generator.integers(2, 4)).tolist())
        joint = generator.poisson(generator.gamma(0.4, 20.0, size=shape))
        joint.flat[0] += 1
        rule = ReleaseRule(
            "coarsened",
            int(generator.integers(2, 11)),
            ("kept", "lifted")[generator.integers(2)],
            ("nearest", "up", "down")[generator.integers(3)],
        )
        if generator.random() < 0.3:
            rule = ReleaseRule("controlled", rule.limit, rule.zeros)
        pairs = list(combinations(range(len(shape)), 2))
        tables = [pair for pair in pairs if generator.random() < 0.8] or pairs
        tables += [(axis,) for axis in range(len(shape)) if not any(axis in pair for pair in tables)]
        wanted = [*pairs, *combinations(range(len(shape)), min(3, len(shape)))]
        known = released(joint, tables, rule)
        if generator.random() < 0.5:
            known[()] = point(joint.sum())
        results = [shuttle_bounds(shape, known, wanted)]
        if world < 5:
            outer = {axes: results[0][axes] for axes in wanted}
            results.append(linear_programming_bounds(np.ones(shape, bool), known, outer))
            for axes in wanted:
                assert (results[1][axes].lower >= outer[axes].lower).all()
                assert (results[1][axes].upper <= outer[axes].upper).all()
        for bounds in results:
            for axes, cells in bounds.items():
                truth = summed(joint, axes)
                assert (cells.lower <= truth).all()
                assert (cells.upper >= truth).all()


def test_linear_programming_finds_what_the_shuttle_does_not():
    """Of 2 × 2 × 2 with exact pairs one number is free: every cell is known to within the range of that one."""
    joint = np.random.default_rng(4).poisson(4.0, (2, 2, 2))
    outer, bounds = both((2, 2, 2), {pair: point(summed(joint, pair)) for pair in TABLES}, [(0, 1, 2)])
    even = np.indices((2, 2, 2)).sum(axis=0) % 2 == 0
    free = joint[even].min() + joint[~even].min()
    assert (bounds[0, 1, 2].width == free).all()
    assert (outer[0, 1, 2].width >= free).all()


def test_all_pairs_of_24_variables_are_bounded_together():
    """Twelve people, alone in a category of the first variable and alike in the second, are spread over the others."""
    generator = np.random.default_rng(2)
    codes = generator.integers(0, 8, (3_000, 24))
    codes[:, 0] %= 7
    codes[:12, :2] = 7, 0
    rule, known, truth = ReleaseRule("coarsened", 10), {}, {}
    for a, b in combinations(range(24), 2):
        truth[a, b] = np.bincount(codes[:, a] * 8 + codes[:, b], minlength=64).reshape(8, 8)
        known[a, b] = count_intervals(_rule_by_hand(truth[a, b], rule).astype(float), np.ones((8, 8), bool), rule)
    bounds = shuttle_bounds((8,) * 24, known)
    for axes, cells in truth.items():
        assert (bounds[axes].lower <= cells).all()
        assert (bounds[axes].upper >= cells).all()
        if axes[0] == 0 and axes[1] > 1:
            assert (bounds[axes].upper[7] == np.where(cells[7] > 0, 14 - (cells[7] > 0).sum() + 1, 0)).all()


def test_bounds_are_of_whole_people():
    """Of three joint cells any two share a category of at most one person, twice over: halves make 3, people 2."""
    possible = np.zeros((4, 4, 4), dtype=bool)
    for first in (0, 2):
        for other in np.eye(3, dtype=int):
            possible[tuple(first + other)] = True
    caps = Intervals(np.zeros(4, np.int64), np.array([1, 9, 1, 9]))
    outer = {(): Intervals(np.array(0), np.array(9))}
    bounds = linear_programming_bounds(possible, dict.fromkeys([(0,), (1,), (2,)], caps), outer)
    assert (bounds[()].lower, bounds[()].upper) == (0, 2)


def test_margins_of_different_people_contradict_each_other():
    known = {(0,): point([3, 4]), (1,): point([5, 5])}
    with pytest.raises(ContradictoryMarginsError, match="contradict"):
        shuttle_bounds((2, 2), known)
    outer = {(0, 1): Intervals(np.zeros((2, 2), np.int64), np.full((2, 2), 10))}
    with pytest.raises(ContradictoryMarginsError, match="contradict"):
        linear_programming_bounds(np.ones((2, 2), dtype=bool), known, outer)


@pytest.mark.parametrize("seed", range(2))
def test_relaxations_settle_what_a_program_for_each_cell_would(seed):
    """20 random worlds a seed, with exact one-way margins: few, nobody or neither, as linprog says cell by cell."""
    generator, small, empty = np.random.default_rng(seed), 0, 0
    for _ in range(20):
        shape = [(2, 2, 2), (3, 2, 2), (2, 2, 2, 2)][generator.integers(3)]
        joint = generator.multinomial(
            int(generator.integers(20, 200)), generator.dirichlet(np.full(np.prod(shape), 0.3))
        )
        joint = joint.reshape(shape)
        rule = ReleaseRule("coarsened", 10, ("kept", "lifted")[generator.integers(2)], "up")
        known = released(joint, list(combinations(range(len(shape)), 2)), rule)
        known |= {(axis,): point(summed(joint, {axis})) for axis in range(len(shape))}
        wanted = [(0, 1), (0, 1, 2), (2,)]
        nothing = np.zeros(shape, np.int64)
        outer = {axes: Intervals(summed(nothing, axes), summed(nothing, axes) + joint.sum()) for axes in wanted}
        found = relaxed_bounds(np.ones(shape, bool), known, outer, 10, Effort(10**9))
        codes = np.indices(shape).reshape(len(shape), -1)

        def sums(axes, codes=codes, shape=shape):
            dimensions = tuple(shape[axis] for axis in axes)
            cells = np.ravel_multi_index([codes[axis] for axis in axes], dimensions) if axes else 0 * codes[0]
            return (cells == np.arange(np.prod(dimensions, dtype=int))[:, None]).astype(float)

        rows = np.concatenate([sums(axes) for axes in known])
        most = np.concatenate([cells.upper.ravel() for cells in known.values()])
        least = np.concatenate([cells.lower.ravel() for cells in known.values()])
        limits = {"A_ub": np.concatenate([rows, -rows]), "b_ub": np.concatenate([most, -least])}
        for axes in wanted:
            for at, objective in enumerate(sums(axes)):
                low = np.ceil(linprog(objective, **limits).fun - 1e-6)
                high = np.floor(1e-6 - linprog(-objective, **limits).fun)
                lower, upper = found[axes].lower.flat[at], found[axes].upper.flat[at]
                assert outer[axes].lower.flat[at] <= lower <= low
                assert high <= upper <= outer[axes].upper.flat[at]
                assert (lower >= 1) == (low >= 1)
                assert (lower >= 1 and upper < 10) == (low >= 1 and high < 10)
                assert (upper == 0) == (high == 0)
                before = undecided(outer[axes], 10).flat[at]
                small += bool(before and low >= 1 and high < 10)
                empty += bool(before and high == 0)
    assert small > 0
    assert empty > 0


def test_relaxations_of_nothing_that_fits_contradict():
    outer = {(0, 1): Intervals(np.zeros((2, 2), np.int64), np.full((2, 2), 10))}
    known = {(0,): point([3, 4]), (1,): point([5, 5])}
    with pytest.raises(ContradictoryMarginsError, match="contradict"):
        relaxed_bounds(np.ones((2, 2), dtype=bool), known, outer, 10, Effort(10**9))
