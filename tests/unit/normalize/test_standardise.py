"""L1 against scikit-learn, with the missing cell, the floor and the column that has no public scale."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from synth_platform.normalize.standardise import Standardisation, fit_standardisation


def public_rows(n: int = 50, p: int = 7) -> np.ndarray:
    rng = np.random.default_rng(2)
    values = rng.normal(5, 3, (n, p)) * rng.uniform(0.5, 4, p)
    values[rng.random((n, p)) < 0.15] = np.nan
    return values


def test_mean_and_scale_agree_with_scikit_learn_on_observed_cells() -> None:
    """scikit-learn also skips NaN but divides by n where we divide by n − 1."""
    public = public_rows()
    fitted = fit_standardisation(public, np.zeros(7), tuple("abcdefg"))
    peer = StandardScaler().fit(public)
    n = (~np.isnan(public)).sum(axis=0)
    np.testing.assert_allclose(fitted.mean, peer.mean_, rtol=1e-12)
    np.testing.assert_allclose(fitted.scale, peer.scale_ * np.sqrt(n / (n - 1)), rtol=1e-12)


def test_missing_becomes_zero_and_the_rest_comes_back() -> None:
    public = public_rows()
    fitted = fit_standardisation(public, np.zeros(7), tuple("abcdefg"))
    standardised = fitted.apply(public)
    hole = np.isnan(public)
    assert (standardised[hole] == 0).all()
    np.testing.assert_allclose(fitted.invert(standardised)[~hole], public[~hole], rtol=1e-12)
    np.testing.assert_allclose(fitted.invert(standardised)[hole], np.broadcast_to(fitted.mean, hole.shape)[hole])


def test_a_column_without_public_variation_is_scaled_by_its_floor() -> None:
    public = np.column_stack([np.full(9, 4.0), np.arange(9.0)])
    fitted = fit_standardisation(public, np.array([0.5, 0.5]), ("flat", "rising"))
    np.testing.assert_allclose(fitted.apply(np.array([[5.0, 4.0]])), [[2.0, 0.0]])
    assert fitted.scale[1] > 2


def test_a_column_with_one_public_value_is_named() -> None:
    public = np.array([[1.0, np.nan], [2.0, 0.5]])
    with pytest.raises(ValueError, match="sparse: fewer than two"):
        fit_standardisation(public, np.zeros(2), ("dense", "sparse"))


@pytest.mark.parametrize("scale", [[0.0], [-1.0], [np.inf], [1.0, 1.0]])
def test_unusable_parameters_are_refused(scale: list[float]) -> None:
    with pytest.raises(ValueError, match="scale"):
        Standardisation(np.zeros(1), np.array(scale))
