"""The virtual world against what it says of itself: separation, angles, covariance, survival, in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.sources.world import (
    LOG_HAZARD_SD,
    SEPARATION,
    SHIFTED_HAZARD_RATIO,
    Population,
    World,
    draw,
    make_world,
)

SEEDS = st.integers(0, 2**63 - 1)
SHIFTS = st.floats(0, 1)
EXAMPLES = settings(deadline=None, max_examples=25)


def world(seed: int, shift: float = 0.3) -> World:
    return make_world(seed, expression=12, methylation=8, batches=3, public_shift=shift)


def covariance(w: World) -> np.ndarray:
    return (
        w.shared_loadings @ w.shared_loadings.T + w.modality_loadings @ w.modality_loadings.T + np.diag(w.noise_sd) ** 2
    )


@EXAMPLES
@given(SEEDS, SHIFTS)
def test_every_feature_has_unit_variance_within_a_subtype(seed: int, shift: float) -> None:
    assert np.diag(covariance(world(seed, shift))) == pytest.approx(np.ones(20))


@EXAMPLES
@given(SEEDS, SHIFTS)
def test_both_populations_are_as_separable_as_stated(seed: int, shift: float) -> None:
    """Root mean square Mahalanobis distance of the three pairs, by the inverse matrix rather than a Cholesky root."""
    w = world(seed, shift)
    precision = np.linalg.inv(covariance(w))
    for population in (w.private, w.public):
        pairs = [population.contrast[a] - population.contrast[b] for a, b in ((0, 1), (0, 2), (1, 2))]
        assert np.sqrt(np.mean([d @ precision @ d for d in pairs])) == pytest.approx(SEPARATION)


@EXAMPLES
@given(SEEDS, SHIFTS)
def test_public_means_and_hazards_are_turned_by_the_shift(seed: int, shift: float) -> None:
    w = world(seed, shift)
    precision = np.linalg.inv(covariance(w))
    a, b = w.private.contrast, w.public.contrast
    cosine = np.sum(a @ precision * b) / np.sqrt(np.sum(a @ precision * a) * np.sum(b @ precision * b))
    assert cosine == pytest.approx(np.cos(shift))
    m, n = w.private.factor_means, w.public.factor_means
    assert np.sum(m * n) / np.linalg.norm(m) / np.linalg.norm(n) == pytest.approx(np.cos(shift))
    assert w.public.baseline_hazard / w.private.baseline_hazard == pytest.approx(SHIFTED_HAZARD_RATIO**shift)
    odds = np.log(w.public.prevalence[0] / w.public.prevalence[2]) / np.log(
        w.private.prevalence[0] / w.private.prevalence[2]
    )
    assert odds == pytest.approx(1 - shift, abs=1e-12)


@EXAMPLES
@given(SEEDS, SHIFTS)
def test_log_hazards_are_centred_and_spread_as_stated(seed: int, shift: float) -> None:
    for p in _populations(world(seed, shift)):
        of_subtype = p.factor_means @ p.hazard_factors + p.hazard_subtypes
        mean = p.prevalence @ of_subtype
        variance = p.prevalence @ (of_subtype - mean) ** 2 + p.hazard_factors @ p.hazard_factors
        assert mean == pytest.approx(0, abs=1e-12)
        assert np.sqrt(variance) == pytest.approx(LOG_HAZARD_SD)


@EXAMPLES
@given(SEEDS)
def test_without_shift_both_populations_are_one(seed: int) -> None:
    private, public = _populations(world(seed, 0.0))
    for name in Population.__dataclass_fields__:
        np.testing.assert_allclose(getattr(private, name), getattr(public, name), rtol=0, atol=1e-12)


@EXAMPLES
@given(SEEDS, SHIFTS)
def test_the_shift_changes_nothing_of_the_private_world(seed: int, shift: float) -> None:
    one, two = world(seed, 0.0), world(seed, shift)
    for name in World.__dataclass_fields__:
        if name not in ("private", "public"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for name in Population.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one.private, name), getattr(two.private, name))


@pytest.mark.statistical
def test_drawn_rows_have_the_moments_of_the_world() -> None:
    """40,000 rows: z-scores of 3 prevalences, 3 batches x 3 subtypes, 60 means and 210 covariances stay below 5.

    False alarm below 2e-4 by the union of two-sided normal tails.
    """
    w, n = world(7), 40_000
    rows = draw(w, w.private, n, np.random.default_rng(1))
    shares = np.bincount(rows.subtype, minlength=3) / n
    p = w.private.prevalence
    assert np.all(np.abs(shares - p) < 5 * np.sqrt(p * (1 - p) / n))
    joint = np.histogram2d(rows.subtype, rows.batch, bins=3)[0] / n
    q = np.outer(p, np.full(3, 1 / 3))  # batches are even and independent of subtype
    assert np.all(np.abs(joint - q) < 5 * np.sqrt(q * (1 - q) / n))

    standard = ((rows.omics - w.level) / w.spread - w.batch_location[rows.batch]) / w.batch_scale[rows.batch]
    for k in range(3):
        mean = standard[rows.subtype == k].mean(axis=0)
        assert np.all(np.abs(mean - w.private.contrast[k]) < 5 / np.sqrt(np.sum(rows.subtype == k)))
    sigma = covariance(w)
    sample = np.cov(standard - w.private.contrast[rows.subtype], rowvar=False)
    assert np.all(np.abs(sample - sigma) < 5 * np.sqrt((1 + sigma**2) / n))


@pytest.mark.statistical
def test_survival_is_exponential_with_the_stated_hazard() -> None:
    """E[event - cumulative hazard at the end of follow-up] = 0 for any censoring that does not look ahead.

    The hazard of a person is not observable from omics, so the factors are drawn with no means and no subtype effect:
    a world with hazard weights zero has one hazard, log 2 / median. 40,000 rows, |z| < 5: false alarm 6e-7. Days are
    rounded up, half a day of 1,000, which moves z by less than .1.
    """
    w = world(3)
    flat = Population(
        prevalence=w.private.prevalence,
        contrast=w.private.contrast,
        factor_means=w.private.factor_means,
        hazard_factors=np.zeros(4),
        hazard_subtypes=np.array([0.0, 0.5, -0.5]),
        baseline_hazard=w.private.baseline_hazard,
    )
    rows = draw(w, flat, 40_000, np.random.default_rng(2))
    for k in range(3):
        of = rows.subtype == k
        expected = flat.baseline_hazard * np.exp(flat.hazard_subtypes[k]) * rows.time[of]
        residual = rows.event[of] - expected
        assert abs(residual.sum()) < 5 * np.sqrt(rows.event[of].sum()) + 0.5 * flat.baseline_hazard * 2 * of.sum()
    assert rows.time.min() >= 1
    assert rows.time.max() <= 3650


def _populations(w: World) -> tuple[Population, Population]:
    return w.private, w.public
