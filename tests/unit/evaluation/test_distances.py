"""Nearest distances equal scipy's exhaustive ones, copies included, whatever the block size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from synth_platform.evaluation import distances
from synth_platform.evaluation.distances import matched, nearest_distances


@pytest.mark.parametrize("block_cells", [1, 500, 10**6])
@pytest.mark.parametrize("k", [1, 5, 90])
def test_equal_to_exhaustive_search(block_cells: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "_BLOCK_CELLS", block_cells)
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


def test_matching_thins_the_larger_side_only() -> None:
    first, second = np.arange(30.0)[:, None], np.arange(100.0, 120.0)[:, None]
    thinned, kept = matched(first, second, seed=1)
    assert (kept == second).all()
    assert len(thinned) == 20
    assert set(thinned[:, 0]) < set(first[:, 0])
