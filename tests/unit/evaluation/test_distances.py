"""Nearest distances equal scipy's exhaustive ones, copies included, whatever the block size or nearness of ties."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from synth_platform.evaluation import distances
from synth_platform.evaluation.distances import matched, nearest_distances


@pytest.mark.parametrize("block_bytes", [1, 10**5, 10**7])
@pytest.mark.parametrize("k", [1, 5, 90])
def test_equal_to_exhaustive_search(block_bytes: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "_BLOCK_BYTES", block_bytes)
    rng = np.random.default_rng(1)
    queries, points = rng.normal(size=(70, 9)), rng.normal(size=(1030, 9))
    queries[:5] = points[:5]
    expected = np.sort(cdist(queries, points), axis=1)[:, :k]
    np.testing.assert_allclose(nearest_distances(queries, points, k), expected, atol=6e-7)


def test_copies_far_from_the_origin_are_at_distance_zero() -> None:
    points = np.random.default_rng(2).normal(size=(200, 300)) * 50 + 1e4
    found = nearest_distances(points + np.r_[np.zeros(199), 3e-6][:, None] / np.sqrt(300), points)[:, 0]
    assert (found[:199] == 0).all()
    assert found[199] == pytest.approx(3e-6, abs=1e-9)


def test_all_points_may_be_asked_for_and_no_more() -> None:
    points = np.random.default_rng(3).normal(size=(4, 2))
    assert nearest_distances(points, points, 4).shape == (4, 4)
    with pytest.raises(ValueError, match="4 rows cannot give 5"):
        nearest_distances(points, points, 5)
    with pytest.raises(ValueError, match="finite"):
        nearest_distances(np.full((1, 2), np.nan), points)


Rows = np.ndarray


def two_clusters(rng: np.random.Generator, rows: int, columns: int) -> Rows:
    """Single precision cannot see distances inside a cluster; at 1e9 double precision cannot either."""
    far = 10.0 ** rng.choice([4, 6, 9])
    return rng.normal(size=(rows, columns)) + far * rng.integers(0, 2, size=(rows, 1))


def one_far_row(rng: np.random.Generator, rows: int, columns: int) -> Rows:
    drawn = rng.normal(size=(rows, columns))
    drawn[0] *= 1e12
    return drawn


def crowd(rng: np.random.Generator, rows: int, columns: int) -> Rows:
    """Many more near ties than spare candidates, at distances of the rounding's own size."""
    return 7.0 + rng.normal(size=(rows, columns)) * 1e-5


def binary(rng: np.random.Generator, rows: int, columns: int) -> Rows:
    return rng.integers(0, 2, size=(rows, columns)).astype(float)


def repeated(rng: np.random.Generator, rows: int, columns: int) -> Rows:
    return rng.normal(size=(3, columns))[rng.integers(0, 3, size=rows)] * 1e3


def extremes(rng: np.random.Generator, rows: int, columns: int) -> Rows:
    return rng.normal(size=(rows, columns)) * 10.0 ** rng.integers(-300, 100, size=(rows, 1))


def offset(rng: np.random.Generator, rows: int, columns: int) -> Rows:
    return rng.normal(size=(rows, columns)) + 1e8


def heavy(rng: np.random.Generator, rows: int, columns: int) -> Rows:
    return rng.standard_cauchy(size=(rows, columns))


@settings(deadline=None, max_examples=120)
@given(
    draw=st.sampled_from([two_clusters, one_far_row, crowd, binary, repeated, extremes, offset, heavy]),
    seed=st.integers(0, 2**32 - 1),
    columns=st.sampled_from([1, 2, 30]),
    size=st.sampled_from([3, 40, 300]),
    k=st.sampled_from([1, 2, 5, 300]),
    copies=st.booleans(),
)
def test_equal_to_exhaustive_search_on_hard_tables(
    draw: Callable[[np.random.Generator, int, int], Rows], seed: int, columns: int, size: int, k: int, copies: bool
) -> None:
    rng = np.random.default_rng(seed)
    both = draw(rng, size + 20, columns)
    queries, points = both[:20].copy(), both[20:]
    if copies:
        queries[:3] = points[:3]
    k = min(k, size)
    found = nearest_distances(queries, points, k)
    np.testing.assert_allclose(found, np.sort(cdist(queries, points), axis=1)[:, :k], atol=5.1e-7, rtol=1e-10)
    if copies:
        assert (found[:3, 0] == 0).all()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("draw", [two_clusters, one_far_row, crowd, offset, heavy])
@pytest.mark.parametrize("columns", [1, 17, 400])
def test_bounds_are_never_above_the_squared_distance(
    precision: type, draw: Callable[[np.random.Generator, int, int], Rows], columns: int
) -> None:
    """Against extended precision; and tight to twice their margin, so that they settle what they can."""
    rng = np.random.default_rng(columns)
    queries, points = draw(rng, 30, columns), draw(rng, 200, columns)
    bounds = distances._Bounds(points, 5, 2.0**-50, precision)
    below, rest = bounds.below(queries)
    below = below[:, : len(points)].astype(np.longdouble) + rest[:, None]
    q, p = (np.asarray(rows, dtype=np.longdouble) * 2.0**-50 for rows in (queries, points))
    exact = ((q[:, None, :] - p) ** 2).sum(axis=2)
    assert (below <= exact).all()
    squares = ((q - bounds.centre * 2.0**-50) ** 2).sum(axis=1)[:, None] + ((p - bounds.centre * 2.0**-50) ** 2).sum(
        axis=1
    )
    assert (exact - below <= 2 * (bounds.margin * squares + bounds.underflow)).all()


def test_copies_need_no_second_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is nearer than a copy, however many others its bound cannot tell from it."""
    searched: list[type] = []
    bounds = distances._Bounds

    def record(points: Rows, kept: int, scale: float, precision: type) -> object:
        searched.append(precision)
        return bounds(points, kept, scale, precision)

    monkeypatch.setattr(distances, "_Bounds", record)
    points = repeated(np.random.default_rng(4), 300, 30)
    assert (nearest_distances(points[:50], points, 5) == 0).all()
    assert searched == [np.float32]
    nearest_distances(points[:50] + 1, points)
    assert searched == [np.float32, np.float32, np.float64]


def test_memory_is_bounded_by_the_block() -> None:
    """All pairs at once would take 320 MB in double precision."""
    rng = np.random.default_rng(5)
    queries, points = rng.normal(size=(2_000, 40)), rng.normal(size=(20_000, 40))
    tracemalloc.start()
    nearest_distances(queries, points)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 130e6


def test_rows_beyond_the_square_of_a_float_are_refused() -> None:
    with pytest.raises(ValueError, match="1e145 at most"):
        nearest_distances(np.array([[1e200]]), np.array([[0.0]]))


def test_matching_thins_the_larger_side_only() -> None:
    first, second = np.arange(30.0)[:, None], np.arange(100.0, 120.0)[:, None]
    thinned, kept = matched(first, second, seed=1)
    assert (kept == second).all()
    assert len(thinned) == 20
    assert set(thinned[:, 0]) < set(first[:, 0])
