"""The share nearer to training rows is unbiased, with the spread that chance gives, whatever the law of the columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.neighbors import NearestNeighbors

from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.closest_record import closest_record_gate
from synth_platform.normalize.rows import EncodedRows
from synth_platform.normalize.standardise import fit_standardisation

pytestmark = pytest.mark.statistical
WORLDS, ROWS, COLUMNS = 200, 200, 8


def rows(x: np.ndarray) -> EncodedRows:
    n, zeros = len(x), np.zeros(len(x), np.int64)
    names = tuple(f"f{j}" for j in range(x.shape[1]))
    return EncodedRows(names, x, zeros, zeros, np.ones(n), zeros, np.full(n, "train"), np.full(n, "K"))


def chance(train: np.ndarray, holdout: np.ndarray, synthetic: np.ndarray) -> float:
    """Variance of the share when a random half of the real rows is called training: that of a sum over a random half
    of c_j, the synthetic rows whose nearest real row is j. The neighbours are scikit-learn's.
    """
    real = np.vstack([train, holdout])
    nearest = NearestNeighbors(n_neighbors=1, algorithm="kd_tree").fit(real).kneighbors(synthetic)[1][:, 0]
    counts = np.bincount(nearest, minlength=len(real))
    return float(len(real) / (4 * (len(real) - 1)) * ((counts - counts.mean()) ** 2).sum() / len(synthetic) ** 2)


@pytest.mark.parametrize("law", ["normal", "log-normal", "outlier"])
def test_share_nearer_to_training_is_unbiased_with_the_spread_of_chance(law: str) -> None:
    """Training, holdout and synthetic rows of one law, standardised by public rows of it. Given all real rows, which of
    them train is chance: the standardised shares of 200 worlds have mean 0 and variance 1. Their sum is held to 3.9
    standard errors (1e-4), their sum of squares to the central 1 - 1e-4 of chi-square. In "outlier" one training row
    lies far out; it is nearest to nobody. Distances scaled by the ranges of each side fail all three.
    """
    scores = []
    for seed in range(WORLDS):
        rng = np.random.default_rng(seed)
        drawn = rng.normal(size=(4, ROWS, COLUMNS))
        if law == "log-normal":
            drawn = np.exp(drawn)
        train, holdout, synthetic, public = drawn
        if law == "outlier":
            train[0] = 10.0
        apply = fit_standardisation(public, np.full(COLUMNS, 1e-9), tuple(map(str, range(COLUMNS)))).apply
        train, holdout, synthetic = (apply(x) for x in (train, holdout, synthetic))
        share = closest_record_gate(rows(train), rows(holdout), rows(synthetic), GateOptions()).train_closer
        scores.append((share - 0.5) / np.sqrt(chance(train, holdout, synthetic)))
    z = np.array(scores)
    assert abs(z.sum()) <= 3.9 * np.sqrt(WORLDS)
    assert chi2.ppf(5e-5, WORLDS) <= (z**2).sum() <= chi2.isf(5e-5, WORLDS)
