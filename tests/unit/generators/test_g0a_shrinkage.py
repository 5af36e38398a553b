"""The shrinkage has its limits, its closed form, and its price: never much worse than the better of two extremes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.generators.g0a.shrinkage import shrink, structures

WIDE = 1e3


def shift(seed: int, shape: tuple[int, int] = (12, 3)) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@given(seed=st.integers(0, 1000), responses=st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_without_noise_the_private_statistic_is_kept(seed, responses):
    y = shift(seed, (9, responses))
    posterior, _ = shrink(y, np.full_like(y, 1e-12), np.full_like(y, 0.01), widest=WIDE)
    np.testing.assert_allclose(posterior, y, atol=1e-6)


@given(seed=st.integers(0, 1000), responses=st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_with_noise_without_bound_the_public_value_is_kept(seed, responses):
    y = 1e3 * shift(seed, (9, responses))
    posterior, _ = shrink(y, np.full_like(y, 1e6), np.full_like(y, 0.01), widest=1.0)
    np.testing.assert_allclose(posterior, 0, atol=0.02)


def test_a_null_prior_is_the_pooling_of_public_and_private_estimates():
    """Without room for a shift: weight P / (P + S), the precision-weighted mean of two estimates of one number."""
    y, S, P = shift(1), np.abs(shift(2)) + 0.1, np.abs(shift(3)) + 0.1
    posterior, _ = shrink(y, S, P, widest=1e-12)
    np.testing.assert_allclose(posterior, P / (P + S) * y, rtol=1e-6)


@pytest.mark.parametrize("tau", [0.5, 2.0])
def test_dense_shifts_are_shrunk_as_the_normal_normal_model_says(tau):
    """b ~ N(0, tau^2), y ~ N(b, 1): the posterior mean is tau^2 / (1 + tau^2) y; 4000 coordinates fix tau to 5 %."""
    rng = np.random.default_rng(7)
    b = tau * rng.normal(size=(4000, 1))
    y = b + rng.normal(size=b.shape)
    posterior, _ = shrink(y, np.ones_like(y), np.full_like(y, 1e-9), widest=WIDE)
    ideal = tau**2 / (1 + tau**2) * y
    assert np.sqrt(np.mean((posterior - ideal) ** 2)) < 0.08 * np.sqrt(np.mean(y**2))


@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
def test_risk_is_near_the_better_of_ignoring_and_believing(share):
    """Null, sparse and dense truths: mean squared error at most the better extreme's (1.0 for y, b^2 for 0)."""
    rng = np.random.default_rng(11)
    b = 4 * rng.normal(size=(2000, 1)) * (rng.random((2000, 1)) < share)
    y = b + rng.normal(size=b.shape)
    posterior, _ = shrink(y, np.ones_like(y), np.full_like(y, 1e-9), widest=WIDE)
    risk = float(np.mean((posterior - b) ** 2))
    assert risk <= min(1.0, float(np.mean(b**2))) + 0.01
    if share == 0.05:
        assert risk < 0.35  # where both extremes (1.0 and 0.8) miss that few coordinates moved


def test_a_shift_shared_by_all_classes_is_estimated_from_all_of_them():
    """If every class moves alike, the estimate of one class borrows the others: error below a class on its own."""
    rng = np.random.default_rng(13)
    b = np.repeat(rng.normal(size=(400, 1)), 4, axis=1)
    y = b + rng.normal(size=b.shape)
    one = np.ones((400, 1))
    together, _ = shrink(y, np.ones_like(y), np.full_like(y, 1e-9), widest=WIDE)
    alone, _ = shrink(y[:, :1], one, 1e-9 * one, widest=WIDE)
    assert np.mean((together[:, 0] - b[:, 0]) ** 2) < 0.55 * np.mean((alone[:, 0] - b[:, 0]) ** 2)


def test_structures_are_covariances():
    for K in (1, 2, 5):
        for U in structures(K):
            np.testing.assert_allclose(U, U.T)
            assert np.linalg.eigvalsh(U).min() > -1e-12


def test_nothing_to_shrink_gives_nothing():
    posterior, null = shrink(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2)), widest=WIDE)
    assert posterior.shape == (0, 2)
    assert null == 1
