import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.generators.postprocess import (
    clip_eigenvalues,
    fit_additive,
    fit_latent_model,
    from_upper_triangle,
)

BOUNDS = (0.05, 4.0)


def exact_statistics(rng, n, means, effects, covariance):
    """Statistics of n rows of a planted additive model with unequal cell sizes, without noise."""
    cells, groups = len(means), len(effects)
    where = rng.choice(cells * groups, size=n, p=rng.dirichlet(np.full(cells * groups, 5.0)))
    c, b = np.divmod(where, groups)
    z = means[c] + effects[b] + rng.multivariate_normal(np.zeros(means.shape[1]), covariance, size=n)
    counts = np.zeros((cells, groups))
    sums = np.zeros((cells, groups, means.shape[1]))
    np.add.at(counts, (c, b), 1)
    np.add.at(sums, (c, b), z)
    return counts, sums, (z.T @ z)[np.triu_indices(means.shape[1])]


def test_backfitting_is_weighted_least_squares():
    """Against the dummy-variable regression, on an unbalanced table with two empty combinations."""
    rng = np.random.default_rng(3)
    cell_means = rng.normal(size=(4, 3, 2))
    weights = rng.uniform(1, 50, size=(4, 3))
    weights[1, 2] = weights[3, 0] = 0
    means, effects = fit_additive(cell_means, weights)
    design = np.array([[*np.eye(4)[c], *np.eye(3)[b]] for c in range(4) for b in range(3)])
    root = np.sqrt(weights.ravel())[:, None]
    solution = np.linalg.lstsq(design * root, cell_means.reshape(12, 2) * root, rcond=None)[0]
    fitted = (means[:, None] + effects[None]).reshape(12, 2)
    occupied = weights.ravel() > 0
    assert fitted[occupied] == pytest.approx((design @ solution)[occupied], abs=1e-7)
    assert weights.sum(axis=0) @ effects == pytest.approx(np.zeros(2), abs=1e-7)


def test_a_planted_additive_model_is_recovered_at_large_n():
    """500,000 rows, no noise: standard errors are below .006 a coordinate, so .03 is five of them."""
    rng = np.random.default_rng(4)
    means = rng.normal(size=(6, 3))
    effects = rng.normal(size=(3, 3)) * 0.5
    covariance = np.array([[1.0, 0.4, 0.0], [0.4, 0.8, 0.2], [0.0, 0.2, 1.5]])
    counts, sums, moment = exact_statistics(rng, 500_000, means, effects, covariance)
    model = fit_latent_model(counts, sums, moment, eigenvalue_bounds=BOUNDS, count_floor=4.0)
    centre = counts.sum(axis=0) @ effects / counts.sum()
    assert model.means == pytest.approx(means + centre, abs=0.03)
    assert model.effects == pytest.approx(effects - centre, abs=0.03)
    assert model.covariance == pytest.approx(covariance, abs=0.03)
    assert model.weights == pytest.approx(counts.sum(axis=1) / 500_000)
    assert not model.fallback


def test_the_covariance_is_the_pooled_within_cell_covariance():
    """(M - sum N m m') / (N - cells) without noise is the textbook pooled estimate."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(200, 2))
    groups = rng.integers(4, size=200)
    counts = np.bincount(groups, minlength=4).reshape(4, 1).astype(float)
    sums = np.array([z[groups == g].sum(axis=0) for g in range(4)])[:, None, :]
    model = fit_latent_model(
        counts, sums, (z.T @ z)[np.triu_indices(2)], eigenvalue_bounds=(1e-6, 1e6), count_floor=1.0
    )
    pooled = sum((len(part) - 1) * np.cov(part.T) for part in (z[groups == g] for g in range(4))) / (200 - 4)
    assert model.covariance == pytest.approx(pooled)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10_000), scale=st.floats(1e-3, 1e3))
def test_clipped_covariance_is_positive_definite_and_keeps_its_axes(seed, scale):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(5, 5)) * scale
    matrix = matrix + matrix.T
    clipped = clip_eigenvalues(matrix, BOUNDS)
    assert np.linalg.eigvalsh(clipped) == pytest.approx(
        np.clip(np.linalg.eigvalsh(matrix), *BOUNDS), rel=1e-6, abs=1e-6
    )
    assert clipped @ matrix == pytest.approx(matrix @ clipped, rel=1e-6, abs=1e-5 * scale)


def test_a_covariance_inside_the_bounds_is_left_alone():
    matrix = np.array([[1.0, 0.3], [0.3, 2.0]])
    assert clip_eigenvalues(matrix, BOUNDS) == pytest.approx(matrix)


def test_all_counts_below_the_floor_fall_back_to_the_public_prior():
    """8-1 §2.2: zero means, unit covariance, uniform cells, whatever the sums say."""
    model = fit_latent_model(
        np.full((6, 3), 3.99), np.full((6, 3, 4), 1e6), np.full(10, -7.0), eigenvalue_bounds=BOUNDS, count_floor=4.0
    )
    assert model.fallback
    assert not model.means.any()
    assert np.array_equal(model.covariance, np.eye(4))
    assert model.weights == pytest.approx(np.full(6, 1 / 6))


def test_cells_below_the_floor_are_left_out_of_everything():
    """A cell of noise must not be sampled nor bend the others; a batch of noise has no effect."""
    counts = np.array([[50.0, 30.0, 2.0], [-8.0, 3.0, 1.0], [40.0, 60.0, -1.0]])
    sums = np.random.default_rng(6).normal(size=(3, 3, 2)) * 50
    moment = np.array([900.0, 10.0, 900.0])
    model = fit_latent_model(counts, sums, moment, eigenvalue_bounds=BOUNDS, count_floor=4.0)
    kept = fit_latent_model(
        counts[[0, 2]][:, :2], sums[[0, 2]][:, :2], moment, eigenvalue_bounds=BOUNDS, count_floor=4.0
    )
    assert model.weights == pytest.approx([80 / 180, 0, 100 / 180])
    assert model.means[[0, 2]] == pytest.approx(kept.means)
    assert model.covariance == pytest.approx(kept.covariance)
    assert not model.means[1].any()
    assert not model.effects[2].any()


def test_upper_triangle_is_read_row_by_row():
    assert from_upper_triangle(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 3).tolist() == [
        [1, 2, 3],
        [2, 4, 5],
        [3, 5, 6],
    ]
