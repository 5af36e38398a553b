"""Exact noisy arg-max: the ordered `size` largest of scores_j + G_j with independent standard Gumbel G_j, in one draw.

G = −log(−log(1 − V)) for V uniform on (0, 1): the greatest G come from V near 0, where binary digits are finest. Taking
the top `size` of one draw in order is the same as choosing one position with probability ∝ exp(score), removing it, and
choosing again (Plackett and Luce): peeling in O(m).

Scores are the float64 values as exact real numbers. V is known lazily: its first 64 bits and float64 confine a key
score + G to an interval, and where the intervals of two keys that compete for a place overlap (about one pair in 2^40),
V gets more bits and the key more decimal digits until the two differ. No choice depends on float rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cmp_to_key

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]
Words = Callable[[int], WordArray]
"""n -> n independent uniform 64-bit words."""

LARGEST_SCORE = 1e300

_BLOCK = 1 << 17  # words under one key: 2^16 cipher blocks, as many as a block of the discrete Gaussian takes
_HALF = np.uint64(1 << 63)
_RELATIVE_ERROR = 2.0**-45


def gumbel_top(scores: FloatArray, size: int, words: Words) -> IntArray:
    """[size] positions of the `size` largest of scores [m] plus independent standard Gumbel noise, largest first.

    Exact for ideal words. O(m + size·log size) time; memory beyond the scores for the `size` that lead so far.

    Raises ValueError for size outside 1..m or a score that is not a number between −1e300 and 1e300.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1:
        raise ValueError(f"scores have {scores.ndim} dimensions, expected 1: one score per candidate")
    if not 1 <= size <= scores.size:
        raise ValueError(f"size is {size}, expected between 1 and the {scores.size} candidates")
    greatest, least = float(scores.max()), float(scores.min())
    if not (greatest <= LARGEST_SCORE and least >= -LARGEST_SCORE):
        raise ValueError(f"scores must be numbers between {-LARGEST_SCORE:g} and {LARGEST_SCORE:g}: one is not")
    contenders = _contenders(scores, greatest, size, words)
    return contenders.positions[list(_ordered(contenders, size, words))]


@dataclass(frozen=True)
class _Candidates:
    """Positions [n] with their exact scores and the first 64 bits of their V."""

    positions: IntArray
    scores: FloatArray
    words: WordArray

    def at(self, index: IntArray) -> _Candidates:
        return _Candidates(self.positions[index], self.scores[index], self.words[index])

    def and_also(self, more: _Candidates) -> _Candidates:
        return _Candidates(
            np.concatenate([self.positions, more.positions]),
            np.concatenate([self.scores, more.scores]),
            np.concatenate([self.words, more.words]),
        )

    def keys(self, shift: float) -> tuple[FloatArray, FloatArray]:
        """key − shift in float64 and the error it may have, [n] each; see `_gumbel`."""
        gumbel, error = _gumbel(self.words)
        difference = self.scores - shift
        error += _RELATIVE_ERROR * np.abs(difference)
        return difference + gumbel, error


def _contenders(scores: FloatArray, shift: float, size: int, words: Words) -> _Candidates:
    """Everyone who may be among the top `size`: those whose highest key reaches the size-th greatest lowest key."""
    kept = _Candidates(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.uint64))
    lowest, highest, bar = np.zeros(0), np.zeros(0), -np.inf
    for start in range(0, scores.size, _BLOCK):
        part = scores[start : start + _BLOCK]
        block = _Candidates(np.arange(start, start + part.size), part, words(part.size))
        key, error = block.keys(shift)
        new = np.flatnonzero(key + error >= bar)
        kept = kept.and_also(block.at(new))
        lowest = np.concatenate([lowest, (key - error)[new]])
        highest = np.concatenate([highest, (key + error)[new]])
        if lowest.size > size:
            bar = np.partition(lowest, lowest.size - size)[lowest.size - size]
            stay = np.flatnonzero(highest >= bar)
            kept, lowest, highest = kept.at(stay), lowest[stay], highest[stay]
    return kept


def _ordered(candidates: _Candidates, size: int, words: Words) -> Iterator[int]:
    """Indices of the `size` greatest keys, greatest first.

    Intervals that overlap form a run, and runs are in order already. Within a run scores are taken again from its own
    greatest, which takes the error of two scores that are far below the rest away; a run that stays whole is decided
    exactly.
    """
    key, error = candidates.keys(float(candidates.scores.max()))
    order = np.argsort(-(key + error), kind="stable")
    least = np.minimum.accumulate((key - error)[order])
    runs = np.split(order, 1 + np.flatnonzero((key + error)[order][1:] < least[:-1]))
    if len(runs) == 1 and order.size > 1:
        yield from _exactly_ordered(candidates, words)[:size]
        return
    missing = size
    for run in runs:
        if run.size == 1:
            yield int(run[0])
        else:
            within = _ordered(candidates.at(run), min(missing, run.size), words)
            yield from (int(run[i]) for i in within)
        missing -= run.size
        if missing <= 0:
            return


def _gumbel(words: WordArray) -> tuple[FloatArray, FloatArray]:
    """G of the middle of [w, w + 1)/2^64 in float64, and a bound on its distance from G of any V in it.

    With x = (min(w, 2^64 − 1 − w) + 1/2)/2^64, E = −log(1 − V) is −log1p(−x) or −log(x): its relative
    error, below 2^-49 with the rounding of x, is the absolute error of −log E, whose own is below 2^-50·(1 + |G|).
    Adding a score difference d costs 2^-53·(|d| + |G|) twice at most. The margin is 2^-45, eight times what is needed.
    The rest is the width: |dG/dV| = 1/((1 − V)·E) ≤ 2/min(V, 1 − V), over half a step; infinite in the outermost two.
    """
    upper = words >= _HALF
    steps = np.where(upper, ~words, words).astype(np.float64)
    x = (steps + 0.5) * 2.0**-64
    gumbel = np.empty_like(x)
    np.log1p(-x, out=gumbel, where=~upper)
    np.log(x, out=gumbel, where=upper)
    gumbel = -np.log(-gumbel)
    with np.errstate(divide="ignore"):
        width = 1.0 / steps
    return gumbel, width + _RELATIVE_ERROR * (1 + np.abs(gumbel))


class _ExactKey:
    """score + G of one candidate, known as closely as has been asked for."""

    def __init__(self, score: float, word: int, words: Words) -> None:
        self._score = Fraction(score)
        self._drawn = word
        self._bits = 64
        self._words = words
        self.lowest, self.highest = self._interval()

    def refine(self) -> None:
        """64 more bits of V."""
        self._drawn, self._bits = (self._drawn << 64) | int(self._words(1)[0]), self._bits + 64
        self.lowest, self.highest = self._interval()

    def _interval(self) -> tuple[Fraction | None, Fraction | None]:
        """Bounds of the key; None is an infinite one."""
        below, above = self._gumbel(self._drawn + 1), self._gumbel(self._drawn)
        return below and self._score + below[0], above and self._score + above[1]

    def _gumbel(self, numerator: int) -> tuple[Fraction, Fraction] | None:
        """Bounds of G at V = numerator/2^bits; None where it is infinite."""
        if numerator in {0, 1 << self._bits}:
            return None
        # 1 − V has at most `bits` decimals, so it is exact; Decimal.ln is correctly rounded.
        with localcontext(prec=self._bits + 10):
            gumbel = -(-(Decimal((1 << self._bits) - numerator) / (1 << self._bits)).ln()).ln()
            error = (1 + abs(gumbel)) * Decimal(10) ** -self._bits
            return Fraction(gumbel) - Fraction(error), Fraction(gumbel) + Fraction(error)


def _exactly_ordered(candidates: _Candidates, words: Words) -> list[int]:
    """All indices, greatest key first."""
    keys = [_ExactKey(float(s), int(w), words) for s, w in zip(candidates.scores, candidates.words, strict=True)]

    def compare(first: int, second: int) -> int:
        a, b = keys[first], keys[second]
        while True:
            if a.lowest is not None and b.highest is not None and a.lowest > b.highest:
                return -1
            if b.lowest is not None and a.highest is not None and b.lowest > a.highest:
                return 1
            for index in sorted((first, second)):
                keys[index].refine()

    return sorted(range(len(keys)), key=cmp_to_key(compare))
