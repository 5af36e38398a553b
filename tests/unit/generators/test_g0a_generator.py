"""What G0A promises whatever the data: sensitivity, exact mu, only paid-for noise goes in, a model every time."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf

from synth_platform.contract.cohort_spec import load_cohort_spec
from synth_platform.contract.options import G0AOptions
from synth_platform.contract.tables import from_wide, split_public
from synth_platform.contract.validate import validate
from synth_platform.generators import registry
from synth_platform.generators.g0a.anchor import clip_rows, fit_anchor, shrunk_principal
from synth_platform.generators.g0a.generator import G0A
from synth_platform.generators.g0a.model import clip_slope, invert
from synth_platform.generators.g0a.statistics import MomentContribution
from synth_platform.generators.paid import ForeignStatisticError
from synth_platform.generators.protocol import PrivacyTarget
from synth_platform.normalize.reference import build_reference
from synth_platform.privacy.accounting import gaussian_epsilon
from synth_platform.privacy.row_independence import assert_row_independent
from synth_platform.sources.read import read_cohort

COHORT = Path(__file__).resolve().parents[3] / "cohorts" / "virtual"
DELTA = 1e-5
OPTIONS = G0AOptions()


@pytest.fixture(scope="module")
def spec():
    spec = load_cohort_spec(COHORT / "cohort.yaml")
    sizes = {"train": 400, "holdout": 0, "test": 0, "public": 400, "public_shift": 0.3}
    return spec.model_copy(update={"source": spec.source.model_copy(update={"options": spec.source.options | sizes})})


@pytest.fixture(scope="module")
def cohort(spec):
    public, private = split_public(read_cohort(spec, COHORT), spec)
    reference = build_reference(public, spec)
    return reference, reference.encoder.encode(private)


@pytest.fixture(scope="module")
def generator(cohort):
    return G0A(cohort[0], OPTIONS, PrivacyTarget(1.0, DELTA))


@pytest.fixture(scope="module")
def releases(generator, cohort, ask_noisily):
    return generator.measure(ask_noisily(cohort[1], 1))


@pytest.fixture(scope="module")
def state(generator, releases):
    return generator.fit(releases)


def all_queries(generator):
    asked = generator.queries()
    return asked if generator.anchor.moment is None else (*asked, generator._moment_query(generator.anchor.means))


def hostile(rows, seed):
    """Rows no cohort has: far out, at odd times, with undeclared labels and batches."""
    rng = np.random.default_rng(seed)
    n = len(rows)
    scale = 10.0 ** rng.integers(-3, 7, size=(n, 1))
    return replace(
        rows,
        x=scale * rng.normal(size=rows.x.shape),
        label=rng.integers(-1, 5, n),
        batch=rng.integers(-1, 3, n),
        time=10.0 ** rng.uniform(-3, 6, n),
        event=rng.integers(0, 2, n),
    )


@pytest.mark.parametrize("options", [OPTIONS, G0AOptions(moment_directions=0), G0AOptions(moment_directions=6)])
def test_no_row_contributes_more_than_the_sensitivity(cohort, options):
    generator = G0A(cohort[0], options, PrivacyTarget(1.0, DELTA))
    for rows in (cohort[1], hostile(cohort[1], 3)):
        for query in all_queries(generator):
            contribution = query.contribution(rows)
            assert contribution.shape == (len(rows), query.dimension)
            assert np.linalg.norm(contribution, axis=1).max() <= query.sensitivity * (1 + 1e-9)


def test_the_sensitivity_is_not_slack(generator, cohort):
    """Clip norms are public quantiles: half of the public rows reach them in the mean and the moment statistic."""
    for query in all_queries(generator):
        norm = np.linalg.norm(query.contribution(cohort[0].rows), axis=1)
        if not query.code.endswith("HAZARD"):  # bounded by the martingale residual as well
            assert np.mean(norm > 0.99 * query.sensitivity) >= 0.35


def test_every_contribution_is_within_row(generator, cohort):
    for query in all_queries(generator):
        assert_row_independent(query.contribution, cohort[1], np.random.default_rng(5))
        assert query.contribution(cohort[1].take(slice(0, 0))).shape == (0, query.dimension)


@pytest.mark.parametrize("moment", [0, 4])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
def test_the_mechanisms_compose_to_epsilon_exactly(cohort, epsilon, moment):
    """mu = sqrt(sum (sensitivity / sigma)^2) is the mu of (epsilon, delta): nothing over, nothing left."""
    generator = G0A(cohort[0], G0AOptions(moment_directions=moment), PrivacyTarget(epsilon, DELTA))
    mu = math.sqrt(sum((query.sensitivity / query.sigma) ** 2 for query in all_queries(generator)))
    assert gaussian_epsilon(mu, DELTA) == pytest.approx(epsilon, rel=1e-8)
    assert gaussian_epsilon(mu, DELTA) <= epsilon * (1 + 1e-10)


def test_fit_takes_its_own_paid_for_releases_and_nothing_else(generator, cohort, releases):
    other = G0A(cohort[0], OPTIONS, PrivacyTarget(2.0, DELTA))
    foreign = [
        cohort[1],
        list(releases),
        releases[:-1],
        releases[::-1],
        (replace(releases[0], values=releases[0].values[:-1]), *releases[1:]),
        (replace(releases[0], values=releases[0].values * np.nan), *releases[1:]),
        (replace(releases[0], entry_id=""), *releases[1:]),
        (releases[0].values, *releases[1:]),
    ]
    for thing in foreign:
        with pytest.raises(ForeignStatisticError):
            generator.fit(thing)
    with pytest.raises(ForeignStatisticError, match="sigma"):
        other.fit(releases)


def test_the_state_names_its_entries_and_its_seeded_noise(state, releases):
    assert state.entries == tuple(release.entry_id for release in releases)
    assert state.seeded
    assert state.unledgered == ()


def test_fit_and_sample_are_deterministic(generator, state, releases):
    again = generator.fit(releases)
    assert state.document == again.document
    for name, array in state.arrays.items():
        np.testing.assert_array_equal(array, again.arrays[name])
    a, b, c = (registry.sample(state, rows=50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.time, b.time)
    assert not np.array_equal(a.x, c.x)


def test_a_replay_asks_the_same_queries(cohort, ask_noisily):
    """A second generator made from the same public things asks what is on file already: same parameters, every one."""
    asked = []
    for _ in range(2):
        generator = G0A(cohort[0], OPTIONS, PrivacyTarget(1.0, DELTA))
        ask = ask_noisily(cohort[1], 1)
        asked.append([])

        def listen(query, ask=ask, heard=asked[-1]):
            heard.append((query.code, query.dimension, query.sensitivity, query.sigma, dict(query.parameters)))
            return ask(query)

        generator.measure(listen)
    assert asked[0] == asked[1]
    assert len({code for code, *_ in asked[0]}) == len(asked[0])


@pytest.mark.parametrize("rows", [1, 37, 500])
def test_a_table_passes_the_contract(state, cohort, spec, rows):
    """Codes are levels, missing cells are empty, times are positive: nothing is left for decoding to repair."""
    table = registry.sample(state, rows=rows, seed=3)
    encoder = cohort[0].encoder
    tables = from_wide(encoder.decode(table), spec)
    report = validate(tables, spec)
    assert report.rejections == ()
    again = encoder.encode(tables)
    coded = [j for j, name in enumerate(again.features) if name.split("__")[0] in ("smoker", "stage") or "__" in name]
    np.testing.assert_allclose(again.x[:, coded], table.x[:, coded], atol=1e-9)
    np.testing.assert_array_equal(again.event, table.event)


def test_an_empty_private_table_still_gives_a_usable_model(generator, cohort, ask_noisily):
    """All that is known then is noise: the model has to stay near the public rows and sample as ever."""
    state = generator.fit(generator.measure(ask_noisily(cohort[1].take(slice(0, 0)), 2)))
    assert all(np.isfinite(array).all() for array in state.arrays.values())
    assert np.abs(state.arrays["offset"]).max() < 0.5
    table = registry.sample(state, rows=300, seed=1)
    assert np.isfinite(table.x).all()
    assert (table.time > 0).all()


def test_without_budget_the_public_rows_come_back(cohort, ask_noisily):
    """epsilon -> 0: no shift survives, so omics values are public ones and classes as frequent as in public."""
    reference, private = cohort
    options = G0AOptions(smoothing=0.0)
    generator = G0A(reference, options, PrivacyTarget(1e-3, DELTA))
    state = generator.fit(generator.measure(ask_noisily(private, 4)))
    table = registry.sample(state, rows=400, seed=1)
    assert np.abs(state.arrays["offset"]).max() < 0.02
    assert np.abs(state.arrays["beta_shift"]).max() < 0.02
    share = np.bincount(reference.rows.label) / len(reference.rows)
    np.testing.assert_allclose(state.arrays["share"], share, atol=0.02)
    omics = reference.encoder.omics_columns
    nearest = np.abs(table.x[:, None, omics] - reference.rows.x[None, :, omics]).max(axis=2).min(axis=1)
    assert np.median(nearest) < 0.05


def test_options_that_do_not_add_up_are_refused(cohort):
    with pytest.raises(ValueError, match="shares"):
        G0A(cohort[0], G0AOptions(shares=(0.1, 0.2, 0.3, 0.1)), PrivacyTarget(1.0, DELTA))
    with pytest.raises(ValueError, match="1/n_ref"):
        G0A(cohort[0], OPTIONS, PrivacyTarget(1.0, 0.1))


def test_a_class_without_public_rows_borrows_donors(cohort, ask_noisily):
    reference, private = cohort
    reference = replace(reference, rows=reference.rows.take(reference.rows.label != 2))
    generator = G0A(reference, OPTIONS, PrivacyTarget(8.0, DELTA))
    table = registry.sample(generator.fit(generator.measure(ask_noisily(private, 6))), rows=300, seed=1)
    assert (table.label == 2).sum() > 20
    assert np.isfinite(table.x).all()


def test_public_rows_without_variation_are_refused(cohort):
    rows = cohort[0].rows.take(np.zeros(5, dtype=np.int64))
    with pytest.raises(ValueError, match="without variation"):
        fit_anchor(rows, 3, OPTIONS)


@pytest.mark.parametrize(("n", "p"), [(60, 12), (10, 30)])
def test_the_covariance_is_ledoit_wolf(n, p):
    """On the span of the rows; with fewer rows than features the rest of it is a multiple of the identity."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    rows -= rows.mean(axis=0)
    values, vectors = shrunk_principal(rows)
    peer = ledoit_wolf(rows, assume_centered=True)[0]
    assert len(values) == min(n - 1, p)
    np.testing.assert_allclose(peer @ vectors, vectors * values, atol=1e-9 * values[0])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-9)
    assert (np.diff(values) <= 0).all()


def test_the_clip_slope_is_the_derivative_of_the_clipped_mean():
    rows = np.random.default_rng(9).normal(size=(500, 6)) * [1, 2, 1, 0.5, 1, 1]
    slope = clip_slope(rows, 2.5)
    for j, e in enumerate(np.eye(6)):
        difference = clip_rows(rows + 1e-5 * e, 2.5) - clip_rows(rows - 1e-5 * e, 2.5)
        assert slope[j] == pytest.approx(difference.mean(axis=0)[j] / 2e-5, rel=1e-3)


def test_inversion_undoes_the_bias_of_clipping():
    rng = np.random.default_rng(10)
    rows, shift = rng.normal(size=(2000, 5)), np.array([1.5, -1.0, 0.0, 0.5, 0.0])

    def clipped(b):
        return clip_rows(rows + b, 2.0).mean(axis=0)

    slope = clip_slope(rows, 2.0)
    start = (clipped(shift) - clipped(np.zeros(5))) / slope
    assert np.abs(start - shift).max() > 0.1  # linearisation alone falls short
    np.testing.assert_allclose(invert(clipped, np.zeros(5), slope, start=start), shift, atol=1e-3)


def test_moment_products_have_the_norm_of_the_clipped_square(cohort):
    anchor = fit_anchor(cohort[0].rows, 3, G0AOptions(moment_directions=5))
    contribution = MomentContribution(anchor, anchor.means)
    u = clip_rows((cohort[1].x - anchor.means[cohort[1].label]) @ anchor.moment.project, anchor.moment.clip)
    np.testing.assert_allclose(np.linalg.norm(contribution(cohort[1]), axis=1), np.sum(u**2, axis=1))


def test_smoothing_keeps_the_residual_variance(generator, releases):
    """Two donors in the proportion sqrt(1 - s) : sqrt(s) have the variance of one; 12,000 rows fix it to 2 %."""
    state = generator.fit(releases)
    spread = [
        registry.sample(replace(state, document={**state.document, "smoothing": s}), rows=12_000, seed=1)
        .x[:, :20]
        .var()
        for s in (0.0, 0.4)
    ]
    assert spread[1] == pytest.approx(spread[0], rel=0.05)


def test_donors_are_used_evenly(state):
    """Without smoothing or shift a class of m public rows gives each of them once to m synthetic rows."""
    bare = {**state.arrays, "offset": np.zeros_like(state.arrays["offset"]), "moment.change": np.zeros((4, 4))}
    counts = np.bincount(state.arrays["donor.label"])
    bare["share"] = counts / counts.sum()
    even = replace(state, arrays=bare, document={**state.document, "smoothing": 0.0})
    table = registry.sample(even, rows=int(counts.sum()), seed=1)
    np.testing.assert_allclose(np.sort(table.x[:, 0]), np.sort(state.arrays["donor.x"][:, 0]), atol=1e-9)
