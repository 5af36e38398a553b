"""Euclidean nearest-neighbour distances, blocked so that 50,000 against 50,000 rows fit in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synth_platform.normalize.rows import FloatArray

_BLOCK_BYTES = 1 << 26
_SPARE = 4
_LARGEST = 1e145  # squares of differences and their sums stay finite
_TIE = 1e-10

_Index = NDArray[np.intp]


def nearest_distances(queries: FloatArray, points: FloatArray, k: int = 1) -> FloatArray:
    """The k smallest Euclidean distances from each query to `points`, ascending, [n, k], rounded to six decimals.

    A matrix product bounds every squared distance from below; the distances of the k + 4 points with the smallest
    bounds are then computed from differences, so that a copy is at distance 0 and not at rounding noise. A query is
    settled once the bound of every other point lies beyond its k-th distance, which proves that none was missed. Single
    precision settles almost all; double precision the others (near ties, clusters far from one another), for which all
    points that the bounds do not exclude are tried. There, squared distances within 1e-10 of each other are ties.

    Raises ValueError with fewer than k points, or rows that are not finite or beyond 1e145.
    """
    if len(points) < k:
        raise ValueError(f"{len(points)} rows cannot give {k} nearest neighbours")
    largest = require_measurable(queries, points)
    scale = 2.0 ** -max(0, int(np.frexp(largest)[1]))
    kept = min(k + _SPARE, len(points))
    result = np.empty((len(queries), k))
    unsettled = np.arange(len(queries))
    for precision in (np.float32, np.float64):
        if len(unsettled):
            bounds = _Bounds(points, kept, scale, precision)
            settled = [_settle(rows, queries[rows], points, bounds, result) for rows in bounds.blocks(unsettled)]
            unsettled = unsettled[~np.concatenate(settled)]
    return np.round(result, 6)


def require_measurable(*sets: FloatArray) -> float:
    """The largest absolute value of all rows. Raises ValueError where it is not finite or beyond 1e145."""
    largest = [_largest(rows) for rows in sets]
    if not all(value <= _LARGEST for value in largest):  # no number is not beyond anything either
        raise ValueError("distances need finite rows (1e145 at most): encode missing cells first")
    return max(largest)


class _Bounds:
    """Lower bounds of squared distances to fixed points, in units of 1 / `scale`, by one matrix product.

    Centred, |q - p|^2 = |q|^2 + |p|^2 - 2 q.p. Rounding the rows, d + 1 products and their sum, and the squares, moves
    this by less than e (|q|^2 + |p|^2) with e = (3 d + 32) u, u the unit roundoff: an inner product of m terms errs by
    at most m u / (1 - m u) |x|.|y| in any order of summation (Higham 2002, §3.1), and 2 |q| |p| <= |q|^2 + |p|^2.
    """

    def __init__(self, points: FloatArray, kept: int, scale: float, precision: type[np.floating[Any]]) -> None:
        n, d = points.shape
        limits = np.finfo(precision)
        self.scale = scale
        self.centre = points.mean(axis=0)
        self.margin = (3 * d + 32) * float(limits.eps) / 2
        self.underflow = (8 * d + 16) * float(limits.tiny)  # what underflows is lost absolutely, not relatively
        self.kept = kept
        self.chunk = math.isqrt(n // kept) + 1  # as many minima to look through as values in the chunks kept
        self.chunks = -(-n // self.chunk)
        self.matrix = np.zeros((self.chunks * self.chunk, d + 1), precision)
        self.matrix[n:, d] = limits.max / 2
        self.rows = max(1, _BLOCK_BYTES // (self.matrix.itemsize * max(len(self.matrix), 8 * d)))
        self.product = np.empty((self.rows, len(self.matrix)), precision)
        for part in self.blocks(np.arange(n)):
            centred, squares = self._centred(points[part])
            self.matrix[part, :d] = -2 * centred
            self.matrix[part, d] = squares * (1 - self.margin)

    def blocks(self, rows: _Index) -> Iterator[_Index]:
        """`rows` in pieces for which `below` has room."""
        for start in range(0, len(rows), self.rows):
            yield rows[start : start + self.rows]

    def below(self, queries: FloatArray) -> tuple[NDArray[Any], FloatArray]:
        """Bounds [n, points, then padding far above all] less a number for each query, and these numbers [n].

        The bounds are overwritten by the next call.
        """
        centred, squares = self._centred(queries)
        left = np.column_stack([centred, np.ones(len(queries))]).astype(self.matrix.dtype)
        bound = np.matmul(left, self.matrix.T, out=self.product[: len(queries)])
        return bound, squares * (1 - self.margin) - self.underflow

    def _centred(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        centred = (rows - self.centre) * self.scale
        return centred, np.einsum("np,np->n", centred, centred)


def _settle(
    rows: _Index, queries: FloatArray, points: FloatArray, bounds: _Bounds, result: FloatArray
) -> NDArray[np.bool_]:
    """Write the nearest distances of `queries`, which are `rows` of the result; which of them are certain, [n]."""
    k = result.shape[1]
    bound, rest = bounds.below(queries)
    # The c smallest bounds lie in the c chunks with the smallest minima: only those are searched.
    kept = bounds.kept
    searched = min(kept, bounds.chunks)
    minima = bound.reshape(len(rows), bounds.chunk, bounds.chunks).min(axis=1)
    chunk = np.argpartition(minima, searched - 1, axis=1)[:, :searched]
    index = (chunk[:, :, None] + bounds.chunks * np.arange(bounds.chunk)).reshape(len(rows), -1)
    values = np.take_along_axis(bound, index, axis=1)
    smallest = np.argpartition(values, kept - 1, axis=1)[:, :kept]
    nearest = np.take_along_axis(index, smallest, axis=1)
    exact = np.stack([np.linalg.norm(queries - points[nearest[:, c]], axis=1) for c in range(kept)], axis=1)
    exact.sort(axis=1)
    result[rows] = exact[:, :k]
    if kept == len(points):
        return np.ones(len(rows), dtype=bool)
    others = np.maximum(np.take_along_axis(values, smallest[:, -1:], axis=1)[:, 0] + rest, 0)
    reach = np.square(exact[:, k - 1] * bounds.scale)
    if bound.dtype == np.float32:
        return others >= reach
    for i in np.flatnonzero(others < reach * (1 - _TIE)):
        possible = np.flatnonzero(bound[i] + rest[i] <= reach[i] * (1 + bounds.margin))
        tried = [np.linalg.norm(queries[i] - points[part], axis=1) for part in bounds.blocks(possible)]
        result[rows[i]] = np.sort(np.concatenate(tried))[:k]
    return np.ones(len(rows), dtype=bool)


def _largest(rows: FloatArray) -> float:
    return float(np.maximum(rows.max(initial=0.0), -rows.min(initial=0.0)))


def matched(first: FloatArray, second: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Both sets at the size of the smaller one: the larger loses rows by a public seeded permutation (8-1 §3.1)."""
    size = min(len(first), len(second))
    rng = np.random.default_rng(seed)
    first, second = (
        rows if len(rows) == size else rows[np.sort(rng.permutation(len(rows))[:size])] for rows in (first, second)
    )
    return first, second
