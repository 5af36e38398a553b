"""Peeling as a statistical procedure: e-values stay e-values, false discoveries stay rare, and it beats noise on all.

Seeds are fixed; each test states its false-alarm probability.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, ndtr, ndtri
from scipy.stats import kstest

from benchmarks.discovery_peeling import (
    ALPHA,
    MU,
    SENSITIVITY,
    M,
    gaussian_argmax_mu,
    log_e_values,
    mean_and_error,
    peeling,
    shares,
    simulate,
    z_scores,
)
from synth_platform.discovery.e_bh import boosted_e_bh, e_bh, log_boost
from synth_platform.discovery.peeling import peel
from synth_platform.discovery.selection import selection_mu
from synth_platform.privacy.noise import SeededNoise

pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def standardised() -> np.ndarray:
    """[600] (released + shift − log E)/s of the first selected of 50 equal e-values."""
    peels = (peel(np.full(50, 1.5), 0.4, 2.0, 1, 0.05, SeededNoise(seed)) for seed in range(600))
    return np.array([(peeled.log_e[0] + peeled.shift - 1.5) / peeled.scale for peeled in peels])


def test_the_released_value_carries_new_gaussian_noise(standardised: np.ndarray) -> None:
    """Claim: N(0, 1) after standardising; the noise that won the selection would have mean 3. False alarm 1e-6."""
    assert kstest(standardised, "norm").pvalue > 1e-6


def test_what_selection_picks_is_still_an_e_value() -> None:
    """Claim: the mean of E_DP − E over the three selected of 50 log-normal e-values is 0, a hair below for the slack.
    False alarm below 1e-6: six standard errors of 3,000 runs.
    """
    rng = np.random.default_rng(1)
    totals = []
    for seed in range(3000):
        log_e = rng.normal(-0.125, 0.5, 50)
        peeled = peel(log_e, 0.4, 1.0, 3, 0.05, SeededNoise(seed))
        totals.append(np.exp(peeled.log_e).sum() - np.exp(log_e[peeled.positions]).sum())
    mean, error = mean_and_error(np.array(totals))
    assert mean < 6 * error
    assert mean > -6 * error - 1e-4


@pytest.mark.parametrize(("count", "scale"), [(1, 1.0), (5, 0.5), (20, 2.0)])
def test_boosted_e_bh_keeps_its_level_at_the_worst_nulls(count: int, scale: float) -> None:
    """Claim: `count` true nulls of 100 selected whenever they hold evidence, all equal to the x at which the boost is
    tight, with probability 1/x: FDR ≤ .05·count/100, and at least .8 of it for one. 40,000 runs, false alarm 1e-6.
    """
    rng = np.random.default_rng(2)
    m, alpha, runs = 100, 0.5, 40_000
    z = np.linspace(-5 - scale**2, 5 + math.log(count) + scale**2, 400)
    level = count / np.arange(1, count + 1)
    rise = -np.diff(level, append=0.0)
    h = (rise * ndtr((z[:, None] - np.log(level) - scale**2 / 2) / scale)).sum(axis=1) * np.exp(-z)
    log_x = float(z[np.argmax(h)]) - log_boost(count, scale) + math.log(m / (alpha * count))
    holds = rng.random(runs) < math.exp(-log_x)
    rejected = 0
    for _ in range(int(holds.sum())):
        values = log_x - scale**2 / 2 - scale * rng.standard_normal(count)
        rejected += boosted_e_bh(values, alpha, scale=scale, hypotheses=m).size > 0
    bound = alpha * count / m
    error = math.sqrt(bound / runs)
    assert rejected / runs <= bound + 5 * error
    if count == 1:
        assert rejected / runs >= 0.8 * bound - 5 * error


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_false_discoveries_are_rare_and_power_is_in_order(rho: float) -> None:
    """Claim: FDR ≤ .05; all noisy < fixed 160 < fixed 40 < not private; adaptive close to the true size, far above
    a wrong one. 50 runs; margins of five standard errors and more of paired differences: false alarm below 1e-6.
    """
    methods = {
        "open": lambda z, log_e, seed: (e_bh(log_e, ALPHA), None),
        "all": peeling(M),
        "10": peeling(10),
        "40": peeling(40),
        "160": peeling(160),
        "adaptive": peeling("adaptive"),
    }
    rows = simulate((40, 6.0, rho), methods, 50)
    power = {name: row[:, 0].mean() for name, row in rows.items()}
    assert power["all"] < 0.05 < 0.2 < power["10"] < 0.3
    assert power["10"] + 0.3 < power["160"] < power["40"] <= power["open"]
    assert power["adaptive"] > power["160"] + 0.03
    assert power["adaptive"] > power["40"] - 0.05
    assert all(row[:, 2].mean() <= ALPHA for row in rows.values())
    assert all((row[:, 0] >= row[:, 1]).all() for name, row in rows.items() if name != "open"), "the boost never hurts"


def test_no_signal_gives_no_discovery() -> None:
    """Claim: all nulls true, one-factor: discoveries in at most 5% of 200 runs, which is the FDR. They are in
    .3% or so: false alarm below 1e-6.
    """
    found = [
        peel(log_e_values(z_scores(0, 0.0, 0.7, seed)), SENSITIVITY, MU, "adaptive", ALPHA, SeededNoise(seed))
        for seed in range(200)
    ]
    assert np.mean([peeled.discoveries.size > 0 for peeled in found]) <= ALPHA


def test_shares_count_what_they_say() -> None:
    assert shares(np.array([0, 1, 7]), 2) == (1.0, pytest.approx(1 / 3))
    assert shares(np.zeros(0, dtype=np.int64), 2) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("candidates", "mu"), [(2, 0.35), (100, 0.79), (10_000, 1.20), (1_000_000, 1.50), (6_200_000, 1.60)]
)
def test_gaussian_selection_costs_more_the_more_there_are(candidates: int, mu: float) -> None:
    """Claim: the derived lower bounds at Δ/σ = 1/4, √2·Δ/σ for two; Gumbel's cost knows no number of candidates."""
    assert gaussian_argmax_mu(candidates, 0.25) == pytest.approx(mu, abs=6e-3)
    assert gaussian_argmax_mu(2, 0.25) == pytest.approx(math.sqrt(2) / 4, rel=1e-9)
    assert selection_mu(1.0, 4.0) == pytest.approx(2 * ndtri(expit(0.25)), rel=1e-9)


def test_the_gaussian_bound_is_what_happens() -> None:
    """Claim: of 100 candidates in two halves the upper half wins as often as the bound says. 40,000 runs, false alarm
    1e-6 (five standard errors).
    """
    rng = np.random.default_rng(3)
    winners = np.concatenate(
        [(rng.standard_normal((4000, 100)) + np.repeat([0.25, 0.0], 50)).argmax(axis=1) for _ in range(10)]
    )
    p = float(ndtr(gaussian_argmax_mu(100, 0.25) / 2))
    assert (winners < 50).mean() == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / winners.size))
