"""The four endpoints (8-1 §3.2). Each is a number, or None where it is not defined on the rows it was given."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from synth_platform.normalize.rows import FloatArray, IntArray


def c_index(risk: FloatArray, time: FloatArray, event: IntArray) -> float | None:
    """Concordance over the pairs e_i = 1, t_i < t_j: the share with r_i > r_j, ties in risk 1/2.

    None without a comparable pair.
    """
    twice, pairs = concordance(risk, time, event)
    return twice / (2.0 * pairs) if pairs else None


def concordance(risk: FloatArray, time: FloatArray, event: IntArray) -> tuple[int, int]:
    """(2 x concordant pairs + tied ones, comparable pairs) of the C-index, in O(n log^2 n)."""
    observed = event == 1
    pairs = len(time) - np.searchsorted(np.sort(time), time[observed], side="right")
    if pairs.sum() == 0:
        return 0, 0
    # Every row appears as data; events appear once more as queries, after the data of the same time, so that "later
    # data" means strictly greater time.
    times = np.concatenate([time, time[observed]])
    query = np.concatenate([np.zeros(len(time), bool), np.ones(int(observed.sum()), bool)])
    order = np.lexsort((query, times))
    rank = rankdata(np.concatenate([risk, risk[observed]]), method="dense").astype(np.int64)
    return _twice_later_smaller(rank[order], query[order]), int(pairs.sum())


def _twice_later_smaller(rank: IntArray, query: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    """Over all queries: 2 x (later data of smaller rank) + (later data of equal rank), by bottom-up merging."""
    position = np.arange(len(rank))
    span = int(rank.max()) + 2
    total = 0
    width = 1
    while width < len(rank):
        block = position // (2 * width)
        right = position % (2 * width) >= width
        keys = np.sort((block * span + rank)[right & ~query])
        asked = query & ~right
        start = np.searchsorted(keys, block[asked] * span)
        wanted = block[asked] * span + rank[asked]
        below = np.searchsorted(keys, wanted, side="left") - start
        through = np.searchsorted(keys, wanted, side="right") - start
        total += int(below.sum() + through.sum())
        width *= 2
    return total


def macro_f1(predicted: IntArray, label: IntArray, classes: int) -> float | None:
    """Mean over the classes of 2 TP / (2 TP + FP + FN). None where a class has no row."""
    truth = np.bincount(label, minlength=classes)
    if (truth == 0).any():
        return None
    claimed = np.bincount(predicted, minlength=classes)
    hit = np.bincount(label[predicted == label], minlength=classes)
    return float((2 * hit / (claimed + truth)).mean())


def auroc(scores: FloatArray, label: IntArray) -> float | None:
    """Mean one-vs-rest AUROC over the K columns of scores [n, K], ties 1/2. None where a class has no row."""
    n, classes = scores.shape
    counts = np.bincount(label, minlength=classes)
    if (counts == 0).any() or classes < 2:
        return None
    values = []
    for k in range(classes):
        ranks = rankdata(scores[:, k])
        m = int(counts[k])
        values.append((float(ranks[label == k].sum()) - m * (m + 1) / 2) / (m * (n - m)))
    return float(np.mean(values))


def spearman(importance: FloatArray, reference: FloatArray) -> float | None:
    """Rank correlation of two importance vectors [p], average ranks. None where one is constant or not finite."""
    if not (np.isfinite(importance).all() and np.isfinite(reference).all()):
        return None
    a, b = rankdata(importance), rankdata(reference)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 0 else None


def top_k_jaccard(importance: FloatArray, reference: FloatArray, k: int) -> float | None:
    """|A n B| / |A u B| of the k most important features on each side; equal values go to the earlier feature."""
    if not (np.isfinite(importance).all() and np.isfinite(reference).all()):
        return None
    first = set(np.argsort(-importance, kind="stable")[:k].tolist())
    second = set(np.argsort(-reference, kind="stable")[:k].tolist())
    return len(first & second) / len(first | second)
