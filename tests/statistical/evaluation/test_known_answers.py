"""Privacy gates on worlds whose right verdict is known, and the coverage of the bounds. Seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, binom, norm

from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.audit_bound import epsilon_lower_bound
from synth_platform.evaluation.calibration import excess_failure
from synth_platform.evaluation.closest_record import closest_record_gate
from synth_platform.evaluation.membership import membership_gate
from synth_platform.evaluation.statistics import clopper_pearson_upper, delong
from synth_platform.normalize.rows import EncodedRows

pytestmark = pytest.mark.statistical
OPTIONS = GateOptions()
N = 800


def rows(x: np.ndarray) -> EncodedRows:
    n = len(x)
    zeros = np.zeros(n, np.int64)
    names = tuple(f"f{j}" for j in range(x.shape[1]))
    return EncodedRows(names, x, zeros, zeros, np.ones(n), zeros, np.full(n, "train"), np.full(n, "K"))


def draw(n: int, rng: np.random.Generator) -> np.ndarray:
    """Ten correlated Gaussian features."""
    return rng.normal(size=(n, 10)) @ (np.eye(10) + 0.3)


def world(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return draw(N, rng), draw(N, rng), draw(600, rng), rng


def test_fresh_draws_are_judged_as_often_as_the_exact_null_says() -> None:
    """Sixteen worlds, independent draws. Given the training rows, holdout and synthetic distances are exchangeable, so
    the excess count is beta-binomial whatever the world: its mean over worlds must lie within 3.9 standard errors
    (1e-4), and the failed worlds below the 1 - 1e-4 quantile of its failure rate plus 2.5 % for the other share.
    Membership fails a fresh draw at .05 sqrt(6 N) = 3.5 null standard errors: more than one of sixteen has probability
    below 1e-4.
    """
    worlds, m = 16, 600
    shares, closest, members = [], [], []
    for seed in range(worlds):
        train, holdout, public, rng = world(seed)
        synthetic = rows(draw(m, rng))
        verdict = closest_record_gate(rows(train), rows(holdout), synthetic, OPTIONS)
        shares.append(verdict.excess)
        closest.append(verdict.status == "FAIL")
        members.append(membership_gate(rows(train), rows(holdout), synthetic, rows(public), OPTIONS).status == "FAIL")
    rank = 0.05 * (N - 1) + 1
    null = betabinom(m, rank, N + 1 - rank)
    assert abs(np.mean(shares) - null.mean() / m) <= 3.9 * null.std() / m / np.sqrt(worlds)
    passing = max(k for k in range(m) if clopper_pearson_upper(k, m) <= 0.085)
    assert sum(closest) <= binom.ppf(1 - 1e-4, worlds, null.sf(passing) + 0.025)
    assert sum(members) <= 1


def test_excess_failure_rate_is_that_of_uniform_distances() -> None:
    """Exchangeable continuous distances all have one law: 20,000 uniform draws, within 4 standard errors (6e-5).

    .005 more is allowed because the interpolated quantile lies between the order statistics of the law.
    """
    rng = np.random.default_rng(1)
    m, n, tolerance = 60, 40, 0.12
    counts = rng.binomial(m, np.quantile(rng.random((20_000, n)), 0.05, axis=1))
    passing = max(k for k in range(m) if clopper_pearson_upper(k, m) <= 0.05 + tolerance)
    exact = excess_failure(m, n, tolerance)
    assert abs((counts > passing).mean() - exact) <= 4 * np.sqrt(exact * (1 - exact) / 20_000) + 0.005


def test_copies_and_partial_copies_fail() -> None:
    """Copies fail with certainty (duplicates); so does 15 % of copies, on duplicates and on the excess share."""
    for seed in range(3):
        train, holdout, public, rng = world(100 + seed)
        copies = rows(train[:600])
        assert closest_record_gate(rows(train), rows(holdout), copies, OPTIONS).duplicates == 600
        assert membership_gate(rows(train), rows(holdout), copies, rows(public), OPTIONS).status == "FAIL"
        mixed = np.r_[draw(510, rng), train[:90] + 1e-3]  # not exact copies: the shares must catch them
        verdict = closest_record_gate(rows(train), rows(holdout), rows(mixed), OPTIONS)
        assert verdict.duplicates == 0
        assert verdict.excess_upper > 0.085
        assert verdict.status == "FAIL"


def test_partial_copies_show_at_low_false_positive_rates_first() -> None:
    """90 copied members of 800 are found at FPR 1 %; at random 1 % would be: 5 % has probability below 1e-15."""
    train, holdout, public, rng = world(200)
    mixed = np.r_[draw(510, rng), train[:90] + 1e-3]
    attack = membership_gate(rows(train), rows(holdout), rows(mixed), rows(public), OPTIONS).attacks["A1"]
    assert attack.tpr_at_1pct_fpr > 0.05


def test_delong_bound_covers() -> None:
    """The one-sided 95 % bound AUC + 1.645 SE covers the true AUROC in 400 draws as often as a binomial(400, .95) may;
    the limits leave 1e-4 on each side (plus about 1 % for asymptotics at n = 60).
    """
    truth = norm.cdf(0.5 / np.sqrt(2))
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(400):
        auroc, error = delong(rng.normal(0.5, 1, 60), rng.normal(0, 1, 60))
        covered += auroc + 1.645 * error >= truth
    assert binom.ppf(1e-4, 400, 0.94) <= covered <= binom.ppf(1 - 1e-4, 400, 0.97)


def test_epsilon_bound_is_valid_and_not_empty() -> None:
    """Scores separated by a Gaussian mechanism of known trade-off: the true supremum of log((TPR - delta)/FPR) over
    thresholds is exceeded in at most 5 % of 300 draws (limit: binomial 1 - 1e-4 quantile), and the bound is not empty.
    """
    delta, shift = 0.01, 1.5
    thresholds = np.linspace(-4, 8, 4001)
    truth = float(np.log(np.maximum(norm.sf(thresholds - shift) - delta, 1e-300) / norm.sf(thresholds)).max())
    rng = np.random.default_rng(8)
    bounds = [epsilon_lower_bound(rng.normal(shift, 1, 300), rng.normal(0, 1, 300), delta) for _ in range(300)]
    assert sum(bound > truth for bound in bounds) <= binom.ppf(1 - 1e-4, 300, 0.05)
    assert np.median(bounds) > 0.8
