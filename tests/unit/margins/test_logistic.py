"""Logistic regression: closed forms of saturated models, scikit-learn's optimum, ranks, categories of one outcome."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from synth_platform.margins.measures.logistic import fit_logistic, independent_columns, indicators


def test_the_odds_ratio_of_a_two_by_two_table_and_woolfs_standard_error():
    codes = np.repeat([[0], [0], [1], [1]], [30, 10, 12, 24], axis=0)
    outcome = np.repeat([False, True, False, True], [30, 10, 12, 24])
    fit = fit_logistic(indicators(codes, (2,)), outcome)
    assert fit.coefficients == pytest.approx([np.log(10 / 30), np.log(24 * 30 / (12 * 10))])
    assert fit.standard_errors == pytest.approx([np.sqrt(1 / 30 + 1 / 10), np.sqrt(1 / 30 + 1 / 10 + 1 / 12 + 1 / 24)])
    assert np.unique(fit.probabilities) == pytest.approx([10 / 40, 24 / 36])


def test_several_variables_reach_another_solvers_optimum():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, (3, 4, 2), (800, 3))
    outcome = rng.random(800) < 1 / (1 + np.exp(1 - codes @ [0.5, -0.4, 1.0]))
    design = indicators(codes, (3, 4, 2))
    fit = fit_logistic(design, outcome)
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(design[:, 1:], outcome)
    assert fit.coefficients == pytest.approx(np.r_[peer.intercept_, peer.coef_[0]], abs=1e-5)
    p = fit.probabilities
    dense = design.toarray()
    assert fit.covariance == pytest.approx(np.linalg.inv(dense.T @ (dense * (p * (1 - p))[:, None])))


def test_indicators_are_laid_out_by_category():
    design = indicators(np.array([[0, 1], [2, 0]]), (3, 2)).toarray()
    assert design.tolist() == [[1, 0, 0, 1], [1, 0, 1, 0]]


def test_independent_columns_are_as_many_as_the_rank():
    codes = np.random.default_rng(6).integers(0, 3, (60, 2))
    repeated = np.column_stack([codes, codes[:, 0], np.zeros(60, dtype=np.int64)])  # a variable twice, empty categories
    design = indicators(repeated, (3, 3, 3, 4))
    kept = independent_columns(design)
    assert len(kept) == np.linalg.matrix_rank(design.toarray()) == 5
    assert kept.tolist() == [0, 1, 2, 3, 4]  # the earlier of equal columns, and the intercept


def test_independent_columns_of_many_are_those_of_one_sweep_after_the_other():
    """Brute force: rest -= outer product for each column that is kept; three blocks, some columns determined."""
    rng = np.random.default_rng(7)
    codes = rng.integers(0, (90, 60, 5), (400, 3))
    design = indicators(np.column_stack([codes, codes[:, 0] // 9, codes[:, 1]]), (90, 60, 5, 10, 60))
    rest = (design.T @ design).toarray()
    squares, kept = np.diag(rest).copy(), []
    for column, square in enumerate(squares):
        if rest[column, column] > 1e-9 * square:
            kept.append(column)
            rest -= np.outer(rest[:, column], rest[column] / rest[column, column])
    assert independent_columns(design).tolist() == kept
    assert 130 < len(kept) < 160


def test_a_category_of_one_outcome_gets_its_probability():
    codes = np.repeat([[0], [0], [1]], [30, 10, 12], axis=0)
    fit = fit_logistic(indicators(codes, (2,)), np.repeat([False, True, True], [30, 10, 12]))
    assert fit.probabilities[:40] == pytest.approx(0.25, abs=1e-6)
    assert fit.probabilities[40:] == pytest.approx(1, abs=1e-6)


def test_rows_that_are_all_told_apart_settle():
    codes = np.random.default_rng(8).integers(0, 4, (3000, 3))
    codes[:, 0] = codes[:, 0] // 2 + 2 * (np.arange(3000) % 2)
    fit = fit_logistic(indicators(codes, (4, 4, 4)), np.arange(3000) % 2 == 1)
    assert fit.probabilities == pytest.approx(np.arange(3000) % 2, abs=1e-6)


def test_steps_that_do_not_settle_are_an_error(monkeypatch):
    monkeypatch.setattr("synth_platform.margins.measures.logistic.MOST_STEPS", 1)
    with pytest.raises(ValueError, match="did not settle"):
        fit_logistic(sparse.csr_array([[1.0], [1.0], [1.0]]), np.array([True, False, True]))
