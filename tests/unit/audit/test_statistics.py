"""The audit's own arithmetic against independent libraries and published figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines.utils import concordance_index
from scipy import stats
from sklearn.feature_selection import f_classif
from sklearn.metrics import f1_score, roc_auc_score

from synth_platform.audit import statistics
from synth_platform.audit.inference import difference_interval, score_interval

few = settings(deadline=None, max_examples=60)
# Few distinct values, so that ties are the rule.
score = st.integers(-3, 3).map(float)
sides = st.tuples(st.lists(score, min_size=2, max_size=15), st.lists(score, min_size=2, max_size=15))


@given(sides)
@few
def test_auroc_is_scikit_learns(both: tuple[list[float], list[float]]) -> None:
    positive, negative = both
    truth = [1] * len(positive) + [0] * len(negative)
    assert float(statistics.auroc(positive, negative)) == pytest.approx(roc_auc_score(truth, positive + negative))


@given(sides)
@few
def test_delong_error_is_that_of_the_kernel_matrix(both: tuple[list[float], list[float]]) -> None:
    """The definition: variances of the row and column means of psi(x, y) = 1[x > y] + 1[x = y]/2."""
    x, y = (np.array(side) for side in both)
    kernel = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    variance = kernel.mean(axis=1).var(ddof=1) / len(x) + kernel.mean(axis=0).var(ddof=1) / len(y)
    assert statistics.delong_error(*both) == pytest.approx(math.sqrt(variance), abs=1e-12)


@given(st.lists(st.tuples(st.integers(1, 6), st.booleans(), score), min_size=2, max_size=25))
@few
def test_concordance_is_lifelines(rows: list[tuple[int, bool, float]]) -> None:
    """lifelines also compares an event with a row censored at its time; censoring half a step earlier undoes that."""
    time, event, risk = (np.array(column) for column in zip(*rows, strict=True))
    won, pairs = statistics.concordance(risk, time.astype(float), event.astype(int))
    if pairs == 0:
        with pytest.raises(ZeroDivisionError):
            concordance_index(2 * time - (~event), -risk, event)
    else:
        assert won / pairs == pytest.approx(concordance_index(2 * time - (~event), -risk, event))


@given(st.lists(st.tuples(score, score, score, st.integers(0, 2)), min_size=1, max_size=30))
@few
def test_macro_f1_is_scikit_learns(rows: list[tuple[float, float, float, int]]) -> None:
    scores, label = np.array([row[:3] for row in rows]), np.array([row[3] for row in rows])
    found = statistics.macro_f1(scores, label)
    if len(set(label.tolist())) < 3:
        assert found is None
    else:
        expected = f1_score(label, scores.argmax(axis=1), average="macro", zero_division=0.0)
        assert float(found) == pytest.approx(expected)


@given(st.lists(st.tuples(score, score), min_size=3, max_size=30))
@few
def test_rank_correlation_is_scipys(pairs: list[tuple[float, float]]) -> None:
    a, b = (list(side) for side in zip(*pairs, strict=True))
    found = statistics.rank_correlation(statistics.twice_ranks(a), statistics.twice_ranks(b))
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


def test_anova_and_variance_ratio_are_scikit_learns() -> None:
    rng = np.random.default_rng(1)
    x, label = rng.normal(100, 1, (60, 5)), rng.integers(0, 3, 60)
    expected, _ = f_classif(x, label)
    np.testing.assert_allclose(statistics.anova(x, label), expected, atol=1e-6)
    np.testing.assert_allclose(statistics.variance_ratio(x, label), expected * 2 / (expected * 2 + 57), atol=1e-12)


def test_a_constant_feature_has_no_importance() -> None:
    x, label = np.full((6, 1), 0.1), np.array([0, 0, 1, 1, 2, 2])
    assert statistics.anova(x, label).tolist() == [0.0]
    assert statistics.anova(x, np.zeros(6, int)) is None


@given(st.integers(1, 200), st.floats(0.6, 0.9999), st.data())
@few
def test_binomial_bounds_are_scipys_exact_ones(trials: int, confidence: float, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    test = stats.binomtest(successes, trials)
    interval = test.proportion_ci(confidence_level=2 * confidence - 1, method="exact")
    assert statistics.binomial_lower(successes, trials, confidence) == pytest.approx(interval.low, abs=1e-10)
    assert statistics.binomial_upper(successes, trials, confidence) == pytest.approx(interval.high, abs=1e-10)


@given(st.integers(1, 200), st.data())
@few
def test_score_interval_is_scipys_wilson(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    interval = stats.binomtest(successes, trials).proportion_ci(confidence_level=0.95, method="wilson")
    z = statistics.normal_quantile(0.975)
    assert score_interval(successes / trials, trials, z) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_difference_interval_is_newcombes_example() -> None:
    """Newcombe (1998), table II (a): 56/70 - 48/80, method 10: .0524 to .3339."""
    found = difference_interval((56 / 70, 70), (48 / 80, 80), statistics.normal_quantile(0.975))
    assert found == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_quantiles_are_published_and_scipys() -> None:
    assert statistics.student_95(20) == 1.729133
    assert statistics.normal_quantile(0.975) == pytest.approx(stats.norm.ppf(0.975), abs=1e-9)
    values = np.random.default_rng(2).normal(size=37)
    assert statistics.quantile(values.tolist(), 0.05) == pytest.approx(np.quantile(values, 0.05), abs=1e-12)


def test_jackknife_error_is_the_textbooks_for_a_mean() -> None:
    """Deleting one of n values from their mean: the jackknife error is sd / sqrt(n)."""
    values = np.random.default_rng(3).normal(size=20)
    deleted = [float(np.delete(values, i).mean()) for i in range(20)]
    assert statistics.jackknife_error(deleted) == pytest.approx(values.std(ddof=1) / math.sqrt(20))
