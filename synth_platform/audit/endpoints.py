"""The four endpoints of 8-1 §3.2 on held-out rows; with several folds, ranks are counted within each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from synth_platform.audit.reading import FloatArray, IntArray
from synth_platform.audit.statistics import (
    anova,
    concordance,
    macro_f1,
    one_against_rest,
    rank_correlation,
    top_k,
    twice_ranks,
)
from synth_platform.audit.utility_rows import Arm, HeldOut, Mask

Value = Fraction | float | None


def endpoint_values(code: str, test: HeldOut, kept: Sequence[Mask]) -> Callable[[Arm, int], Value]:
    """The endpoint `code` of an arm on the test rows kept[i]."""
    folds = [test.within(keep) for keep in kept]
    if code == "c_index":
        return lambda arm, i: _concordance(arm, test, folds[i])
    if code == "macro_f1":
        return lambda arm, i: macro_f1(arm.scores[kept[i]], test.label[kept[i]])
    if code == "auroc":
        return lambda arm, i: one_against_rest([(arm.scores[rows], test.label[rows]) for rows in folds[i]])
    ranked = [[_ranks(anova(test.x[rows], test.label[rows])) for rows in members] for members in folds]
    importances: dict[int, list[list[int] | None]] = {}

    def correlation(arm: Arm, i: int) -> Value:
        own = importances.setdefault(id(arm), [None if v is None else twice_ranks(v) for v in arm.importance])
        pairs = [(a, b) for a, b in zip(own, ranked[i], strict=True) if a is not None and b is not None]
        return mean([value for a, b in pairs if (value := rank_correlation(a, b)) is not None])

    return correlation


def _concordance(arm: Arm, test: HeldOut, folds: Sequence[IntArray]) -> Value:
    counts = [concordance(arm.risk[rows], test.time[rows], test.event[rows]) for rows in folds]
    pairs = sum(total for _, total in counts)
    return Fraction(sum(won for won, _ in counts), pairs) if pairs else None


def cannot_contribute(code: str, test: HeldOut, classes: int) -> bool:
    """Whether some fold of several lacks a class, or a comparable pair of survival times."""
    folds = test.within(np.ones(len(test.label), bool))
    if len(folds) == 1:
        return False
    if code == "c_index":
        return any(concordance(test.time[rows], test.time[rows], test.event[rows])[1] == 0 for rows in folds)
    return any(len(set(test.label[rows].tolist())) < classes for rows in folds)


def _ranks(reference: FloatArray | None) -> list[int] | None:
    return None if reference is None else twice_ranks(reference.tolist())


def agreement(own: list[float] | None, reference: FloatArray | None, k: int) -> Value:
    """Jaccard index of the k most important features on both sides."""
    if own is None or reference is None:
        return None
    first, second = top_k(own, k), top_k(reference.tolist(), k)
    return Fraction(len(first & second), len(first | second))


def mean(values: Sequence[Value]) -> Value:
    """The mean, exact where all values are fractions; None where one is not defined, or there is none."""
    defined = [value for value in values if value is not None]
    if len(defined) < len(values) or not defined:
        return None
    exact = [value for value in defined if isinstance(value, Fraction)]
    if len(exact) == len(defined):
        return sum(exact, Fraction()) / len(exact)
    return sum(map(float, defined)) / len(defined)
