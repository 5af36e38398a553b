"""Densities of attack A3: kernel estimates against other libraries, the space of public rows, the exact log ratio."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gaussian_kde, multivariate_normal, norm, spearmanr
from sklearn.neighbors import KernelDensity

from synth_platform.evaluation.density import (
    SCOTT_MULTIPLES,
    leave_one_out_likelihoods,
    log_density,
    log_density_ratio,
    public_space,
)


def gaussian(n: int, p: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, p))


def scott_multiple(public: np.ndarray) -> float:
    space = public_space(public)
    return float(space.bandwidth / len(public) ** (-1 / (space.directions.shape[1] + 4)))


def test_kernel_density_equals_scikit_learn_and_scipy() -> None:
    rows, sample = gaussian(50, 3, 1), gaussian(80, 3, 2)
    ours = log_density(rows, sample, 0.4)
    theirs = KernelDensity(bandwidth=0.4, rtol=1e-12).fit(sample).score_samples(rows)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    # scipy's kernel has the covariance of the sample: in whitened coordinates it is ours.
    root = np.linalg.cholesky(np.cov(sample.T))
    white, white_rows = np.linalg.solve(root, sample.T), np.linalg.solve(root, rows.T)
    scipys = gaussian_kde(sample.T, bw_method=0.4).logpdf(rows.T) + np.log(np.linalg.det(root))
    np.testing.assert_allclose(log_density(white_rows.T, white.T, 0.4), scipys, atol=1e-9)


def test_a_row_at_any_distance_has_a_finite_density() -> None:
    """A density in the linear domain is 0 there and its logarithm -inf."""
    public = gaussian(100, 6, 1)
    far = np.array([1e1, 1e3, 1e6, 1e9])[:, None] * np.ones(6)
    assert np.isfinite(log_density(far, public, 0.5)).all()
    assert np.isfinite(log_density_ratio(far, gaussian(50, 6, 2), public)).all()


def test_blocks_do_not_change_the_density(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, sample = gaussian(57, 4, 1), gaussian(30, 4, 2)
    whole = log_density(rows, sample, 0.5)
    monkeypatch.setattr("synth_platform.evaluation.density._BLOCK_CELLS", 210)
    np.testing.assert_array_equal(log_density(rows, sample, 0.5), whole)


def test_leave_one_out_likelihood_equals_its_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constant left out is -log(n - 1) - (d/2) log(2 pi)."""
    rows, bandwidths = gaussian(30, 2, 1), (0.2, 0.7)

    def of(i: int, h: float) -> float:
        others = np.delete(rows, i, axis=0)
        return float(np.log(multivariate_normal(rows[i], h**2 * np.eye(2)).pdf(others).mean()))

    constant = np.log(29) + np.log(2 * np.pi)
    all_of_them = [np.mean([of(i, h) for i in range(30)]) + constant for h in bandwidths]
    np.testing.assert_allclose(leave_one_out_likelihoods(rows, bandwidths), all_of_them, atol=1e-9)
    monkeypatch.setattr("synth_platform.evaluation.density._BLOCK_CELLS", 100)
    np.testing.assert_allclose(leave_one_out_likelihoods(rows, bandwidths), all_of_them, atol=1e-9)
    monkeypatch.setattr("synth_platform.evaluation.density.MOST_ASKED", 10)
    third = [np.mean([of(i, h) for i in range(0, 30, 3)]) + constant for h in bandwidths]
    np.testing.assert_allclose(leave_one_out_likelihoods(rows, bandwidths), third, atol=1e-9)


def test_the_bandwidth_follows_clusters_and_not_copies() -> None:
    """Scott's bandwidth is near the best for one Gaussian; tight clusters want less. Public rows that all occur twice
    would want none at all, if a row's copy spoke for it.
    """
    one = gaussian(600, 2, 1)
    clusters = np.random.default_rng(2).integers(0, 6, size=(600, 2)) * 3.0 + 0.2 * gaussian(600, 2, 3)
    assert scott_multiple(one) >= 0.7
    assert scott_multiple(clusters) == min(SCOTT_MULTIPLES)
    assert scott_multiple(np.repeat(one, 2, axis=0)) >= 0.7


def test_public_rows_are_white_in_their_space() -> None:
    public = gaussian(300, 20, 1) @ gaussian(20, 20, 2) + 5
    space = public_space(public)
    assert space.directions.shape == (20, 12)
    np.testing.assert_allclose(np.cov(space.project(public).T), np.eye(12), atol=1e-9)
    leading = np.linalg.eigvalsh(np.cov(public.T))[::-1][:12]
    lengths = np.linalg.norm(space.directions, axis=0)
    np.testing.assert_allclose(1 / lengths**2, leading, rtol=1e-9)


@pytest.mark.parametrize(("n", "directions"), [(3, 1), (19, 1), (60, 6), (119, 11), (400, 12)])
def test_few_public_rows_fix_few_directions(n: int, directions: int) -> None:
    assert public_space(gaussian(n, 40, 1)).directions.shape[1] == directions


def test_constant_columns_and_copies_are_no_directions() -> None:
    public = np.zeros((200, 30))
    public[:, 7] = norm.ppf((np.arange(200) + 0.5) / 200)
    assert public_space(public).directions.shape == (30, 1)
    few = np.repeat(gaussian(3, 10, 1), 100, axis=0)
    assert public_space(few).directions.shape == (10, 2)
    rows = gaussian(20, 10, 2)
    assert np.isfinite(log_density_ratio(rows, few[:40], few)).all()


def test_rows_all_alike_and_rows_not_finite_are_refused() -> None:
    rows = gaussian(20, 4, 1)
    with pytest.raises(ValueError, match="rows of the public reference are alike"):
        log_density_ratio(rows, rows, np.ones((50, 4)))
    for place in range(3):
        sides = [rows.copy(), rows.copy(), rows.copy()]
        sides[place][3, 2] = np.nan
        with pytest.raises(ValueError, match="densities need finite rows"):
            log_density_ratio(*sides)


def test_two_gaussians_are_ranked_as_by_the_exact_ratio() -> None:
    """log N(x; m, I) - log N(x; 0, I) = m.x - |m|^2 / 2, here over 500 rows of both: rank correlation above .97.

    One-sided wrongs give less: without p_public .6, with the sign turned -.98.
    """
    shift = np.array([1.0, 0.5])
    synthetic, public = gaussian(4000, 2, 1) + shift, gaussian(4000, 2, 2)
    rows = np.concatenate([gaussian(250, 2, 3), gaussian(250, 2, 4) + shift])
    exact = rows @ shift - shift @ shift / 2
    assert spearmanr(log_density_ratio(rows, synthetic, public), exact).statistic > 0.97


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), p=st.integers(1, 8), n=st.integers(12, 60))
def test_the_order_of_rows_and_columns_does_not_matter(seed: int, p: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    rows, synthetic, public = (rng.normal(size=(k, p)) for k in (15, n, n + 3))
    scores = log_density_ratio(rows, synthetic, public)
    columns, order = rng.permutation(p), rng.permutation(15)
    again = log_density_ratio(
        rows[order][:, columns], rng.permutation(synthetic)[:, columns], rng.permutation(public)[:, columns]
    )
    np.testing.assert_allclose(again, scores[order], rtol=1e-7, atol=1e-7)
