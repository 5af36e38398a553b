"""pMSE: a saturated logistic model is the table statistic, trees against a written-out mean, SPECKS."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

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


def many(count, seed, power=1.0):
    """Rows of five variables, most cells with a few of them."""
    domain = Domain(tuple(Variable(name, tuple(map(str, range(6)))) for name in "abcde"))
    return Rows(domain, (np.random.default_rng(seed).random((count, 5)) ** power * 6).astype(np.int64))


def test_it_is_the_classification_tree_of_the_rows():
    """Brute force: every row by itself, the same labels. Two trees part where two splits are equally good."""
    compared = Compared(many(3000, 1), many(2000, 2, 1.2))
    codes, rng = compared.codes.astype(np.float32), np.random.default_rng(3)

    def by_rows(labels):
        tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=int(rng.integers(2**31)))
        return tree.fit(codes, labels).predict_proba(codes)[:, 1]

    own = by_rows(compared.is_synthetic)
    permuted = [((by_rows(rng.permutation(compared.is_synthetic)) - 0.4) ** 2).mean() for _ in range(3)]
    found = cart_propensity(compared, np.random.default_rng(3), 3)
    assert (np.abs(found.scores - own) > 1e-9).mean() < 0.05
    assert found.pmse == pytest.approx(((own - 0.4) ** 2).mean(), rel=2e-3)
    assert found.expected == pytest.approx(0.6 * np.mean(permuted), rel=2e-3)


@pytest.mark.parametrize(("tables", "fewest", "most"), [((rows, 1000), 50, 50), ((many, 4000), 5, 40)])
def test_permutations_end_when_their_mean_is_known(monkeypatch, tables, fewest, most):
    """A tree of 8 leaves varies by half of its mean and needs all; one of hundreds needs fewer."""
    grown, (make, count) = [], tables
    grow = pmse._tree_means
    monkeypatch.setattr(pmse, "_tree_means", lambda *inputs: grown.append(1) or grow(*inputs))
    cart_propensity(Compared(make(count, 1), make(count, 2)), np.random.default_rng(0))
    assert fewest <= len(grown) - 1 <= most


def test_a_tree_needs_permutations():
    with pytest.raises(ValueError, match="at least one permutation"):
        cart_propensity(Compared(rows(30, 1), rows(30, 2)), np.random.default_rng(0), 0)
