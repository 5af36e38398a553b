"""Euclidean nearest-neighbour distances, blocked so that 50,000 against 50,000 rows fit in memory."""

from __future__ import annotations

import numpy as np

from synth_platform.normalize.rows import FloatArray

_BLOCK_CELLS = 4_000_000
_CHUNK = 64
_SPARE = 4


def nearest_distances(queries: FloatArray, points: FloatArray, k: int = 1) -> FloatArray:
    """The k smallest Euclidean distances from each query to `points`, ascending, [n, k], rounded to six decimals.

    Candidates come from |q|^2 + |p|^2 - 2 q.p, which is fast but cancels near zero; the distances of k + 4 candidates
    are then computed again from differences, so that a copy is at distance 0 and not at rounding noise.

    Raises ValueError with fewer than k points or rows that are not finite.
    """
    if len(points) < k:
        raise ValueError(f"{len(points)} rows cannot give {k} nearest neighbours")
    if not (np.isfinite(queries).all() and np.isfinite(points).all()):
        raise ValueError("distances need finite rows: encode missing cells first")
    centre = points.mean(axis=0)
    queries, points = queries - centre, points - centre
    candidates = min(k + _SPARE, len(points))
    # The c nearest points lie in the c chunks with the nearest chunk minima: only those are searched.
    chunks = -(-len(points) // _CHUNK)
    searched = min(candidates, chunks)
    twice = np.zeros((points.shape[1], chunks * _CHUNK))
    twice[:, : len(points)] = -2.0 * points.T
    squares = np.full(chunks * _CHUNK, np.inf)
    squares[: len(points)] = np.einsum("np,np->n", points, points)
    result = np.empty((len(queries), k))
    step = max(1, _BLOCK_CELLS // len(squares))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        # |q|^2 is the same along a row and does not change which points are nearest.
        proximity = block @ twice
        proximity += squares
        chunked = proximity.reshape(len(block), chunks, _CHUNK)
        chunk = np.argpartition(chunked.min(axis=2), searched - 1, axis=1)[:, :searched]
        index = (chunk[:, :, None] * _CHUNK + np.arange(_CHUNK)).reshape(len(block), -1)
        near = np.argpartition(np.take_along_axis(proximity, index, axis=1), candidates - 1, axis=1)[:, :candidates]
        nearest = np.take_along_axis(index, near, axis=1)
        exact = np.stack([np.linalg.norm(block - points[nearest[:, c]], axis=1) for c in range(candidates)], axis=1)
        result[start : start + step] = np.sort(exact, axis=1)[:, :k]
    return np.round(result, 6)


def matched(first: FloatArray, second: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Both sets at the size of the smaller one: the larger loses rows by a public seeded permutation (8-1 §3.1)."""
    size = min(len(first), len(second))
    rng = np.random.default_rng(seed)
    first, second = (
        rows if len(rows) == size else rows[np.sort(rng.permutation(len(rows))[:size])] for rows in (first, second)
    )
    return first, second
