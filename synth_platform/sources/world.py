"""The virtual world of 8-1 §3.7: a population with known truth, from which any number of rows can be drawn.

A world is a set of constants drawn once from its seed. Within a subtype every standardised omics feature has unit
variance, made of 4 shared factors, 2 factors of its own modality, and noise of its own:

    s_i = L f_i + P g_i + D[y_i] + e_i,    f_i ~ N(M[y_i], I_4),   g_i ~ N(0, I),   v_i = location[b_i] + scale[b_i] * s_i

Batches are independent of subtype. Survival is exponential with log hazard linear in (f, y). The public population
shares loadings, platforms and clinical mechanism with the private one, but not its subtype means, prevalences and hazards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SUBTYPES = 3
SHARED_FACTORS = 4
MODALITY_FACTORS = 2

# Tuned so that the real arm is near AUROC .908, C-index .721, macro-F1 .733, Spearman .958 (8-1 §3.7) on average over
# worlds; tests/statistical/sources pins it. The batch effect follows the variance share .157 of 8-1 §1.2.
PREVALENCE = np.array([0.44, 0.33, 0.23])
SEPARATION = 2.2  # root mean square Mahalanobis distance between two subtypes, omics only
MARKER_SHARE = 0.3  # share of the subtype contrast that no shared factor carries
LOG_HAZARD_SD = 1.0  # standard deviation of the log hazard over the private population
BATCH_LOCATION_SD = 0.5
BATCH_LOG_SCALE_SD = 0.12
MEDIAN_SURVIVAL = 1200.0  # days, at the average log hazard
MEDIAN_DROPOUT = 1800.0  # days to loss of follow-up, independent of everything else
STUDY_END = 3650.0  # days
# A shift of 1 turns the subtype means by a right angle, doubles the baseline hazard and reverses the order of prevalences.
FULL_TURN = np.pi / 2
FULL_HAZARD_RATIO = 2.0


@dataclass(frozen=True)
class Population:
    """Who is in a cohort: what public and private rows do not share when the public cohort is shifted.

    prevalence [3]; factor_means M [3, 4]; marker_means D [3, p]; hazard_factors [4] and hazard_subtypes [3] give the log
    hazard relative to the baseline (per day).
    """

    prevalence: FloatArray
    factor_means: FloatArray
    marker_means: FloatArray
    hazard_factors: FloatArray
    hazard_subtypes: FloatArray
    baseline_hazard: float


@dataclass(frozen=True)
class World:
    """Everything that is fixed by the world seed: loadings [p, .], noise_sd [p], batch effects [batches, p], populations."""

    shared_loadings: FloatArray
    modality_loadings: FloatArray
    noise_sd: FloatArray
    level: FloatArray
    spread: FloatArray
    batch_location: FloatArray
    batch_scale: FloatArray
    stage_weights: FloatArray
    marker_weights: FloatArray
    private: Population
    public: Population


@dataclass(frozen=True)
class Draw:
    """`n` people: subtype [n], batch [n], omics [n, p] on the log scale of each feature, clinical columns [n].

    stage is 0..3, -1 = missing; marker is NaN where missing; time is in days, > 0.
    """

    subtype: IntArray
    batch: IntArray
    omics: FloatArray
    age: FloatArray
    smoker: IntArray
    stage: IntArray
    marker: FloatArray
    time: FloatArray
    event: IntArray


def make_world(seed: int, *, expression: int, methylation: int, batches: int, public_shift: float) -> World:
    """Draw a world: `expression` + `methylation` features, `batches` platforms, a public cohort shifted by [0, 1]."""
    rng = np.random.default_rng([seed, 0])
    features = expression + methylation
    communality = rng.uniform(0.1, 0.8, features)
    own_share = rng.uniform(0.1, 0.5, features) * (1 - communality)
    shared = np.sqrt(communality)[:, None] * _unit_rows(rng.standard_normal((features, SHARED_FACTORS)))
    own = np.sqrt(own_share)[:, None] * _unit_rows(rng.standard_normal((features, MODALITY_FACTORS)))
    modality = np.zeros((features, 2 * MODALITY_FACTORS))
    modality[:expression, :MODALITY_FACTORS] = own[:expression]
    modality[expression:, MODALITY_FACTORS:] = own[expression:]
    noise_sd = np.sqrt(1 - communality - own_share)
    location = rng.normal(0, BATCH_LOCATION_SD, (batches, features))
    level = np.concatenate([rng.uniform(4, 9, expression), rng.uniform(-1.5, 1.5, methylation)])
    spread = np.concatenate([rng.uniform(0.5, 1.0, expression), rng.uniform(0.4, 0.9, methylation)])
    private, public = _populations(rng, shared, modality, noise_sd, public_shift)
    return World(
        shared_loadings=shared,
        modality_loadings=modality,
        noise_sd=noise_sd,
        level=level,
        spread=spread,
        batch_location=location - location.mean(axis=0),
        batch_scale=np.exp(rng.normal(0, BATCH_LOG_SCALE_SD, (batches, features))),
        stage_weights=_unit_rows(rng.standard_normal((1, SHARED_FACTORS)))[0],
        marker_weights=_unit_rows(rng.standard_normal((1, SHARED_FACTORS)))[0],
        private=private,
        public=public,
    )


def draw(world: World, population: Population, rows: int, rng: np.random.Generator) -> Draw:
    """Draw `rows` independent people of `population`."""
    batches, features = world.batch_location.shape
    subtype = rng.choice(SUBTYPES, size=rows, p=population.prevalence)
    batch = rng.integers(0, batches, size=rows)
    factors = population.factor_means[subtype] + rng.standard_normal((rows, SHARED_FACTORS))
    standard = (
        factors @ world.shared_loadings.T
        + rng.standard_normal((rows, 2 * MODALITY_FACTORS)) @ world.modality_loadings.T
        + population.marker_means[subtype]
        + rng.standard_normal((rows, features)) * world.noise_sd
    )
    measured = world.batch_location[batch] + world.batch_scale[batch] * standard

    age = np.clip(np.round(60 + 9 * (0.4 * factors[:, 0] + rng.standard_normal(rows))), 18, 95)
    smoker = (rng.random(rows) < 0.35).astype(np.int64)
    burden = factors @ world.stage_weights + rng.standard_normal(rows)
    stage = np.digitize(burden, [-0.8, 0.6, 1.7]).astype(np.int64)
    marker = np.clip(
        np.round(np.exp(3 + 0.6 * (factors @ world.marker_weights) + 0.5 * rng.standard_normal(rows)), 1), 0, 2000
    )
    # Stage is recorded less often for the old (missing at random given age); the marker is lost completely at random.
    stage[rng.random(rows) < 0.05 + 0.10 * (age > 68)] = -1
    marker[rng.random(rows) < 0.12] = np.nan

    log_hazard = factors @ population.hazard_factors + population.hazard_subtypes[subtype]
    survival = rng.exponential(1 / (population.baseline_hazard * np.exp(log_hazard)))
    censoring = np.minimum(rng.exponential(MEDIAN_DROPOUT / np.log(2), rows), STUDY_END)
    return Draw(
        subtype=subtype.astype(np.int64),
        batch=batch.astype(np.int64),
        omics=world.level + world.spread * measured,
        age=age,
        smoker=smoker,
        stage=stage,
        marker=marker,
        time=np.maximum(np.ceil(np.minimum(survival, censoring)), 1.0),
        event=(survival <= censoring).astype(np.int64),
    )


def _populations(
    rng: np.random.Generator, shared: FloatArray, modality: FloatArray, noise_sd: FloatArray, shift: float
) -> tuple[Population, Population]:
    """The private population and the public one, turned away from it by `shift` of a right angle."""
    covariance = shared @ shared.T + modality @ modality.T + np.diag(noise_sd**2)
    angle = shift * FULL_TURN
    means, markers = _contrast(rng, SHARED_FACTORS), _contrast(rng, len(noise_sd))
    turned_means, turned_markers = _turn(rng, means, angle), _turn(rng, markers, angle)
    hazard = np.concatenate([rng.standard_normal(SHARED_FACTORS), 0.5 * rng.standard_normal(SUBTYPES)])
    turned_hazard = _turn(rng, hazard[None, :], angle)[0]
    prevalence = PREVALENCE ** (1 - 2 * shift)
    return (
        _population(PREVALENCE, means, markers, hazard, 1.0, shared, covariance),
        _population(
            prevalence / prevalence.sum(),
            turned_means,
            turned_markers,
            turned_hazard,
            FULL_HAZARD_RATIO**shift,
            shared,
            covariance,
        ),
    )


def _population(
    prevalence: FloatArray,
    means: FloatArray,
    markers: FloatArray,
    hazard: FloatArray,
    hazard_ratio: float,
    shared: FloatArray,
    covariance: FloatArray,
) -> Population:
    """Scale random directions to the stated separation and hazard spread, so that every world is equally hard."""
    means = means / np.sqrt(np.mean((means @ shared.T) ** 2))
    contrast = np.sqrt(1 - MARKER_SHARE) * means @ shared.T + np.sqrt(MARKER_SHARE) * markers
    pairs = np.array([contrast[a] - contrast[b] for a in range(SUBTYPES) for b in range(a)])
    size = SEPARATION / np.sqrt(np.mean(np.sum(pairs * np.linalg.solve(covariance, pairs.T).T, axis=1)))
    factor_means = size * np.sqrt(1 - MARKER_SHARE) * means

    by_subtype = factor_means @ hazard[:SHARED_FACTORS] + hazard[SHARED_FACTORS:]
    centre = prevalence @ by_subtype
    variance = np.sum(hazard[:SHARED_FACTORS] ** 2) + prevalence @ (by_subtype - centre) ** 2
    scale = LOG_HAZARD_SD / np.sqrt(variance)
    return Population(
        prevalence=prevalence,
        factor_means=factor_means,
        marker_means=size * np.sqrt(MARKER_SHARE) * markers,
        hazard_factors=scale * hazard[:SHARED_FACTORS],
        hazard_subtypes=scale * (hazard[SHARED_FACTORS:] - centre),
        baseline_hazard=hazard_ratio * np.log(2) / MEDIAN_SURVIVAL,
    )


def _contrast(rng: np.random.Generator, columns: int) -> FloatArray:
    """Random subtype means [3, columns] around zero, of mean square 1."""
    means = rng.standard_normal((SUBTYPES, columns))
    means -= means.mean(axis=0)
    return np.asarray(means / np.sqrt(np.mean(means**2)))


def _turn(rng: np.random.Generator, array: FloatArray, angle: float) -> FloatArray:
    """`array` turned by `angle` in a random plane that contains it; its norm and zero column means stay."""
    other = rng.standard_normal(array.shape)
    if array.shape[0] > 1:
        other -= other.mean(axis=0)
    other -= array * np.sum(other * array) / np.sum(array**2)
    other *= np.sqrt(np.sum(array**2) / np.sum(other**2))
    return np.asarray(np.cos(angle) * array + np.sin(angle) * other)


def _unit_rows(array: FloatArray) -> FloatArray:
    return np.asarray(array / np.linalg.norm(array, axis=1, keepdims=True))
