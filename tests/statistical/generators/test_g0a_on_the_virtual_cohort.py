"""G0A on worlds of known truth: it keeps what public rows keep, and learns what only private rows know.

Tables are restored to native units and encoded again before they are judged. P = TSTR / TRTR of one endpoint. Seeds are
fixed, so a test fails only if the code changes; the false-alarm probabilities say how likely a fresh set of seeds would
fail, from the spread of the figures over other worlds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from synth_platform.contract.cohort_spec import load_cohort_spec
from synth_platform.contract.options import G0AOptions
from synth_platform.contract.tables import from_wide, split_public
from synth_platform.evaluation.utility import score_table
from synth_platform.generators import registry
from synth_platform.generators.controls import fit_control
from synth_platform.generators.g0a.generator import G0A
from synth_platform.generators.protocol import PrivacyTarget
from synth_platform.normalize.real_arm import correct_real_arm
from synth_platform.normalize.reference import build_reference, public_batch_map
from synth_platform.privacy.mechanisms import gaussian_sum
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.statistics import StatisticRelease
from synth_platform.sources.read import read_cohort
from synth_platform.sources.virtual import draw_fresh

pytestmark = pytest.mark.statistical

COHORT = Path(__file__).resolve().parents[3] / "cohorts" / "virtual"
WORLDS = (51, 52, 53, 54, 55)
ENDPOINTS = ("c_index", "macro_f1", "auroc", "spearman")
DELTA = 1e-5


def make_cohort(world, shift):
    spec = load_cohort_spec(COHORT / "cohort.yaml")
    options = spec.source.options | {"world_seed": world, "public_shift": shift}
    spec = spec.model_copy(update={"source": spec.source.model_copy(update={"options": options})})
    public, private = split_public(read_cohort(spec, COHORT), spec)
    reference = build_reference(public, spec)
    return spec, reference, reference.encoder.encode(private)


def seeded(private, seed):
    noise = SeededNoise(seed)

    def ask(query):
        values, step = gaussian_sum(
            query.contribution(private), sensitivity=query.sensitivity, sigma=query.sigma, noise=noise
        )
        return StatisticRelease(query.code, values, query.sensitivity, query.sigma, step, noise.source, "entry", "")

    return ask


def fit(reference, private, epsilon, seed=1, **options):
    generator = G0A(reference, G0AOptions(**options), PrivacyTarget(epsilon, DELTA))
    return generator.fit(generator.measure(seeded(private, seed)))


def preservation(epsilon, shift):
    """Mean P over five worlds and three sampling seeds, of G0A and of public rows alone: two arrays [4]."""
    ours, public = [], []
    for world in WORLDS:
        spec, reference, rows = make_cohort(world, shift)
        _, corrected = correct_real_arm(rows, reference, spec)
        test = corrected.where_split("test")
        real = score_table(corrected.where_split("train"), test, 3)
        states = (
            (ours, fit(reference, rows.where_split("train"), epsilon, seed=world)),
            (public, fit_control("S_PUBLIC", reference=reference)),
        )
        for found, state in states:
            for seed in (1, 2, 3):
                wide = reference.encoder.decode(registry.sample(state, rows=spec.synthetic.rows, seed=seed))
                table = score_table(reference.encoder.encode(from_wide(wide, spec)), test, 3)
                found.append([table[name] / real[name] for name in ENDPOINTS])
    return np.mean(ours, axis=0), np.mean(public, axis=0)


@pytest.mark.parametrize(("epsilon", "shift"), [(1.0, 0.0), (1.0, 0.3), (2.0, 0.7)])
def test_four_endpoints_are_preserved(epsilon, shift):
    """All four P >= .95 (false alarm < .01), and where public rows fall short of that, more than they preserve."""
    ours, public = preservation(epsilon, shift)
    assert (ours >= 0.95).all()
    assert (ours >= public - 0.01).all()
    if shift == 0.7:
        assert (ours - public)[1:].min() > 0.03


def fresh(spec, reference, rows):
    return reference.encoder.encode(draw_fresh(spec, rows, 7))


def test_a_planted_shift_is_recovered_where_noise_is_small():
    """5,000 private rows, epsilon 100: class means, shares, hazards and event rate of the table are the private ones.

    Sampling error of a class mean of about 1,500 rows is .026 a feature; false alarm < .001.
    """
    spec, reference, _ = make_cohort(51, 0.7)
    private = fresh(spec, reference, 5000)
    corrected = public_batch_map(reference)(private)
    table = registry.sample(fit(reference, private, 100.0), rows=5000, seed=1)
    np.testing.assert_allclose(np.bincount(table.label), np.bincount(private.label), atol=100)
    for c in range(3):
        public, ours, true = (r.x[r.label == c].mean(axis=0) for r in (reference.rows, table, corrected))
        assert np.linalg.norm(ours - true) < 0.25 * np.linalg.norm(public - true)
    assert abs(table.event.mean() - private.event.mean()) < 0.03
    assert abs(np.median(table.time) / np.median(private.time) - 1) < 0.08


def test_a_planted_covariance_is_recovered_by_the_moment():
    """Private residuals stretched 1.6 times along the leading direction: the table's variance there follows."""
    spec, reference, _ = make_cohort(52, 0.0)
    private = fresh(spec, reference, 5000)
    generator = G0A(reference, G0AOptions(moment_directions=4), PrivacyTarget(100.0, DELTA))
    anchor = generator.anchor
    lead = (private.x - anchor.means[private.label]) @ anchor.moment.project[:, :1] @ anchor.moment.restore[:1]
    private.x[:] += 0.6 * lead
    corrected = public_batch_map(reference)(private)
    table = registry.sample(generator.fit(generator.measure(seeded(private, 1))), rows=5000, seed=1)

    def variances(rows):
        means = np.stack([rows.x[rows.label == c].mean(axis=0) for c in range(3)])
        return ((rows.x - means[rows.label]) @ anchor.moment.project).var(axis=0)

    public, ours, true = variances(reference.rows), variances(table), variances(corrected)
    assert true[0] > 2 * public[0]
    assert abs(ours[0] / true[0] - 1) < 0.15


def test_where_public_and_private_agree_noise_does_not_cost():
    """Shift 0, epsilon .2: omics class means of the model are as near the truth as the public ones.

    Mean squared error over five worlds, relative to public means: 1.00 +- .04 over other worlds; false alarm < .01.
    """
    ratios = []
    for world in WORLDS:
        spec, reference, rows = make_cohort(world, 0.0)
        omics = reference.encoder.omics_columns
        truth = public_batch_map(reference)(fresh(spec, reference, 20_000))
        true = np.stack([truth.x[truth.label == c].mean(axis=0) for c in range(3)])
        arrays = fit(reference, rows.where_split("train"), 0.2, seed=world).arrays
        public, shift = (arrays["means"] - true)[:, omics], arrays["offset"][:, omics]
        ratios.append(np.sum((public + shift) ** 2) / np.sum(public**2))
    assert np.mean(ratios) < 1.1
