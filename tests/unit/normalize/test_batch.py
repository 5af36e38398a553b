"""Batch correction against the formulas of 8-1 §1.2 written out one number at a time, and against its known limits."""

from __future__ import annotations

import json
from dataclasses import replace
from statistics import fmean, variance

import numpy as np
import pytest
from sklearn.feature_selection import f_classif

from synth_platform.normalize.batch import (
    BatchCorrection,
    batch_variance_ratio,
    fit_batch,
    shrink,
    variance_ratio,
)
from synth_platform.normalize.rows import EncodedRows

COLUMNS = np.arange(6)


def rows_of(sizes: tuple[int, ...], seed: int = 0, *, first_batch: int = 0, effect: float = 1.0) -> EncodedRows:
    """Six omics features and one other; batches of the given sizes with their own location and scale; labels 0..2."""
    rng = np.random.default_rng(seed)
    world = np.random.default_rng(7)
    shift, spread, contrast = (
        world.normal(0, 1, (9, 6)),
        np.exp(world.normal(0, 0.3, (9, 6))),
        world.normal(0, 1, (3, 6)),
    )
    batch = np.repeat(np.arange(first_batch, first_batch + len(sizes)), sizes)
    n = batch.size
    label = rng.integers(0, 3, n)
    signal = rng.standard_normal((n, 6)) + contrast[label]
    omics = effect * shift[batch] + signal * spread[batch] ** effect
    return EncodedRows(
        features=(*(f"g{j}" for j in range(6)), "age"),
        x=np.column_stack([omics, rng.standard_normal(n)]),
        label=label,
        event=rng.integers(0, 2, n),
        time=rng.exponential(1, n) + 0.1,
        batch=batch,
        split=np.full(n, "train"),
        key=np.array([f"P-{i:06d}" for i in range(n)]),
    )


def posterior_by_hand(z: list[list[float]]) -> tuple[list[float], list[float]]:
    """γ* and δ*² of one batch, feature by feature, in plain Python; z is [feature][row]."""
    n = len(z[0])
    estimates, variances = [fmean(column) for column in z], [variance(column) for column in z]
    prior_mean, tau2 = fmean(estimates), variance(estimates)
    m, s2 = fmean(variances), variance(variances)
    lam, theta = (2 * s2 + m**2) / s2, (m * s2 + m**3) / s2
    locations, spreads = [], []
    for column, estimate, start in zip(z, estimates, variances, strict=True):
        delta2 = start
        for _ in range(500):
            gamma = (n * tau2 * estimate + delta2 * prior_mean) / (n * tau2 + delta2)
            delta2 = (theta + sum((value - gamma) ** 2 for value in column) / 2) / (n / 2 + lam - 1)
        locations.append(gamma)
        spreads.append(delta2)
    return locations, spreads


@pytest.mark.parametrize("preserve", [False, True])
def test_adjusted_values_follow_the_formulas(preserve: bool) -> None:
    rows = rows_of((12, 20, 9))
    got = fit_batch(rows, columns=COLUMNS, minimum_batch=5, preserve_labels=preserve).apply(rows)
    expected = rows.x.copy()
    n = len(rows)
    design = [
        [float(b == k) for k in range(3)] + [float(preserve and c == k) for k in (1, 2)]
        for b, c in zip(rows.batch, rows.label, strict=True)
    ]
    z = np.empty((n, 6))
    centre, sigma = np.empty((n, 6)), np.empty(6)
    for j in range(6):
        coefficients = np.linalg.pinv(np.array(design)) @ rows.x[:, j]
        alpha = sum(np.mean(rows.batch == b) * coefficients[b] for b in range(3))
        residual = rows.x[:, j] - np.array(design) @ coefficients
        sigma[j] = np.sqrt(np.mean(residual**2))
        for i in range(n):
            centre[i, j] = alpha + sum(design[i][3 + k] * coefficients[3 + k] for k in range(2))
            z[i, j] = (rows.x[i, j] - centre[i, j]) / sigma[j]
    for b in range(3):
        members = np.flatnonzero(rows.batch == b)
        gamma, delta2 = posterior_by_hand(z[members].T.tolist())
        for j in range(6):
            for i in members:
                expected[i, j] = sigma[j] * (z[i, j] - gamma[j]) / np.sqrt(delta2[j]) + centre[i, j]
    np.testing.assert_allclose(got.x, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(got.x[:, 6], rows.x[:, 6])
    np.testing.assert_array_equal(got.time, rows.time)


def test_shrunken_values_lie_between_estimate_and_prior() -> None:
    """Few rows: the posterior is strictly between a feature's own estimate and the mean over features."""
    z = np.random.default_rng(3).normal(0.4, 1.2, (6, 30))
    location, spread = shrink(z)
    estimate, own = z.mean(axis=0), z.var(axis=0, ddof=1)
    assert (np.abs(location - estimate.mean()) < np.abs(estimate - estimate.mean())).all()
    assert np.var(spread**2) < 0.5 * np.var(own)


def test_large_batches_are_plainly_centred_and_scaled() -> None:
    """n → ∞: shrinkage vanishes as 1/n, and each batch gets the overall mean and pooled deviation of every feature."""
    rows = rows_of((40_000, 40_000))
    got = fit_batch(rows, columns=COLUMNS, minimum_batch=8).apply(rows).x[:, :6]
    pooled = np.sqrt(np.mean([rows.x[rows.batch == b, :6].var(axis=0) for b in (0, 1)], axis=0))
    for b in (0, 1):
        np.testing.assert_allclose(got[rows.batch == b].mean(axis=0), rows.x[:, :6].mean(axis=0), atol=1e-3)
        np.testing.assert_allclose(got[rows.batch == b].std(axis=0), pooled, rtol=1e-3)


def test_degenerate_priors_have_their_limits() -> None:
    """Equal variances: the prior is a point. No variation at all: a shift. Equal means: the common mean."""
    base = np.random.default_rng(1).standard_normal(10)
    z = np.column_stack([base, base + 3, -base])
    location, spread = shrink(z)
    np.testing.assert_allclose(spread, base.std(ddof=1))
    assert location[1] > location[0]
    location, spread = shrink(np.tile([1.0, 2.0, 4.0], (5, 1)))
    np.testing.assert_array_equal(location, [1, 2, 4])
    np.testing.assert_array_equal(spread, 1)
    centred = np.random.default_rng(2).standard_normal((8, 4))
    location, _ = shrink(centred - centred.mean(axis=0) + 0.5)
    np.testing.assert_allclose(location, 0.5)


def test_new_rows_of_known_batches_use_the_frozen_parameters_one_row_at_a_time() -> None:
    """Mode A: nothing of the new rows enters the parameters, so any subset gives the same values (a within-row map)."""
    correction = fit_batch(rows_of((30, 30, 30)), columns=COLUMNS, minimum_batch=8)
    fresh = rows_of((5, 2, 9), seed=1)
    whole = correction.apply(fresh)
    assert set(correction.modes(fresh)) == {"frozen"}
    for i in range(len(fresh)):
        np.testing.assert_array_equal(correction.apply_frozen(fresh.take(slice(i, i + 1))).x[0], whole.x[i])


def test_an_unseen_batch_is_aligned_by_itself_without_labels() -> None:
    """Mode B: after it the batch has the reference location and scale (up to shrinkage), whatever its labels say."""
    train = rows_of((200, 200))
    unseen = rows_of((400,), seed=5, first_batch=4)
    for preserve in (False, True):
        correction = fit_batch(train, columns=COLUMNS, minimum_batch=8, preserve_labels=preserve)
        assert set(correction.modes(unseen)) == {"aligned"}
        got = correction.apply(unseen)
        relabelled = correction.apply(replace(unseen, label=(unseen.label + 1) % 3))
        np.testing.assert_array_equal(got.x, relabelled.x)
        z = (unseen.x[:, :6] - train.x[:, :6].mean(axis=0)) / correction.plain_scale
        location, spread = (np.array(part) for part in posterior_by_hand(z.T.tolist()))
        expected = correction.plain_scale * (z - location) / np.sqrt(spread) + train.x[:, :6].mean(axis=0)
        np.testing.assert_allclose(got.x[:, :6], expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(correction.apply_frozen(unseen).x, unseen.x)


def test_small_and_undeclared_batches_stay_and_are_marked() -> None:
    train = rows_of((8, 20, 7))
    correction = fit_batch(train, columns=COLUMNS, minimum_batch=8)
    assert correction.batches == (0, 1)
    assert correction.skipped == (2,)
    mixed = replace(rows_of((3, 3, 7, 8, 7, 10)), batch=np.repeat([0, 1, 2, 5, 6, -1], [3, 3, 7, 8, 7, 10]))
    modes = correction.modes(mixed)
    expected = ["frozen", "frozen", "skipped", "aligned", "skipped", "undeclared"]
    assert modes.tolist() == np.repeat(expected, [3, 3, 7, 8, 7, 10]).tolist()
    changed = (correction.apply(mixed).x[:, :6] != mixed.x[:, :6]).any(axis=1)
    np.testing.assert_array_equal(changed, np.isin(modes, ["frozen", "aligned"]))


def test_without_a_usable_batch_nothing_changes() -> None:
    rows = rows_of((4, 3))
    correction = fit_batch(rows, columns=COLUMNS, minimum_batch=8, preserve_labels=True)
    large = rows_of((50,), first_batch=3)
    assert set(correction.modes(rows)) | set(correction.modes(large)) == {"skipped"}
    np.testing.assert_array_equal(correction.apply(large).x, large.x)
    again = BatchCorrection.from_document(json.loads(json.dumps(correction.to_document())))
    np.testing.assert_array_equal(again.apply(large).x, large.x)


def test_preserving_labels_keeps_a_contrast_that_batches_are_mixed_with() -> None:
    """Batch 0 is mostly label 0, batch 1 mostly label 1, no batch effect: the label-free fit eats the contrast."""
    rng = np.random.default_rng(4)
    n = 4000
    batch = np.repeat([0, 1], n // 2)
    label = (rng.random(n) < np.where(batch == 0, 0.2, 0.8)).astype(np.int64)
    plain = replace(rows_of((n,)), batch=batch, label=label)
    x = rng.standard_normal((n, 7))
    x[:, :6] += 2.0 * label[:, None] * np.array([1, -1, 1, -1, 1, -1])
    rows = replace(plain, x=x)

    def contrast(corrected: EncodedRows) -> float:
        means = [corrected.x[label == c, :6].mean(axis=0) for c in (0, 1)]
        return float(np.mean(np.abs(means[1] - means[0])))

    keep = fit_batch(rows, columns=COLUMNS, minimum_batch=8, preserve_labels=True)
    free = fit_batch(rows, columns=COLUMNS, minimum_batch=8)
    assert contrast(keep.apply(rows)) == pytest.approx(2.0, abs=0.1)
    assert contrast(free.apply(rows)) < 1.5


def test_confounded_labels_and_useless_minimum_are_refused() -> None:
    rows = rows_of((20, 20))
    with pytest.raises(ValueError, match="confounded"):
        fit_batch(replace(rows, label=rows.batch), columns=COLUMNS, minimum_batch=8, preserve_labels=True)
    with pytest.raises(ValueError, match="at least 2 rows"):
        fit_batch(rows, columns=COLUMNS, minimum_batch=1)
    with pytest.raises(ValueError, match="at least two features"):
        fit_batch(rows, columns=COLUMNS[:1], minimum_batch=8)
    with pytest.raises(ValueError, match="lack a feature"):
        fit_batch(rows, columns=COLUMNS, minimum_batch=8).apply(
            replace(rows, x=rows.x[:, 1:], features=rows.features[1:])
        )


def test_a_feature_without_variation_stays_and_others_are_found_by_name() -> None:
    rows = rows_of((20, 20))
    rows.x[:, 2] = 0.25
    correction = fit_batch(rows, columns=COLUMNS, minimum_batch=8)
    assert correction.features == ("g0", "g1", "g3", "g4", "g5")
    got = correction.apply(rows)
    np.testing.assert_array_equal(got.x[:, 2], 0.25)
    order = np.array([6, 4, 3, 2, 5, 1, 0])
    shuffled = replace(rows, x=rows.x[:, order], features=tuple(rows.features[j] for j in order))
    np.testing.assert_allclose(correction.apply(shuffled).x, got.x[:, order], rtol=1e-12)


@pytest.mark.parametrize("preserve", [False, True])
def test_the_document_restores_the_correction_bit_for_bit(preserve: bool) -> None:
    correction = fit_batch(rows_of((20, 20, 3)), columns=COLUMNS, minimum_batch=8, preserve_labels=preserve)
    again = BatchCorrection.from_document(json.loads(json.dumps(correction.to_document())))
    fresh = rows_of((5, 9, 8, 4), seed=2)
    np.testing.assert_array_equal(again.apply(fresh).x, correction.apply(fresh).x)
    assert again.modes(fresh).tolist() == correction.modes(fresh).tolist()


def test_variance_ratio_is_the_anova_share() -> None:
    """η² = F (g − 1) / (F (g − 1) + n − g) with scikit-learn's one-way F."""
    rows = rows_of((30, 40, 50))
    f, _ = f_classif(rows.x[:, :6], rows.batch)
    expected = np.mean(f * 2 / (f * 2 + 120 - 3))
    assert batch_variance_ratio(rows, COLUMNS) == pytest.approx(expected, rel=1e-12)
    flat = np.column_stack([rows.x[:, :6], np.ones(120)])
    assert variance_ratio(flat, rows.batch) == pytest.approx(expected, rel=1e-12)
