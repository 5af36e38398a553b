"""Pooled endpoints: whole batches, only pairs one model scored, and the same figures as independent libraries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines.utils import concordance_index
from scipy.stats import f_oneway, spearmanr
from sklearn.metrics import f1_score, roc_auc_score

from synth_platform.evaluation.pooled import batch_groups, pool, pooled_value, undefined_endpoints
from synth_platform.evaluation.utility import Arm, endpoint_value
from synth_platform.normalize.rows import EncodedRows

CLASSES, FEATURES, FOLDS = 3, 6, 4
NAMES = ("c_index", "macro_f1", "auroc", "spearman")


def rows(n: int, seed: int) -> EncodedRows:
    rng = np.random.default_rng(seed)
    label = np.concatenate([np.arange(CLASSES), rng.integers(0, CLASSES, n - CLASSES)])
    return EncodedRows(
        features=tuple(f"f{j}" for j in range(FEATURES)),
        x=rng.normal(size=(n, FEATURES)) + label[:, None] * np.linspace(0, 1, FEATURES),
        label=label,
        event=rng.integers(0, 2, n),
        time=rng.integers(1, 30, n).astype(float),
        batch=rng.integers(0, 9, n),
        split=np.full(n, "train"),
        key=np.array([f"K{i}" for i in range(n)]),
    )


def arm(n: int, seed: int, folds: int = FOLDS) -> Arm:
    """Scores with ties, as they come rounded."""
    rng = np.random.default_rng(seed)
    return Arm(
        scores=np.round(rng.normal(size=(n, CLASSES)), 1),
        risk=np.round(rng.normal(size=n), 1),
        importance=rng.exponential(size=(folds, FEATURES)),
    )


@given(st.lists(st.integers(-1, 12), min_size=4, max_size=60), st.integers(2, 5))
@settings(deadline=None, max_examples=60)
def test_no_batch_stands_in_two_groups_and_none_is_empty(batch: list[int], groups: int) -> None:
    codes = np.array(batch)
    if len(set(batch)) < groups:
        with pytest.raises(ValueError, match="fewer batches"):
            batch_groups(codes, groups)
        return
    assigned = batch_groups(codes, groups)
    assert all(len(set(assigned[codes == code])) == 1 for code in set(batch))
    assert set(assigned) == set(range(groups))
    # The largest group holds at most one batch more than an equal share (the bound of greedy list scheduling).
    assert np.bincount(assigned).max() <= len(batch) / groups + np.unique(codes, return_counts=True)[1].max()


def test_groups_do_not_depend_on_the_order_of_rows() -> None:
    batch = np.random.default_rng(0).integers(0, 11, 200)
    order = np.random.default_rng(1).permutation(200)
    assert (batch_groups(batch, 4)[order] == batch_groups(batch[order], 4)).all()


def test_figures_equal_other_libraries_over_the_pairs_of_one_fold() -> None:
    held, own = rows(160, 1), arm(160, 2)
    fold = np.random.default_rng(3).integers(0, FOLDS, 160)
    keep = np.random.default_rng(4).random(160) < 0.9
    parts = [np.flatnonzero((fold == k) & keep) for k in range(FOLDS)]
    label, time, event = held.label, held.time, held.event

    pairs = sum(int((time[m] > time[i]).sum()) for m in parts for i in m if event[i])
    concordant = sum(
        (own.risk[i] > own.risk[j]) + 0.5 * (own.risk[i] == own.risk[j])
        for m in parts
        for i in m
        for j in m
        if event[i] and time[i] < time[j]
    )
    assert pooled_value("c_index", own, held_out=held, fold=fold, keep=keep) == pytest.approx(concordant / pairs)

    per_class = []
    for k in range(CLASSES):
        weight = [int((label[m] == k).sum() * (label[m] != k).sum()) for m in parts]
        area = [roc_auc_score(label[m] == k, own.scores[m, k]) for m in parts]
        per_class.append(np.average(area, weights=weight))
    assert pooled_value("auroc", own, held_out=held, fold=fold, keep=keep) == pytest.approx(np.mean(per_class))

    f1 = f1_score(label[keep], own.scores[keep].argmax(axis=1), average="macro")
    assert pooled_value("macro_f1", own, held_out=held, fold=fold, keep=keep) == pytest.approx(f1)

    rank = []
    for k, m in enumerate(parts):
        reference = [
            f_oneway(*[held.x[m][label[m] == c, j] for c in range(CLASSES)]).statistic for j in range(FEATURES)
        ]
        rank.append(spearmanr(own.importance[k], reference).statistic)
    assert pooled_value("spearman", own, held_out=held, fold=fold, keep=keep) == pytest.approx(np.mean(rank))


def test_c_index_equals_lifelines_weighted_by_comparable_pairs() -> None:
    held, own = rows(150, 8), arm(150, 9)
    time = np.random.default_rng(10).permutation(150) + 1.0  # no tied times: lifelines counts some of those pairs too
    held = EncodedRows(**{**held.__dict__, "time": time})
    fold = np.arange(150) % FOLDS
    parts = [np.flatnonzero(fold == k) for k in range(FOLDS)]
    weight = [sum(int((time[m] > time[i]).sum()) for i in m if held.event[i]) for m in parts]
    single = [concordance_index(time[m], -own.risk[m], held.event[m]) for m in parts]
    pooled = pooled_value("c_index", own, held_out=held, fold=fold)
    assert pooled == pytest.approx(np.average(single, weights=weight))


@given(st.lists(st.tuples(st.floats(0.1, 5), st.floats(-50, 50)), min_size=FOLDS, max_size=FOLDS))
@settings(deadline=None, max_examples=20)
def test_ranks_do_not_see_what_scale_a_fold_scores_on(scales: list[tuple[float, float]]) -> None:
    held, own = rows(120, 5), arm(120, 6)
    fold = np.random.default_rng(7).integers(0, FOLDS, 120)
    slope, level = np.array(scales).T
    moved = Arm(
        scores=own.scores * slope[fold][:, None] + level[fold][:, None],
        risk=own.risk * slope[fold] + level[fold],
        importance=own.importance * slope[:, None] + level[:, None],
    )
    for name in NAMES:
        before = pooled_value(name, own, held_out=held, fold=fold)
        assert pooled_value(name, moved, held_out=held, fold=fold) == before


def test_counting_pairs_across_folds_would_see_the_scale() -> None:
    """Why pairs of one fold alone are counted: of perfect models, one on a higher level, they would make worse ones."""
    held = rows(120, 5)
    fold = np.arange(120) % 2
    right = Arm(scores=np.eye(CLASSES)[held.label], risk=-held.time, importance=np.ones((2, FEATURES)))
    moved = Arm(scores=right.scores + 5.0 * fold[:, None], risk=right.risk + 100.0 * fold, importance=right.importance)
    for name in ("c_index", "auroc"):
        assert pooled_value(name, moved, held_out=held, fold=fold) == 1.0
        assert endpoint_value(name, moved, test=held) < 0.8


def test_one_fold_is_the_utility_gate() -> None:
    held, own = rows(90, 11), arm(90, 12, folds=1)
    single = Arm(own.scores, own.risk, own.importance[0])
    for name in NAMES:
        assert pooled_value(name, own, held_out=held, fold=np.zeros(90, np.int64)) == pytest.approx(
            endpoint_value(name, single, test=held)
        )


def test_pool_puts_every_row_where_it_was() -> None:
    fold = np.array([1, 0, 1, 0, 0])
    arms = [arm(3, 1, folds=1), arm(2, 2, folds=1)]
    pooled = pool([Arm(a.scores, a.risk, a.importance[0]) for a in arms], fold)
    assert (pooled.risk[[1, 3, 4]] == arms[0].risk).all()
    assert (pooled.scores[[0, 2]] == arms[1].scores).all()
    assert pooled.importance.shape == (2, FEATURES)


def test_a_fold_without_a_class_or_a_comparable_pair_leaves_its_endpoints_undefined() -> None:
    held = rows(60, 13)
    fold = np.arange(60) % 2
    assert list(undefined_endpoints(held, fold, CLASSES)) == []
    missing = np.where((fold == 1) & (held.label == 2), 0, held.label)
    without_class = EncodedRows(**{**held.__dict__, "label": missing})
    assert set(undefined_endpoints(without_class, fold, CLASSES)) == {"macro_f1", "auroc", "spearman"}
    quiet = EncodedRows(**{**held.__dict__, "event": np.where(fold == 0, 0, held.event)})
    assert list(undefined_endpoints(quiet, fold, CLASSES)) == ["c_index"]


def test_no_pair_at_all_is_no_value() -> None:
    held = rows(30, 14)
    own, fold = arm(30, 15, folds=2), np.arange(30) % 2
    nobody = EncodedRows(**{**held.__dict__, "event": np.zeros(30, np.int64), "label": np.zeros(30, np.int64)})
    assert [pooled_value(name, own, held_out=nobody, fold=fold) for name in NAMES] == [None] * 4
