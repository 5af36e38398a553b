"""Endpoints equal their written definition and the libraries that share it; undefined ones say so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines.utils import concordance_index
from scipy.stats import spearmanr
from sklearn.metrics import f1_score, roc_auc_score

from synth_platform.evaluation.endpoints import auroc, c_index, macro_f1, spearman, top_k_jaccard

RNG = np.random.default_rng(11)


def _c_index_by_definition(risk: np.ndarray, time: np.ndarray, event: np.ndarray) -> float | None:
    won, pairs = 0.0, 0
    for i in range(len(time)):
        for j in range(len(time)):
            if event[i] == 1 and time[i] < time[j]:
                pairs += 1
                won += 1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0
    return won / pairs if pairs else None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5), st.integers(0, 1)), min_size=1, max_size=30))
@settings(deadline=None, max_examples=200)
def test_c_index_is_its_definition_with_ties_everywhere(rows: list[tuple[int, int, int]]) -> None:
    risk, time, event = (np.array(column) for column in zip(*rows, strict=True))
    found = c_index(risk.astype(float), time.astype(float), event)
    expected = _c_index_by_definition(risk, time, event)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_c_index_equals_lifelines_without_tied_times() -> None:
    risk, time = RNG.normal(size=300).round(1), RNG.permutation(300) + 1.0
    event = (RNG.random(300) < 0.4).astype(np.int64)
    assert c_index(risk, time, event) == pytest.approx(concordance_index(time, -risk, event), abs=1e-12)


def test_c_index_without_a_comparable_pair_is_undefined() -> None:
    assert c_index(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([0, 0])) is None
    assert c_index(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([0, 1])) is None  # the event comes last
    assert c_index(np.array([1.0, 2.0]), np.array([3.0, 3.0]), np.array([1, 1])) is None  # same time
    assert c_index(np.array([1.0]), np.array([3.0]), np.array([1])) is None


def test_classification_endpoints_equal_scikit_learn() -> None:
    label = RNG.integers(0, 4, 250)
    scores = (RNG.normal(size=(250, 4)) + np.eye(4)[label]).round(1)
    one_vs_rest = [roc_auc_score(label == k, scores[:, k]) for k in range(4)]
    assert auroc(scores, label) == pytest.approx(np.mean(one_vs_rest), abs=1e-12)
    predicted = scores.argmax(axis=1)
    assert macro_f1(predicted, label, 4) == pytest.approx(f1_score(label, predicted, average="macro"), abs=1e-12)


def test_a_class_never_predicted_scores_zero_not_undefined() -> None:
    label, predicted = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 1, 1])
    assert macro_f1(predicted, label, 3) == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_a_class_missing_from_the_test_rows_is_undefined() -> None:
    label = np.array([0, 0, 1, 1])
    assert macro_f1(label, label, 3) is None
    assert auroc(RNG.normal(size=(4, 3)), label) is None
    assert auroc(np.zeros((4, 1)), np.zeros(4, np.int64)) is None


def test_rank_endpoint_equals_scipy_and_its_top_k_counts_sets() -> None:
    a, b = RNG.normal(size=40).round(1), RNG.normal(size=40).round(1)
    assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)
    assert top_k_jaccard(np.array([9.0, 8, 7, 1]), np.array([9.0, 1, 8, 7]), 2) == pytest.approx(1 / 3)


def test_a_constant_or_missing_importance_is_undefined() -> None:
    assert spearman(np.ones(5), np.arange(5.0)) is None
    assert spearman(np.full(5, np.nan), np.arange(5.0)) is None
    assert top_k_jaccard(np.full(5, np.nan), np.arange(5.0), 2) is None
