"""The dense fit: closed forms, minimum divergence by an independent optimiser, a slow IPF, and its three ends."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import minimize

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting import block_raking, dense, slabs
from synth_platform.margins.fitting.dense import fit_dense
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero

NAMES = "abcdefghij"


def domain_of(shape):
    return Domain(tuple(Variable(name, tuple(map(str, range(size)))) for name, size in zip(NAMES, shape, strict=False)))


def sums(table, names):
    kept = [NAMES.index(name) for name in names]
    out = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in kept))
    return out.transpose(np.argsort(np.argsort(kept)))


def margins_of(table, names, zeros=()):
    return MarginSet(domain_of(table.shape), tuple(Margin(tuple(n), sums(table, n), ("table",)) for n in names), zeros)


def people(shape, seed=1, mean=20.0):
    generator = np.random.default_rng(seed)
    return generator.poisson(generator.gamma(0.7, mean, shape)).astype(float)


def pairs(dimensions):
    return ["".join(pair) for pair in combinations(NAMES[:dimensions], 2)]


def naive(margin_set, start, cycles):
    """Textbook IPF: one margin at a time on the whole table."""
    table = start / start.sum()
    for _ in range(cycles):
        for margin in margin_set:
            current = sums(table, margin.names)
            ratio = np.divide(margin.counts / margin.total, current, out=np.zeros_like(current), where=current > 0)
            letters = "".join(margin.names)
            table = np.einsum(f"{NAMES[: table.ndim]},{letters}->{NAMES[: table.ndim]}", table, ratio)
    return table / table.sum()


def whole(fit):
    return fit.probabilities(fit.domain.names)


@pytest.fixture
def tiny_pieces(monkeypatch):
    """Blocks within blocks and slabs of several leading axes on tables that the tests can check."""
    monkeypatch.setattr(block_raking, "SMALL", 16)
    monkeypatch.setattr(slabs, "MOST_SLAB_CELLS", 40)


def test_margins_that_share_nothing_give_independence():
    table = people((3, 4, 2, 5))
    fit = fit_dense(margins_of(table, ["ab", "cd"]), 1e-12)
    expected = np.multiply.outer(sums(table, "ab"), sums(table, "cd")) / table.sum() ** 2
    assert fit.report.status == "matched"
    assert np.allclose(whole(fit), expected, rtol=1e-10, atol=0)


def test_decomposable_margins_give_the_product_over_their_separators():
    table = people((4, 3, 5, 2)) + 1
    fit = fit_dense(margins_of(table, ["ab", "cb", "cd"]), 1e-12)
    ab, bc, cd, b, c = (sums(table, names) / table.sum() for names in ("ab", "bc", "cd", "b", "c"))
    expected = np.einsum("ab,bc,cd,b,c->abcd", ab, bc, cd, 1 / b, 1 / c)
    assert np.allclose(whole(fit), expected, rtol=1e-9, atol=0)


def test_all_pairs_of_a_2x2x2_table_leave_no_three_way_interaction():
    table = people((2, 2, 2)) + 1
    p = whole(fit_dense(margins_of(table, pairs(3)), 1e-12))
    log_odds_ratios = np.log(p[0, 0] * p[1, 1] / (p[0, 1] * p[1, 0]))
    assert log_odds_ratios[0] == pytest.approx(log_odds_ratios[1], abs=1e-8)
    assert abs(log_odds_ratios[0]) > 0.01


def test_the_fit_is_the_table_of_largest_entropy_that_an_optimiser_finds():
    table = people((2, 3, 2), seed=3) + 1
    truth = (table / table.sum()).ravel()
    wanted = margins_of(table, pairs(3))
    cells = np.eye(12).reshape(12, 2, 3, 2)
    design = np.hstack([[sums(cell, margin.names).ravel() for cell in cells] for margin in wanted]).T
    # Rows that do not repeat each other: the optimiser needs independent constraints.
    _, sizes, right = np.linalg.svd(design)
    rows = right[: int((sizes > 1e-9).sum())]
    found = minimize(
        lambda p: (p * np.log(p)).sum(),
        truth,
        jac=lambda p: np.log(p) + 1,
        bounds=[(1e-9, 1)] * 12,
        constraints={"type": "eq", "fun": lambda p: rows @ (p - truth), "jac": lambda p: rows},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert found.success
    fitted = whole(fit_dense(wanted, 1e-12)).ravel()
    assert np.abs(fitted - found.x).max() < 1e-6
    assert np.abs(fitted - truth).max() > 1e-3


SETS = {
    "all pairs": pairs(6),
    "triples": ["abc", "dea", "bdf", "fce", "ace"],
    "mixed": ["fa", "cab", "de", "ec", "abcd", "d", "bf"],
    "singles": list("abcdef"),
    "whole and parts": ["abcdef", "ab", "cd"],
}


@pytest.mark.parametrize("names", SETS.values(), ids=SETS.keys())
@pytest.mark.parametrize("zeroed", [False, True])
@pytest.mark.usefixtures("tiny_pieces")
def test_blocks_fit_as_margin_by_margin_does(names, zeroed):
    zeros = (StructuralZero.of({"a": ["0"], "c": ["1", "2"]}), StructuralZero.of({"f": ["1"]})) if zeroed else ()
    table = people((3, 2, 4, 2, 5, 3), seed=4) + 1
    start = np.ones(table.shape)
    if zeroed:
        start[0, :, 1:3] = start[..., 1] = 0
    wanted = margins_of(table * start, names, zeros)
    fit = fit_dense(wanted, 1e-11)
    assert fit.report.status == "matched"
    assert np.abs(whole(fit) - naive(wanted, start, 400)).sum() / 2 < 1e-8


@pytest.mark.usefixtures("tiny_pieces")
def test_probabilities_of_some_variables_are_the_sums_of_all_in_the_order_asked():
    fit = fit_dense(margins_of(people((3, 2, 4, 2, 5)), pairs(5)))
    subsets = [names for size in range(1, 6) for names in permutations(NAMES[:5], size)]
    for names in subsets:
        assert np.allclose(fit.probabilities(names), sums(whole(fit), names), rtol=1e-12)


@pytest.mark.usefixtures("tiny_pieces")
def test_residuals_are_those_of_the_table_that_is_returned():
    wanted = margins_of(people((4, 3, 5, 2, 3), seed=6, mean=0.4), pairs(5))
    for cycles in (1, 3):
        report = (fit := fit_dense(wanted, 1e-12, cycles)).report
        assert report.status == "iteration_limit"
        assert report.cycles == cycles
        for margin in wanted:
            missed = np.abs(sums(whole(fit), margin.names) - margin.counts / margin.total).sum() / 2
            assert report.residuals[margin.title] == pytest.approx(missed, abs=1e-13)


def test_single_precision_reaches_its_tolerance(monkeypatch):
    wanted = margins_of(people((6, 5, 4, 5, 6), seed=7) + 1, pairs(5))
    exact = whole(fit_dense(wanted, 1e-12))
    monkeypatch.setattr(dense, "MOST_DOUBLE_CELLS", 10)
    fit = fit_dense(wanted, 2e-7)
    assert fit.table.dtype == np.float32
    assert fit.report.status == "matched"
    assert np.abs(whole(fit) - exact).sum() / 2 < 2e-6
    with pytest.raises(ValueError, match="tolerance: float32 cells reach"):
        fit_dense(wanted, 1e-8)


def test_totals_that_disagree_are_normalised_and_told():
    table = people((3, 4, 2))
    same = margins_of(table, pairs(3))
    first, *others = same.margins
    fit = fit_dense(same.with_margins((first.became(first.counts * 3, "tripled"), *others)), 1e-10)
    assert fit.report.totals["a × b"] == 3 * fit.report.totals["a × c"]
    assert fit.report.total == table.sum()
    assert fit.report.status == "matched"
    assert np.allclose(whole(fit), whole(fit_dense(same, 1e-10)), atol=1e-12)


def test_rounded_margins_contradict_each_other_and_end_as_a_limit_cycle():
    """The table stands still to 1e-9 from one full cycle to the next: a rule that looks at it would say converged."""
    wanted = margins_of(people((4, 5, 3, 4), seed=8), pairs(4))
    rounded = wanted.with_margins(tuple(m.became(np.round(m.counts, -1), "rounded") for m in wanted))
    fit = fit_dense(rounded, 1e-6)
    assert fit.report.status == "limit_cycle"
    assert 1e-4 < fit.report.largest_residual < 0.1
    again = naive(rounded, whole(fit), 300)
    assert np.abs(naive(rounded, again, 1) - again).max() < 1e-9
    assert max(np.abs(sums(again, m.names) - m.counts / m.total).sum() / 2 for m in rounded) > 1e-4


def test_people_where_a_structural_zero_of_more_variables_leaves_none_are_missed_and_told():
    """All with a = 0 and b = 0 have c = 0 or 1, and both are ruled out."""
    zero = StructuralZero.of({"a": ["0"], "b": ["0"], "c": ["0", "1"]})
    wanted = margins_of(np.ones((2, 2, 2)), pairs(3), (zero,))
    report = (fit := fit_dense(wanted)).report
    assert report.status == "limit_cycle"
    assert report.residuals["a × b"] == pytest.approx(1 / 4, abs=0.1)
    assert np.isfinite(whole(fit)).all()
    assert not whole(fit)[0, 0].any()


def test_a_cell_that_one_margin_leaves_empty_is_empty():
    table = people((3, 3, 3)) + 1
    table[1, 2] = 0
    fit = fit_dense(margins_of(table, pairs(3)), 1e-10)
    assert fit.report.status == "matched"
    assert not whole(fit)[1, 2].any()
    assert not (fit.draw(20_000, np.random.default_rng(0))[:, :2] == (1, 2)).all(axis=1).any()


def test_margins_without_a_common_cell_are_refused():
    only = Margin(("a", "b"), np.diag([1.0, 0.0]), ())
    other = Margin(("b", "c"), np.diag([0.0, 1.0]), ())
    with pytest.raises(ValueError, match="no cell in common"):
        fit_dense(MarginSet(domain_of((2, 2, 2)), (only, other)))


@pytest.mark.usefixtures("tiny_pieces")
def test_rows_are_drawn_in_the_order_of_the_domain():
    table = np.zeros((2, 5, 3, 4, 2))
    table[1, 4, 2, 0, 1] = 7
    codes = fit_dense(margins_of(table, pairs(5))).draw(50, np.random.default_rng(0))
    assert codes.dtype == np.int64
    assert (codes == (1, 4, 2, 0, 1)).all()
    assert fit_dense(margins_of(table, pairs(5))).draw(0, np.random.default_rng(0)).shape == (0, 5)


@pytest.mark.parametrize("extreme", [0.0, 1 - 2.0**-53])
def test_the_extreme_random_numbers_hit_cells_with_mass(extreme):
    class Extreme(np.random.Generator):
        def random(self, size):
            return np.full(size, extreme)

    for mass in (1.0, 3.0, 0.1, 7 / 3):
        table = np.zeros((3, 4))
        table[1, 1:3] = mass
        codes = fit_dense(margins_of(table, ["ab"])).draw(5, Extreme(np.random.PCG64(0)))
        assert (codes == (1, 2 if extreme else 1)).all()


def test_what_cannot_be_fitted_is_named():
    many = Domain(tuple(Variable(name, tuple(map(str, range(101)))) for name in "abcd"))
    singles = MarginSet(many, tuple(Margin((name,), np.ones(101), ()) for name in "abcd"))
    with pytest.raises(ValueError, match="104,060,401 cells, more than 100,000,000: leave variables out"):
        fit_dense(singles)
    fit = fit_dense(margins_of(np.ones((2, 2)), ["ab"]))
    with pytest.raises(ValueError, match="unknown variable z"):
        fit.probabilities(("z",))
    with pytest.raises(ValueError, match="each named once"):
        fit.probabilities(("a", "a"))
    with pytest.raises(ValueError, match="rows"):
        fit.draw(-1, np.random.default_rng(0))
