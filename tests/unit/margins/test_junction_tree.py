"""Junction trees against dense products, hand formulas and brute-force iterative proportional fitting."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.cliques import decomposable
from synth_platform.margins.fitting.dense import fit_dense
from synth_platform.margins.fitting.junction_tree import fit_junction_tree
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero

SIZES = {"a": 2, "b": 3, "c": 2, "d": 4, "e": 3, "f": 2}


def domain_of(sizes):
    return Domain(tuple(Variable(name, tuple(map(str, range(size)))) for name, size in sizes.items()))


def table(seed, empty=0.0):
    generator = np.random.default_rng(seed)
    counts = generator.gamma(0.5, size=tuple(SIZES.values()))
    return counts * (generator.random(counts.shape) >= empty)


def margins_of(full, *names, zeros=()):
    order = list(SIZES)
    margins = []
    for wanted in names:
        axes = [order.index(name) for name in wanted]
        kept = full.sum(axis=tuple(axis for axis in range(full.ndim) if axis not in axes))
        margins.append(Margin(tuple(wanted), np.transpose(kept, np.argsort(np.argsort(axes))), ("test",)))
    return MarginSet(domain_of(SIZES), tuple(margins), zeros)


def dense_fit(margins, cycles=1):
    """Iterative proportional fitting of the full table, margin after margin as listed."""
    full = np.full(margins.domain.shape, 1 / margins.domain.cells)
    for _ in range(cycles):
        for margin in margins:
            axes = margins.domain.axes(margin.names)
            ordered = np.transpose(margin.counts / margin.total, np.argsort(axes))
            others = tuple(axis for axis in range(full.ndim) if axis not in axes)
            now = full.sum(axis=others)
            ratio = np.divide(ordered, now, out=np.zeros_like(now), where=now > 0)
            full = full * np.expand_dims(ratio, others)
            full /= full.sum()
    return full


@pytest.mark.parametrize(
    ("names", "acyclic"),
    [
        (("ab", "bc", "ac"), False),
        (("abc", "ab", "ac", "bc"), True),
        (("ab", "bc", "cd", "da"), False),
        (("abc", "acd"), True),
        (("ab", "cd", "ef"), True),
        (("abc", "cde", "efa"), False),
        (("abc", "cde", "efa", "ace"), True),
        (("a",), True),
        (("ab", "ba", "b"), True),
        (("abcd", "abe", "bcf", "ef"), False),
    ],
)
def test_decomposable_as_reduced_by_hand(names, acyclic):
    assert (decomposable(names) is not None) == acyclic


def test_decomposable_agrees_with_graham_reduction_on_random_margins():
    generator = np.random.default_rng(1)
    answers = []
    for _ in range(400):
        names = ["".join(generator.choice(list("abcdefg"), generator.integers(1, 5), False)) for _ in range(5)]
        answers.append(decomposable(names) is not None)
        assert answers[-1] == graham_reduces(names)
    assert 50 < sum(answers) < 350


def graham_reduces(margins):
    """Drop variables of one margin only and margins inside another, until nothing changes: nothing remains."""
    edges = [set(names) for names in margins]
    changed = True
    while changed:
        changed = False
        for edge in edges:
            alone = {name for name in edge if sum(name in other for other in edges) == 1}
            if alone:
                edge.difference_update(alone)
                changed = True
        for at, edge in enumerate(edges):
            if not edge or any(edge <= other for i, other in enumerate(edges) if i != at):
                del edges[at]
                changed = True
                break
    return not edges


def test_running_intersection_of_a_tree():
    tree = decomposable(("abc", "bcd", "de", "cf"))
    seen = set()
    for clique, parent, separator in zip(tree.cliques, tree.parents, tree.separators, strict=True):
        assert set(clique) & seen == set(separator) <= set(tree.cliques[parent])
        seen |= set(clique)


@pytest.mark.parametrize(
    "names",
    [
        ("ab", "bc", "ac", "d", "e", "f"),
        ("ab", "bc", "cd", "da", "ef"),
        ("abc", "cde", "efa"),
        ("ab", "bc", "cd", "de", "ef", "fa"),
    ],
)
def test_margins_without_a_tree_of_their_own_are_fitted_on_a_triangulation(names):
    """Claim: the maximum entropy of cycles of margins, with their structural zeros, is that of the full table."""
    zero = StructuralZero.of({"a": ["0"], "d": ["1", "3"]})
    full = table(1)
    full[0, :, :, [1, 3]] = 0
    margins = margins_of(full, *names, zeros=(zero,))
    found, exact = fit_junction_tree(margins, tolerance=1e-10), fit_dense(margins, tolerance=1e-10)
    assert (found.report.status, exact.report.status) == ("matched", "matched")
    assert np.abs(found.probabilities("abcdef") - exact.probabilities("abcdef")).sum() < 1e-7
    assert found.probabilities("ad")[0, [1, 3]].tolist() == [0, 0]


def test_a_tree_that_has_no_room_is_refused():
    domain = domain_of(dict.fromkeys("abcd", 100))
    pairs = tuple(Margin(pair, np.ones((100, 100)), ()) for pair in combinations("abcd", 2))
    with pytest.raises(ValueError, match="a junction tree of these margins has 100,000,000 cells"):
        fit_junction_tree(MarginSet(domain, pairs))


def test_two_cliques_are_the_product_over_their_separator():
    full = table(2)
    fit = fit_junction_tree(margins_of(full, "abc", "cbd", "e", "f"))
    p = full / full.sum()
    left, right, both = p.sum((3, 4, 5)), p.sum((0, 4, 5)), p.sum((0, 3, 4, 5))
    expected = left[:, :, :, None] * right[None] / both[None, :, :, None]
    assert fit.probabilities("abcd") == pytest.approx(expected, abs=1e-14)
    assert fit.probabilities("fe") == pytest.approx(np.outer(p.sum((0, 1, 2, 3, 4)), p.sum((0, 1, 2, 3, 5))), abs=1e-14)
    assert (fit.report.status, fit.report.cycles) == ("matched", 1)


@pytest.mark.parametrize("names", [("ab", "bc", "cd", "ce", "f"), ("abc", "bcd", "de", "ac", "f"), ("bcf", "fa", "ed")])
def test_every_table_is_that_of_the_dense_fit(names):
    margins = margins_of(table(3, empty=0.7), *names)
    fit, full = fit_junction_tree(margins), dense_fit(margins, 30)
    assert fit.report.status == "matched"
    assert fit.report.largest_residual < 1e-12
    for size in range(1, 7):
        for wanted in combinations("fbdace", size):
            axes = margins.domain.axes(wanted)
            kept = full.sum(axis=tuple(axis for axis in range(6) if axis not in axes))
            assert fit.probabilities(wanted) == pytest.approx(
                np.transpose(kept, np.argsort(np.argsort(axes))), abs=1e-12
            )


@pytest.mark.parametrize("names", [("ab", "bc", "cd", "e", "f"), ("ab", "bc", "bd", "be", "f")])
def test_contradictory_margins_end_in_the_limit_cycle_of_the_dense_fit(names):
    margins = margins_of(table(4), *names)
    rounded = margins.with_margins(
        tuple(margin.became(np.maximum(np.round(margin.counts), 1), "rounded") for margin in margins)
    )
    fit = fit_junction_tree(rounded)
    walked = {margin.names: margin for margin in rounded}
    order = [walked[clique] for clique in fit.tree.cliques]
    full = dense_fit(rounded.with_margins(tuple(order)), fit.report.cycles)
    assert fit.report.status == "limit_cycle"
    for margin in rounded:
        kept = full.sum(axis=tuple(i for i, name in enumerate(SIZES) if name not in margin.names))
        residual = np.abs(kept - margin.counts / margin.total).sum() / 2
        assert fit.report.residuals[margin.title] == pytest.approx(residual, abs=1e-10)
    assert fit.report.largest_residual > 0.005
    assert fit.probabilities("abcdef") == pytest.approx(full, abs=1e-10)


def test_a_chain_of_forty_variables_is_a_product_of_transition_matrices():
    generator = np.random.default_rng(5)
    names = [f"x{i:02}" for i in range(40)]
    first, steps = np.array([0.2, 0.5, 0.3]), generator.dirichlet(np.ones(3), (39, 3))
    margins, now = [], first
    for step, pair in zip(steps, pairwise(names), strict=True):
        margins.append(Margin(pair, 1000 * now[:, None] * step, ("test",)))
        now = now @ step
    fit = fit_junction_tree(MarginSet(domain_of(dict.fromkeys(names, 3)), tuple(margins)))
    across = np.diag(first) @ np.linalg.multi_dot(steps)
    assert fit.probabilities(("x00", "x39")) == pytest.approx(across, abs=1e-13)
    assert fit.probabilities(("x39",)) == pytest.approx(now, abs=1e-13)
    middle = first @ np.linalg.multi_dot(steps[:20])
    assert fit.probabilities(("x21", "x20")) == pytest.approx((middle[:, None] * steps[20]).T, abs=1e-13)
    with pytest.raises(ValueError, match=r"x00 × x01 .* has .* cells, more than 10,000,000"):
        fit.probabilities(names)


def test_hundreds_of_variables_in_stars_and_single_margins():
    names = [f"x{i:03}" for i in range(400)]
    pairs = [(names[i // 2], names[i]) for i in range(1, 300)]
    symmetric = [Margin(pair, np.array([[0.4, 0.1], [0.1, 0.4]]), ()) for pair in pairs]
    singles = [Margin((name,), np.array([1.0, 2.0]), ()) for name in names[300:]]
    fit = fit_junction_tree(MarginSet(domain_of(dict.fromkeys(names, 2)), (*symmetric, *singles)))
    assert len(fit.tree.cliques) == 399
    assert fit.draw(50, np.random.default_rng(6)).shape == (50, 400)
    assert fit.probabilities((names[255], names[191]))[0, 0] == pytest.approx((1 + 0.6**14) / 4)
    assert fit.probabilities((names[399],)) == pytest.approx([1 / 3, 2 / 3])


def test_rows_are_seeded_and_never_in_a_cell_of_probability_nought():
    fit = fit_junction_tree(margins_of(table(7, empty=0.9), "abc", "cd", "de", "f"))
    codes = fit.draw(20_000, np.random.default_rng(1))
    assert (codes == fit.draw(20_000, np.random.default_rng(1))).all()
    assert (fit.probabilities("abcdef")[tuple(codes.T)] > 0).all()


def test_structural_zeros_that_leave_no_cell_are_refused():
    zeros = tuple(StructuralZero.of({"a": [own], "c": ["0", "1"]}) for own in "01")
    margins = tuple(Margin((name,), np.ones(size), ()) for name, size in SIZES.items())
    with pytest.raises(ValueError, match="the structural zeros leave no possible cell"):
        fit_junction_tree(MarginSet(domain_of(SIZES), margins, zeros))


def test_margins_without_a_common_cell_are_refused():
    sizes = {"a": 2, "b": 2, "c": 2}
    margins = (
        Margin(("a", "b"), np.array([[1, 0], [1, 0]]) * 1.0, ()),
        Margin(("b", "c"), np.array([[0, 0], [1, 1]]) * 1.0, ()),
    )
    with pytest.raises(ValueError, match=r"margin (a × b|b × c): other margins are zero"):
        fit_junction_tree(MarginSet(domain_of(sizes), margins))


@pytest.mark.parametrize("names", [(), ("a", "a")])
def test_names_are_asked_for_once(names):
    fit = fit_junction_tree(margins_of(table(9), "ab", "bc", "d", "e", "f"))
    with pytest.raises(ValueError, match="each of them once"):
        fit.probabilities(names)
