from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from synth_platform.generators.basis import fit_basis


def test_directions_are_the_principal_axes_of_the_public_rows(rows):
    public = rows(400, 1)
    basis = fit_basis(public, 3)
    pca = PCA(n_components=3).fit(public.x)
    assert np.abs(basis.directions.T @ pca.components_.T) == pytest.approx(np.eye(3), abs=1e-4)
    assert (basis.directions[np.abs(basis.directions).argmax(axis=0), [0, 1, 2]] > 0).all()  # signs are no accident
    assert basis.eigenvalues == pytest.approx(pca.explained_variance_, abs=1e-5)
    unexplained = public.x - pca.inverse_transform(pca.transform(public.x))
    assert basis.residual_sd == pytest.approx(unexplained.std(axis=0, ddof=1), abs=1e-4)


def test_latent_coordinates_of_the_public_rows_are_white_and_log_time_is_standardised(rows):
    public = rows(400, 1)
    z = fit_basis(public, 3).latent(public)
    assert z.shape == (400, 4)
    assert z.mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-4)
    assert np.cov(z[:, :3].T) == pytest.approx(np.eye(3), abs=1e-4)
    assert z[:, 3].std(ddof=1) == pytest.approx(1.0, abs=1e-4)


def test_all_directions_leave_no_residual(rows):
    assert fit_basis(rows(400, 1), 8).residual_sd == pytest.approx(np.zeros(8), abs=1e-3)


def test_too_many_directions_are_refused(rows):
    with pytest.raises(ValueError, match="latent = 9, but the 400 public rows span only 8 of 8"):
        fit_basis(rows(400, 1), 9)
    with pytest.raises(ValueError, match="span only 3 of 8"):
        fit_basis(rows(4, 1), 6)


def test_public_times_without_spread_are_refused(rows):
    with pytest.raises(ValueError, match="no spread in follow-up time"):
        fit_basis(replace(rows(50, 1), time=np.full(50, 30.0)), 2)


def test_a_time_of_zero_stays_finite(rows):
    public = rows(50, 1)
    basis = fit_basis(public, 2)
    early = replace(public, time=np.zeros(50))
    smallest = replace(public, time=np.full(50, public.time.min()))
    assert np.isfinite(basis.latent(early)).all()
    assert np.array_equal(basis.latent(early), basis.latent(smallest))


def test_digest_survives_the_last_bits_and_the_order_of_rows_but_no_real_change(rows):
    """Linear algebra of another machine must not turn a stored query into a new, paid one."""
    public = rows(400, 1)
    digest = fit_basis(public, 3).digest()
    rng = np.random.default_rng(0)
    wobbled = replace(public, x=public.x * (1 + 1e-13 * rng.standard_normal(public.x.shape)))
    assert fit_basis(wobbled, 3).digest() == digest
    assert fit_basis(public.take(rng.permutation(400)), 3).digest() == digest
    assert fit_basis(public.take(slice(399)), 3).digest() != digest
    assert fit_basis(public, 2).digest() != digest
    assert fit_basis(replace(public, time=public.time * 2), 3).digest() != digest
