"""The audit's own arithmetic of margins against enumeration, published examples and other libraries."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import multinomial
from sklearn.linear_model import LogisticRegression

from synth_platform.audit import margins_bounds
from synth_platform.audit.findings import MalformedError
from synth_platform.audit.margins_bounds import intervals, joint_bounds, narrowed, of_three
from synth_platform.audit.margins_disclosure import figures, groups
from synth_platform.audit.margins_protection import largest_remainders, protected, released_count
from synth_platform.audit.margins_synthetic import fits, most_likely, nearer_than_drawn, threshold
from synth_platform.audit.margins_tables import Space
from synth_platform.audit.margins_utility import band, voas_williamson

Document = dict[str, Any]
THREE = Space(dict.fromkeys("abc", ("0", "1")), (), ())


def plan(**changes: Any) -> Document:
    """A plan of limit 10 as the evidence has it."""
    usual = {"variant": "coarsened", "limit": 10, "zeros": "lifted", "rounding": "nearest"}
    return usual | {"adjustment": "apportion", "total": None} | changes


def test_published_counts_are_those_of_the_rule() -> None:
    """Raab (2026): counts below ten become ten, others the nearest ten, half up; controlled ones nine, others exact."""
    true = [0, 1, 9, 10, 14, 15, 24, 25, 104]
    assert [released_count(Fraction(n), plan()) for n in true] == [10, 10, 10, 10, 10, 20, 20, 30, 100]
    assert [released_count(Fraction(n), plan(zeros="kept")) for n in true][:2] == [0, 10]
    assert [released_count(Fraction(n), plan(variant="controlled")) for n in true] == [9, 9, 9, 10, 14, 15, 24, 25, 104]
    assert [released_count(Fraction(n), plan(rounding="up")) for n in true] == [10, 10, 10, 10, 20, 20, 30, 30, 110]
    assert [released_count(Fraction(n), plan(rounding="down")) for n in true] == [10, 10, 10, 10, 10, 10, 20, 20, 100]


@pytest.mark.parametrize("zeros", ["kept", "lifted"])
@pytest.mark.parametrize(
    ("variant", "rounding"), [("controlled", "nearest"), *(("coarsened", r) for r in ("nearest", "up", "down"))]
)
@pytest.mark.parametrize("limit", [2, 7, 10])
def test_an_interval_is_every_count_that_is_released_so(limit: int, variant: str, rounding: str, zeros: str) -> None:
    rule = plan(limit=limit, variant=variant, rounding=rounding, zeros=zeros)
    by_count: dict[Fraction, list[int]] = {}
    for n in range(12 * limit):
        by_count.setdefault(released_count(Fraction(n), rule), []).append(n)
    released = np.array([float(count) for count in by_count if count <= 9 * limit])
    low, high = intervals(released, np.ones(len(released), dtype=bool), rule)
    assert low.tolist() == [min(by_count[Fraction(count)]) for count in released]
    assert high.tolist() == [max(by_count[Fraction(count)]) for count in released]


def test_a_count_that_the_rule_makes_of_none_is_refused() -> None:
    with pytest.raises(MalformedError):
        intervals(np.array([13.0]), np.ones(1, dtype=bool), plan())


def test_largest_remainders_are_nearest_to_the_quotas() -> None:
    """Of all whole numbers above nought with the sum, none are nearer: Hamilton's method (Balinski and Young 1982)."""
    units, seats = [1, 1, 2, 5, 9], 12
    given = largest_remainders(units, seats)
    # 1 and 1 stay at one seat, as 12/18 of each is below it; the ten seats left are 10/16 of a unit.
    quota = [1, 1, 2 * 10 / 16, 5 * 10 / 16, 9 * 10 / 16]
    every = [a for a in product(range(1, seats), repeat=5) if sum(a) == seats]
    best = min(every, key=lambda a: sum((x - q) ** 2 for x, q in zip(a, quota, strict=True)))
    assert given == list(best)


def test_ties_of_an_apportionment_do_not_depend_on_the_order_of_the_variables() -> None:
    true = np.array([[20.0, 20.0, 20.0], [20.0, 40.0, 12.0]])
    rule, everywhere = plan(variant="adjusted"), np.ones((2, 3), dtype=bool)
    one = protected(true, everywhere, rule, Fraction(100), ("a", "b"))
    other = protected(true.T, everywhere.T, rule, Fraction(100), ("b", "a"))
    assert one.sum() == 100
    assert (one == other.T).all()


def every_table(most: int) -> np.ndarray:
    """All joint tables [tables, 2, 2, 2] of counts up to `most`."""
    return np.array(list(product(range(most + 1), repeat=8))).reshape(-1, 2, 2, 2)


@pytest.mark.parametrize("tables", [("ab", "bc"), ("ab", "ac", "bc"), ("ab", "c")])
def test_bounds_are_those_of_all_tables_that_fit(tables: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Valid for every table of people; programs of all cells are exactly the ends that some table attains."""
    monkeypatch.setattr(margins_bounds, "MOST_PROGRAMS", 100)
    draw, every = np.random.default_rng(5), every_table(3)
    over = {
        names: tuple(at for at, name in enumerate("abc") if name not in names) for names in (*tables, "ab", "ac", "bc")
    }
    for _ in range(3):
        true = draw.integers(0, 2, (2, 2, 2))  # no cell of a fitting table is above 3, as none of ab is
        known = {}
        for names in tables:
            counts = true.sum(axis=over[names])
            slack = draw.integers(0, 2, counts.shape)
            known[tuple(names)] = (np.maximum(counts - slack, 0), counts + draw.integers(0, 2, counts.shape))
        fit = np.ones(len(every), dtype=bool)
        for names, (low, high) in known.items():
            counts = every.sum(axis=tuple(1 + at for at in over["".join(names)]))
            fit &= ((counts >= low) & (counts <= high)).reshape(len(every), -1).all(axis=1)
        outer = joint_bounds(THREE, known)
        tight = narrowed(THREE, known, outer)
        low, high = of_three(THREE, ("a", "b", "c"), outer)
        assert (low <= every[fit].min(axis=0)).all()
        assert (high >= every[fit].max(axis=0)).all()
        for name in "abc":
            counts = every[fit].sum(axis=tuple(1 + at for at in range(3) if "abc"[at] != name))
            assert (outer[name,][0] <= counts.min(axis=0)).all()
            assert (outer[name,][1] >= counts.max(axis=0)).all()
        for names in ("ab", "ac", "bc"):
            counts = every[fit].sum(axis=tuple(1 + at for at in over[names]))
            least, most = counts.min(axis=0), counts.max(axis=0)
            for low, high in (outer[tuple(names)], tight[tuple(names)]):
                assert (low <= least).all()
                assert (high >= most).all()
            assert tight[tuple(names)][0].tolist() == least.tolist()
            assert tight[tuple(names)][1].tolist() == most.tolist()


def test_a_small_group_spread_over_many_cells_is_found() -> None:
    """Coarsened to 10 each: 1 … 14 people of the first table are in six categories of the second, 60 by its counts."""
    space = Space({"a": ("0", "1"), "b": ("0", "1"), "c": tuple("012345")}, (), ())
    rule, yes = plan(zeros="kept"), {n: np.ones(space.shape(tuple(n)), dtype=bool) for n in ("ab", "ac")}
    known = {
        ("a", "b"): intervals(np.array([[0.0, 10.0], [500.0, 500.0]]), yes["ab"], rule),
        ("a", "c"): intervals(np.array([[10.0] * 6, [170.0] * 6]), yes["ac"], rule),
    }
    found = figures(joint_bounds(space, known)["a", "c"], known["a", "c"], yes["ac"], 10)
    assert found["recoverable"] == 6
    assert figures(known["a", "c"], known["a", "c"], yes["ac"], 10)["recoverable"] == 0


def test_a_joint_cell_is_bounded_by_the_pairs_it_is_in() -> None:
    """Exact pairs of 2 × 2 × 2: at most the least of its three pairs, and what their other cell cannot hold."""
    space = Space({"a": ("0", "1"), "b": ("0", "1"), "c": ("0", "1")}, (), ())
    joint = np.array([[[3, 0], [5, 1]], [[0, 7], [2, 8]]])
    pairs = {tuple("abc"[:at] + "abc"[at + 1 :]): joint.sum(axis=at) for at in range(3)}
    low, high = of_three(space, ("a", "b", "c"), {names: (counts, counts) for names, counts in pairs.items()})
    for a, b, c in np.ndindex(2, 2, 2):
        own = (pairs["a", "b"][a, b], pairs["a", "c"][a, c], pairs["b", "c"][b, c])
        other = (high[a, b, 1 - c], high[a, 1 - b, c], high[1 - a, b, c])
        assert high[a, b, c] == min(own)
        assert low[a, b, c] == max(0, *(n - rest for n, rest in zip(own, other, strict=True)))
    assert (low <= joint).all()
    assert low[0, 0, 0] == 2


def test_a_group_with_everybody_in_one_category_is_counted() -> None:
    low, high = np.array([[5, 0], [1, 1]]), np.array([[9, 0], [9, 9]])
    everywhere = np.ones((2, 2), dtype=bool)
    assert groups(low, high, everywhere) == 2  # the first row, and the second column
    assert groups(low, high, np.array([[True, False], [True, True]])) == 0
    assert groups(np.zeros_like(low), high, everywhere) == 0


@pytest.mark.parametrize("alarm", [0.2, 0.01, 1e-4])
def test_the_alarm_is_false_as_rarely_as_is_said(alarm: float) -> None:
    """Exactly, over all outcomes of small draws, rare cells included."""
    for rows, p in ((12, [0.7, 0.2999, 0.0001]), (25, [0.2, 0.5, 0.3]), (40, [0.999, 0.001])):
        outcomes = [x for x in product(range(rows + 1), repeat=len(p)) if sum(x) == rows]
        refused = [x for x in outcomes if not fits(np.array(x, float), np.array(p), alarm)]
        assert multinomial.pmf(refused, rows, p).sum() <= alarm if refused else True
        assert refused


def test_the_threshold_solves_its_bound() -> None:
    t = threshold(21, 1e-12)
    assert -t + 20 * (1 + math.log(t / 20)) == pytest.approx(math.log(1e-12), rel=1e-9)
    assert threshold(1, 1e-12) < 1e-3


def test_people_where_nobody_can_be_are_no_draw() -> None:
    assert not fits(np.array([999.0, 1.0]), np.array([1.0, 0.0]), 1e-9)
    assert fits(np.array([1000.0, 0.0]), np.array([1.0, 0.0]), 1e-9)


def test_draws_are_not_near_people_and_people_are() -> None:
    """False alarms of 10^-4 a table: none of 400 draws, but with a probability of 0.04; the people and a near copy."""
    draw = np.random.default_rng(3)
    p = draw.dirichlet(np.full(40, 20.0))
    people = draw.multinomial(4_000, p).astype(float)
    near = [nearer_than_drawn(draw.multinomial(4_000, p).astype(float), people, p, 1e-4) for _ in range(400)]
    assert set(near) == {False}
    assert nearer_than_drawn(people, people, p, 1e-12) is True
    moved = people.copy()
    moved[:2] += (5, -5)
    assert nearer_than_drawn(moved, people, p, 1e-12) is True
    assert nearer_than_drawn(people[:3], people[:3], p[:3] / p[:3].sum(), 1e-12) is None


def test_no_model_makes_a_table_likelier_than_its_own_shares() -> None:
    draw, counts = np.random.default_rng(4), np.array([3.0, 0.0, 40.0, 7.0])
    assert most_likely(counts) == pytest.approx(multinomial.logpmf(counts, 50, counts / 50))
    assert all(multinomial.logpmf(counts, 50, p) < most_likely(counts) for p in draw.dirichlet(counts + 0.1, 200))


def test_the_statistic_is_the_propensity_score_of_a_saturated_model() -> None:
    """N pMSE = (1 − c)² c VW, with the propensity fitted by an unpenalised logistic regression on the cells."""
    draw = np.random.default_rng(2)
    real, synthetic = draw.multinomial(700, np.full(6, 1 / 6)), draw.multinomial(300, np.full(6, 1 / 6))
    statistic, degrees = voas_williamson(real.astype(float), synthetic.astype(float))
    cells = np.repeat(np.tile(np.arange(6), 2), np.concatenate([real, synthetic]))
    labels = np.repeat([0, 1], [700, 300])
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1_000).fit(np.eye(6)[cells], labels)
    c = 0.3
    pmse = ((model.predict_proba(np.eye(6)[cells])[:, 1] - c) ** 2).mean()
    assert statistic == pytest.approx(1_000 * pmse / ((1 - c) ** 2 * c), rel=1e-4)
    assert degrees == 5
    assert voas_williamson(np.array([5.0, 0.0]), np.array([3.0, 0.0])) == (0.0, 0)


def test_bands_change_at_three_and_ten() -> None:
    assert [band(ratio) for ratio in (0.0, 2.999, 3.0, 9.999, 10.0, 1e9)] == [
        "good", "good", "acceptable", "acceptable", "poor", "poor",
    ]  # fmt: skip


def test_structural_zeros_are_cells_with_all_of_their_categories() -> None:
    space = Space({"a": ("x", "y"), "b": ("p", "q", "r")}, ({"a": ["x"], "b": ["q", "r"]},), ())
    assert space.possible(("b", "a")).tolist() == [[True, True], [False, True], [False, True]]
    assert space.possible(("a",)).all()
