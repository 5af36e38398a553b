"""Endpoints over folds, when every held-out row was scored by the models of its own fold (8-1 §3.3).

Models of different folds need not share a scale: a log hazard is relative to a baseline, log odds hold the prior of the
training rows. So ranks are counted over pairs of one fold and the counts are added over folds before they are divided:
whatever a fold does to its scores, monotonely, changes nothing. Predicted classes do share a scale and are pooled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import rankdata

from synth_platform.contract.cohort_sections import EndpointName
from synth_platform.evaluation.endpoints import concordance, macro_f1, spearman
from synth_platform.evaluation.learners import anova_f
from synth_platform.evaluation.utility import Arm, Mask, Value
from synth_platform.normalize.rows import EncodedRows, FloatArray, IntArray


def batch_groups(batch: IntArray, groups: int) -> IntArray:
    """Group 0..groups-1 of each of n rows: whole batches, the largest first, each to the smallest group so far.

    Rows of undeclared batches stay together, since they may be of one institution. Raises ValueError with fewer batches
    than groups.
    """
    codes, sizes = np.unique(batch, return_counts=True)
    if len(codes) < groups:
        raise ValueError(f"there are fewer batches than the {groups} groups they were to be split into")
    filled = np.zeros(groups, np.int64)
    assigned = np.empty(len(codes), np.int64)
    for i in np.lexsort((codes, -sizes)):
        assigned[i] = int(filled.argmin())
        filled[assigned[i]] += sizes[i]
    return np.asarray(assigned[np.searchsorted(codes, batch)])


def pool(arms: Sequence[Arm], fold: IntArray) -> Arm:
    """One arm of all held-out rows from the arms of the folds, the k-th on the rows with fold k in their order.

    Its importance is [folds, p]: that of every fold's own training table.
    """
    scores = np.empty((len(fold), arms[0].scores.shape[1]))
    risk = np.empty(len(fold))
    for k, arm in enumerate(arms):
        scores[fold == k], risk[fold == k] = arm.scores, arm.risk
    return Arm(scores, risk, np.array([arm.importance for arm in arms]))


def pooled_value(
    name: EndpointName, arm: Arm, *, held_out: EncodedRows, fold: IntArray, keep: Mask | None = None
) -> Value:
    """One endpoint of a pooled arm on the held-out rows `keep`; None where no fold defines it.

    C-index and AUROC (per class): concordant over comparable pairs, both summed over folds. Macro-F1: of all rows at
    once. Spearman: the mean over folds of the correlation between the fold's training importance and that of its
    held-out rows, which equals the pooled correlation of within-fold ranks.
    """
    classes = arm.scores.shape[1]
    kept = np.ones(len(fold), bool) if keep is None else keep
    if name == "macro_f1":
        return macro_f1(arm.scores[kept].argmax(axis=1), held_out.label[kept], classes)
    members = [(k, np.flatnonzero((fold == k) & kept)) for k in range(len(arm.importance))]
    if name == "c_index":
        counts = [concordance(arm.risk[m], held_out.time[m], held_out.event[m]) for _, m in members]
        pairs = sum(n for _, n in counts)
        return sum(twice for twice, _ in counts) / (2 * pairs) if pairs else None
    if name == "auroc":
        return _pooled_auroc([(arm.scores[m], held_out.label[m]) for _, m in members], classes)
    values = [spearman(arm.importance[k], reference_importance(held_out.take(m), classes)) for k, m in members]
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def reference_importance(held_out: EncodedRows, classes: int) -> FloatArray:
    """ANOVA F of the held-out rows of one fold, [p], to six decimals."""
    return np.round(anova_f(held_out.x, held_out.label, classes), 6)


def undefined_endpoints(held_out: EncodedRows, fold: IntArray, classes: int) -> Iterator[EndpointName]:
    """Endpoints that some fold cannot contribute to: it lacks a class, or a comparable pair of survival times."""
    folds = [held_out.take(fold == k) for k in range(int(fold.max()) + 1)]
    if any(len(np.unique(rows.label)) < classes for rows in folds):
        yield from ("macro_f1", "auroc", "spearman")
    if any(concordance(np.zeros(len(rows)), rows.time, rows.event)[1] == 0 for rows in folds):
        yield "c_index"


def _pooled_auroc(folds: Sequence[tuple[FloatArray, IntArray]], classes: int) -> Value:
    above, pairs = np.zeros(classes), np.zeros(classes)
    for scores, label in folds:
        ranks = rankdata(scores, axis=0)
        for k in range(classes):
            positive = label == k
            m = int(positive.sum())
            above[k] += float(ranks[positive, k].sum()) - m * (m + 1) / 2
            pairs[k] += m * (len(label) - m)
    return float((above / pairs).mean()) if pairs.all() and classes > 1 else None
