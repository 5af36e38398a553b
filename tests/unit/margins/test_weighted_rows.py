"""Weighted rows against brute-force iterative proportional fitting of the full table, and what they say of misses."""

from itertools import combinations

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.proposal import proposal
from synth_platform.margins.fitting.weighted_rows import fit_weighted_rows
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero

SHAPE = (2, 3, 4, 2, 3, 3, 2)
NAMES = tuple("abcdefg")
DOMAIN = Domain(tuple(Variable(n, tuple(map(str, range(s)))) for n, s in zip(NAMES, SHAPE, strict=True)))


def margins_of(full, names, zeros=()):
    tables = (over(full, wanted) for wanted in names)
    return MarginSet(DOMAIN, tuple(Margin(tuple(n), t, ()) for n, t in zip(names, tables, strict=True)), zeros)


def over(full, wanted):
    axes = [NAMES.index(name) for name in wanted]
    kept = full.sum(axis=tuple(axis for axis in range(full.ndim) if axis not in axes))
    return np.transpose(kept, np.argsort(np.argsort(axes)))


def dense_fit(margins, possible=True, cycles=400):
    full = np.ones(DOMAIN.shape) * possible
    for _ in range(cycles):
        for margin in margins:
            axes = DOMAIN.axes(margin.names)
            others = tuple(axis for axis in range(full.ndim) if axis not in axes)
            now = full.sum(axis=others)
            target = np.transpose(margin.counts / margin.total, np.argsort(axes))
            full = full * np.expand_dims(np.divide(target, now, out=np.zeros_like(now), where=now > 0), others)
    return full


def dependent(seed):
    """A table with strong relations of three variables, so that trees are far from it."""
    generator = np.random.default_rng(seed)
    full = np.ones(SHAPE)
    for axes in combinations(range(len(SHAPE)), 3):
        effect = generator.normal(scale=0.35, size=[SHAPE[axis] for axis in axes])
        full *= np.exp(np.expand_dims(effect, tuple(axis for axis in range(len(SHAPE)) if axis not in axes)))
    return full * 1000 / full.sum()


PAIRS = tuple(combinations(NAMES, 2))
TRIPLES = tuple(combinations(NAMES, 3))


def distances_of(tables, full):
    return [np.abs(tables(names) - over(full, names)).sum() / 2 for names in TRIPLES]


def mean_distance(tables, full):
    return np.mean(distances_of(tables, full))


def test_triples_approach_the_dense_fit_as_candidates_grow():
    """Mean total variation over 35 triples: like 1 / sqrt(candidates), below .01 at 1e5; the tree's own is far off."""
    margins = margins_of(dependent(1), PAIRS)
    full = dense_fit(margins)
    fits = [fit_weighted_rows(margins, np.random.default_rng(2), size, 1e-6) for size in (1_000, 10_000, 100_000)]
    distances = [mean_distance(fit.probabilities, full) for fit in fits]
    assert distances[0] > 1.8 * distances[1] > 1.8**2 * distances[2]
    assert distances[2] < 0.01
    assert max(distances_of(fits[2].probabilities, full)) < 0.01
    assert mean_distance(proposal(margins).probabilities, full) > 5 * distances[2]
    assert [fit.report.status for fit in fits[1:]] == ["matched", "matched"]
    for margin in margins:
        assert over(full, margin.names) == pytest.approx(fits[2].probabilities(margin.names), abs=3e-6)
    assert 20_000 < fits[2].report.effective_sample_size < 100_000


def test_zeros_of_margins_and_declared_ones_get_no_weight():
    zero = StructuralZero.of({"a": ["0"], "c": ["1", "2"], "g": ["1"]})
    full = dependent(3)
    full[0, :, 1:3, :, :, :, 1] = 0
    full[:, 2, :, 1] = 0
    margins = margins_of(full, PAIRS, (zero,))
    possible = np.ones(SHAPE, dtype=bool)
    possible[0, :, 1:3, :, :, :, 1] = False
    fit = fit_weighted_rows(margins, np.random.default_rng(4), 100_000, 1e-5)
    assert fit.report.status == "matched"
    assert fit.probabilities("acg")[0, 1:3, 1].sum() == 0
    assert fit.probabilities("bd")[2, 1] == 0
    assert mean_distance(fit.probabilities, dense_fit(margins, possible)) < 0.015


def test_larger_and_single_margins_are_raked_too():
    margins = margins_of(dependent(5), ("abc", "cde", "ea", "f", "g"))
    fit = fit_weighted_rows(margins, np.random.default_rng(6), 100_000, 1e-5)
    assert fit.report.status == "matched"
    assert mean_distance(fit.probabilities, dense_fit(margins)) < 0.01


def test_cells_without_candidates_are_reported_and_bound_their_residual():
    full = dependent(7)
    fit = fit_weighted_rows(margins_of(full, PAIRS), np.random.default_rng(8), 30, 1e-6)
    assert fit.report.status == "limit_cycle"
    assert fit.report.unreached
    for title, share in fit.report.unreached.items():
        names = title.split(" × ")
        missed = over(full / full.sum(), names)[fit.probabilities(names) == 0].sum()
        assert share == pytest.approx(missed)
        assert fit.report.residuals[title] >= share - 1e-12


def test_rows_are_candidates_and_everything_is_seeded():
    margins = margins_of(dependent(9), PAIRS)
    one, again = (fit_weighted_rows(margins, np.random.default_rng(10), 200, 1e-3) for _ in range(2))
    assert (one.candidates == again.candidates).all()
    assert (one.weights == again.weights).all()
    codes = one.draw(5_000, np.random.default_rng(11))
    assert (codes == again.draw(5_000, np.random.default_rng(11))).all()
    assert codes.dtype == np.int64
    assert {tuple(row) for row in codes} <= {tuple(row) for row in one.candidates}


def test_what_is_wrong_is_named():
    margins = margins_of(dependent(9), PAIRS)
    with pytest.raises(ValueError, match="candidates: at least one"):
        fit_weighted_rows(margins, np.random.default_rng(1), 0)
    fit = fit_weighted_rows(margins, np.random.default_rng(1), 100, 0.5)
    with pytest.raises(ValueError, match="each of them once"):
        fit.probabilities("aa")
    zero = StructuralZero.of({name: DOMAIN.project((name,)).variables[0].categories for name in NAMES})
    with pytest.raises(ValueError, match="every candidate row is in a cell"):
        fit_weighted_rows(margins_of(dependent(9), PAIRS, (zero,)), np.random.default_rng(1), 100)
