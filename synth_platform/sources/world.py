"""The virtual world of 8-1 §3.7: a population with known truth, from which any number of rows can be drawn.

A world is a set of constants drawn once from its seed. Person i of subtype y has 4 shared factors f_i ~ N(M[y], I), 2
factors g_i ~ N(0, I) per modality, and a standardised value of every omics feature, of unit variance within a subtype:

    s_i = A[y] + L (f_i - M[y]) + P g_i + e_i,      measured on batch b as  location[b] + scale[b] * s_i

Batches are independent of subtype. Survival is exponential, its log hazard linear in f and y. The public population
shares loadings, batches and clinical mechanism with the private one; its contrast A, means M, hazards and prevalences
are shifted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SUBTYPES = 3
SHARED_FACTORS = 4
SUBTYPE_FACTORS = 2  # of the shared ones: those whose mean depends on the subtype in the private population
MODALITY_FACTORS = 2

# Tuned so that the real arm is, on average over worlds, near the figures of 8-1 §3.7 (AUROC .908, C-index .721,
# macro-F1 .733, Spearman .958) and the variance shares of 8-1 §1.2 (batch .157, subtype .131): a statistical test pins
# them.
PREVALENCE = np.array([0.48, 0.33, 0.19])
SEPARATION = 2.1  # root mean square Mahalanobis distance between two subtypes, omics only
UNCARRIED_SHARE = 0.05  # share of the squared separation that does not run through shared factors
COMMUNALITY = (0.80, 0.95)  # variance share of the shared factors, per feature
BATCH_LOCATION_SD = 0.6
BATCH_LOG_SCALE_SD = 0.12
LOG_HAZARD_SD = 0.98
MEDIAN_SURVIVAL = 1200.0  # days, at the average log hazard
MEDIAN_DROPOUT = 1800.0  # days, independent of everything else
STUDY_END = 3650.0  # days
SHIFTED_HAZARD_RATIO = 2.0  # public over private baseline hazard at a shift of 1


@dataclass(frozen=True)
class Population:
    """Who is in a cohort: everything that a shift may change.

    prevalence [3]; contrast A [3, p]; factor_means M [3, 4]; hazard_factors [4] and hazard_subtypes [3] make the log
    hazard relative to baseline_hazard (per day).
    """

    prevalence: FloatArray
    contrast: FloatArray
    factor_means: FloatArray
    hazard_factors: FloatArray
    hazard_subtypes: FloatArray
    baseline_hazard: float


@dataclass(frozen=True)
class World:
    """What the world seed fixes: L [p, 4], P [p, 4], noise_sd, level and spread [p], batch effects [batches, p]."""

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
    """People: subtype and batch [n], omics [n, p] on each feature's log scale, clinical columns [n].

    stage is 0..3 or -1 = missing; marker is NaN where missing; time is whole days, > 0.
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
    """Draw a world of `expression` + `methylation` features and `batches` batches; `public_shift` in [0, 1]."""
    rng = np.random.default_rng([seed, 0])
    features = expression + methylation
    communality = rng.uniform(*COMMUNALITY, features)
    own_share = rng.uniform(0.1, 0.5, features) * (1 - communality)
    shared = np.sqrt(communality)[:, None] * _directions(rng, features)
    modality = np.zeros((features, 2 * MODALITY_FACTORS))
    own = np.sqrt(own_share)[:, None] * _unit_rows(rng.standard_normal((features, MODALITY_FACTORS)))
    modality[:expression, :MODALITY_FACTORS] = own[:expression]
    modality[expression:, MODALITY_FACTORS:] = own[expression:]
    noise_sd = np.sqrt(1 - communality - own_share)
    location = rng.normal(0, BATCH_LOCATION_SD, (batches, features))
    private, public = _populations(
        rng, shared, shared @ shared.T + modality @ modality.T + np.diag(noise_sd**2), public_shift
    )
    return World(
        shared_loadings=shared,
        modality_loadings=modality,
        noise_sd=noise_sd,
        level=np.concatenate([rng.uniform(4, 9, expression), rng.uniform(-1.5, 1.5, methylation)]),
        spread=np.concatenate([rng.uniform(0.5, 1.0, expression), rng.uniform(0.4, 0.9, methylation)]),
        batch_location=location - location.mean(axis=0),
        batch_scale=np.exp(rng.normal(0, BATCH_LOG_SCALE_SD, (batches, features))),
        stage_weights=_unit_rows(rng.standard_normal((1, SHARED_FACTORS)))[0],
        marker_weights=_unit_rows(rng.standard_normal((1, SHARED_FACTORS)))[0],
        private=private,
        public=public,
    )


def draw(world: World, population: Population, rows: int, rng: np.random.Generator) -> Draw:
    """`rows` independent people of `population`."""
    batches, features = world.batch_location.shape
    subtype = rng.choice(SUBTYPES, size=rows, p=population.prevalence)
    batch = rng.integers(0, batches, size=rows)
    within = rng.standard_normal((rows, SHARED_FACTORS))
    factors = population.factor_means[subtype] + within
    standard = (
        population.contrast[subtype]
        + within @ world.shared_loadings.T
        + rng.standard_normal((rows, 2 * MODALITY_FACTORS)) @ world.modality_loadings.T
        + rng.standard_normal((rows, features)) * world.noise_sd
    )
    measured = world.batch_location[batch] + world.batch_scale[batch] * standard

    age = np.clip(np.round(60 + 8 * (0.8 * factors[:, 0] + rng.standard_normal(rows))), 18, 95)
    smoker = (0.6 * factors[:, 1] + rng.standard_normal(rows) > 0.5).astype(np.int64)
    stage = np.digitize(factors @ world.stage_weights + rng.standard_normal(rows), [-0.8, 0.6, 1.7]).astype(np.int64)
    marker = np.exp(3 + 0.6 * (factors @ world.marker_weights) + 0.5 * rng.standard_normal(rows))
    marker = np.clip(np.round(marker, 1), 0, 2000)
    # The stage of older people is recorded less often (missing at random given age); markers are lost at random.
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


def _directions(rng: np.random.Generator, features: int) -> FloatArray:
    """Unit loading directions [p, 4], spread from no subtype factor to nothing else, so that features rank."""
    share = rng.permutation(np.linspace(0, 1, features) ** 2)
    raw = rng.standard_normal((features, SHARED_FACTORS))
    return np.hstack(
        [
            np.sqrt(share)[:, None] * _unit_rows(raw[:, :SUBTYPE_FACTORS]),
            np.sqrt(1 - share)[:, None] * _unit_rows(raw[:, SUBTYPE_FACTORS:]),
        ]
    )


def _populations(
    rng: np.random.Generator, shared: FloatArray, covariance: FloatArray, shift: float
) -> tuple[Population, Population]:
    """The private population, and the public one at `shift` from it.

    The contrast is made and turned in whitened space. There its Frobenius norm is the root mean square Mahalanobis
    distance between two of the three subtypes, so that every world, and its public population, is equally hard.
    """
    root = np.linalg.cholesky(covariance)
    corner = rng.uniform(0, 2 * np.pi) + 2 * np.pi * np.arange(SUBTYPES) / SUBTYPES
    means = np.zeros((SUBTYPES, SHARED_FACTORS))
    means[:, :SUBTYPE_FACTORS] = np.column_stack([np.cos(corner), np.sin(corner)])
    carried = np.linalg.solve(root, shared @ means.T).T
    size = SEPARATION / np.linalg.norm(carried)
    means *= np.sqrt(1 - UNCARRIED_SHARE) * size
    contrast = _turn(rng, size * carried, np.arcsin(np.sqrt(UNCARRIED_SHARE)))
    hazard = rng.standard_normal((1, SHARED_FACTORS + SUBTYPES))
    hazard[:, SHARED_FACTORS:] *= 0.5
    return (
        _population(PREVALENCE, contrast @ root.T, means, hazard[0], 1.0),
        _population(
            PREVALENCE ** (1 - shift),
            _turn(rng, contrast, shift) @ root.T,
            _turn(rng, means, shift),
            _turn(rng, hazard, shift)[0],
            SHIFTED_HAZARD_RATIO**shift,
        ),
    )


def _population(
    weights: FloatArray, contrast: FloatArray, factor_means: FloatArray, hazard: FloatArray, ratio: float
) -> Population:
    """Scale the hazard weights to the stated spread of the log hazard over the population, and centre it."""
    prevalence = weights / weights.sum()
    of_subtype = factor_means @ hazard[:SHARED_FACTORS] + hazard[SHARED_FACTORS:]
    centre = prevalence @ of_subtype
    scale = LOG_HAZARD_SD / np.sqrt(np.sum(hazard[:SHARED_FACTORS] ** 2) + prevalence @ (of_subtype - centre) ** 2)
    return Population(
        prevalence=prevalence,
        contrast=contrast,
        factor_means=factor_means,
        hazard_factors=scale * hazard[:SHARED_FACTORS],
        hazard_subtypes=scale * (hazard[SHARED_FACTORS:] - centre),
        baseline_hazard=ratio * np.log(2) / MEDIAN_SURVIVAL,
    )


def _turn(rng: np.random.Generator, array: FloatArray, angle: float) -> FloatArray:
    """`array` turned by `angle` radians towards a random orthogonal one; norm and zero column means stay."""
    other = rng.standard_normal(array.shape)
    if len(other) == SUBTYPES:
        other -= other.mean(axis=0)
    other -= array * np.sum(other * array) / np.sum(array**2)
    other *= np.linalg.norm(array) / np.linalg.norm(other)
    return np.asarray(np.cos(angle) * array + np.sin(angle) * other)


def _unit_rows(array: FloatArray) -> FloatArray:
    return np.asarray(array / np.linalg.norm(array, axis=1, keepdims=True))
