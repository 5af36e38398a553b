"""pMSE: a saturated logistic model is the table statistic, trees against a written-out mean, SPECKS."""

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.measures import pmse
from synth_platform.margins.measures.compared import Compared
from synth_platform.margins.measures.pmse import cart_propensity, logistic_propensity
from synth_platform.margins.measures.tables import table_utility
from synth_platform.margins.rows import Rows

DOMAIN = Domain((Variable("x", tuple("abcd")), Variable("y", tuple("ab")), Variable("z", ("only", "never"))))


def rows(count, seed, power=1.0):
    rng = np.random.default_rng(seed)
    return Rows(DOMAIN, (rng.random((count, 3)) ** power * np.array([4, 2, 1])).astype(np.int64))


def test_main_effects_of_one_variable_are_its_table():
    one = DOMAIN.project(("x", "z"))
    real, synthetic = (Rows(one, rows(*spec).codes[:, ::2]) for spec in ((300, 1), (120, 2, 1.3)))
    (table,) = table_utility(real, synthetic)
    found = logistic_propensity(Compared(real, synthetic))
    c = 120 / 420
    assert found.s_pmse == pytest.approx(table.s_pmse)
    assert found.pmse * 420 == pytest.approx((1 - c) ** 2 * c * table.vw)


def test_a_category_that_only_synthetic_rows_have_is_told_apart():
    real, synthetic = rows(300, 1), rows(300, 2)
    real = Rows(DOMAIN, np.where(real.codes == [3, 9, 9], 0, real.codes))
    found = logistic_propensity(Compared(real, synthetic))
    only = np.concatenate([real.codes, synthetic.codes])[:, 0] == 3
    assert found.scores[only] == pytest.approx(1, abs=1e-6)
    assert found.s_pmse > 10


def test_where_nothing_varies_nothing_differs():
    alone = Rows(DOMAIN, np.zeros((50, 3), dtype=np.int64))
    compared = Compared(alone, alone)
    assert logistic_propensity(compared).s_pmse == 0
    assert cart_propensity(compared, np.random.default_rng(0), 2).s_pmse == 0


def test_a_tree_with_large_leaves_is_the_table_of_its_leaves():
    real, synthetic = rows(4000, 1), rows(1000, 2, 1.5)
    compared = Compared(real, synthetic)
    found = cart_propensity(compared, np.random.default_rng(0), 200)
    both = np.stack([table.count(("x", "y")).ravel() for table in (real, synthetic)])
    share = both[1] / both.sum(axis=0)
    assert found.pmse == pytest.approx((both.sum(axis=0) * (share - 0.2) ** 2).sum() / 5000)
    # a tree that always reaches all 8 cells has their table's expectation, 7 (1 − c)² c / N, within 200 permutations
    assert found.expected == pytest.approx(7 * 0.8**2 * 0.2 / 5000, rel=0.15)


def test_leaves_are_of_the_stated_size(monkeypatch):
    monkeypatch.setattr(pmse, "LEAF_ROWS", 350)
    found = cart_propensity(Compared(rows(300, 1), rows(300, 2)), np.random.default_rng(0), 1)
    assert found.scores == pytest.approx(0.5)


def test_a_tree_needs_permutations():
    with pytest.raises(ValueError, match="at least one permutation"):
        cart_propensity(Compared(rows(30, 1), rows(30, 2)), np.random.default_rng(0), 0)
