"""Tolerances of the closest-record gate, fixed from sizes and public rows before a synthetic table is seen (8-1 §3.4).

A tolerance must leave room for what chance does to a generator that leaks nothing. For the excess share that law is
exact and free of the world: given the training rows, the distances of holdout and of independent synthetic rows are
exchangeable, so the number of synthetic rows below the holdout's 5 % order statistic is beta-binomial. The share nearer
to training rows depends on how many synthetic rows share a neighbour, so its law is simulated from public rows.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import betabinom

from synth_platform.evaluation.closest_record import NEAR_SHARE
from synth_platform.evaluation.distances import nearest_distances
from synth_platform.evaluation.statistics import clopper_pearson_upper, six
from synth_platform.normalize.rows import EncodedRows

_SEED = 8_136


def excess_failure(synthetic_rows: int, holdout_rows: int, tolerance: float) -> float:
    """Probability that a generator which leaks nothing fails the excess share at `tolerance`, exactly."""
    rank = NEAR_SHARE * (holdout_rows - 1) + 1
    limit = six(NEAR_SHARE + tolerance)
    passing = [k for k in range(synthetic_rows) if six(clopper_pearson_upper(k, synthetic_rows)) <= limit]
    return float(betabinom.sf(max(passing, default=-1), synthetic_rows, rank, holdout_rows + 1 - rank))


def excess_tolerance(synthetic_rows: int, holdout_rows: int, false_alarm: float = 0.025) -> float:
    """The smallest tolerance, rounded up to three decimals, at which `excess_failure` is at most `false_alarm`."""
    rank = NEAR_SHARE * (holdout_rows - 1) + 1
    count = int(betabinom.ppf(1 - false_alarm, synthetic_rows, rank, holdout_rows + 1 - rank))
    return float(np.ceil((clopper_pearson_upper(count, synthetic_rows) - NEAR_SHARE) * 1000 - 1e-9) / 1000)


def train_closer_tolerance(
    public: EncodedRows, *, train_rows: int, synthetic_rows: int, worlds: int = 16, seed: int = _SEED
) -> float:
    """Mean + 2 standard deviations of the null excess over 1/2, + Clopper-Pearson half-width at 1/2 (8-1's rule).

    Each world draws `train_rows` training, as many holdout and `synthetic_rows` synthetic rows from the Gaussian with
    the public mean and covariance. Rounded up to three decimals.
    """
    rng = np.random.default_rng(seed)
    centred = public.x - public.x.mean(axis=0)
    shares = []
    for _ in range(worlds):
        # Random mixtures of public rows: Gaussian with exactly the public covariance, whatever its rank.
        train, holdout, synthetic = (
            rng.normal(size=(rows, len(centred))) @ centred / np.sqrt(len(centred))
            for rows in (train_rows, train_rows, synthetic_rows)
        )
        to_train, to_holdout = nearest_distances(synthetic, train), nearest_distances(synthetic, holdout)
        shares.append(float((to_train < to_holdout).mean() + 0.5 * (to_train == to_holdout).mean()))
    half_width = clopper_pearson_upper(synthetic_rows / 2, synthetic_rows) - 0.5
    tolerance = float(np.mean(shares)) - 0.5 + 2 * float(np.std(shares, ddof=1)) + half_width
    return float(np.ceil(tolerance * 1000 - 1e-9) / 1000)
