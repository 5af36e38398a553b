"""One-run bounds: exact where guesses are independent, valid in simulation, equal to jax_privacy on the same scores."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from synth_platform.evaluation.one_run import (
    correct_guesses,
    gaussian_excess,
    one_run_epsilon,
    one_run_mu,
    one_run_p_value,
)
from synth_platform.privacy.accounting import gaussian_epsilon

PEER = json.loads((Path(__file__).parent / "jax_privacy_bounds.json").read_text("utf-8"))
PAIRS = list(zip(PEER["cases"], PEER["bounds"], strict=True))


@pytest.mark.parametrize(("case", "theirs"), PAIRS)
def test_agrees_with_jax_privacy(case: dict[str, Any], theirs: dict[str, Any]) -> None:
    """The peer guesses "in" above a threshold and nothing below: as many guesses as scores there."""
    scores = np.concatenate([case["members"], case["nonmembers"]])
    included = np.arange(len(scores)) < len(case["members"])
    guesses = [(int((scores >= case["threshold"]).sum()), 0)]
    delta, confidence = case["delta"], 1 - case["significance"]
    epsilon = one_run_epsilon(scores, included, guesses=guesses, delta=delta, confidence=confidence)
    mu = one_run_mu(scores, included, guesses=guesses, confidence=confidence)
    assert epsilon == pytest.approx(theirs["one_run"], abs=2e-6)  # its root finder stops at 1e-6
    assert gaussian_epsilon(mu, delta) == pytest.approx(theirs["one_run_gdp"], abs=2e-6)


@pytest.mark.parametrize(("m", "r", "v", "epsilon"), [(100, 40, 33, 0.7), (50, 50, 50, 2.0), (1000, 20, 11, 0.0)])
def test_the_p_value_is_the_sum_it_stands_for(m: int, r: int, v: int, epsilon: float) -> None:
    """Theorem 5.2 term by term: P[B >= v] + 2 m delta max_i P[v > B >= v - i] / i."""
    share, delta = 1 / (1 + math.exp(-epsilon)), 1e-3
    tail = sum(binom.pmf(range(v, r + 1), r, share))
    gaps = [sum(binom.pmf(range(v - i, v), r, share)) / i for i in range(1, v + 1)]
    found = one_run_p_value(canaries=m, guesses=r, correct=v, epsilon=epsilon, delta=delta)
    assert found == pytest.approx(min(1, tail + 2 * m * delta * max(gaps)), rel=1e-9)
    assert one_run_p_value(canaries=m, guesses=r, correct=v, epsilon=epsilon, delta=0) == pytest.approx(tail, rel=1e-9)


def test_guesses_are_counted_on_both_ends() -> None:
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    included = np.array([True, False, True, True, False])
    assert correct_guesses(scores, included, ins=2) == 1
    assert correct_guesses(scores, included, ins=1, outs=1) == 2
    assert correct_guesses(scores, included, ins=3, outs=2) == 3
    with pytest.raises(ValueError, match="guesses"):
        correct_guesses(scores, included, ins=4, outs=2)


def test_all_right_gives_the_closed_form() -> None:
    """r right guesses of r refute every ε with q^r < 5 %, q = e^ε / (1 + e^ε), at δ = 0."""
    included = np.arange(200) < 100
    scores = included * 1.0
    found = one_run_epsilon(scores, included, guesses=[(100, 100)], delta=0.0, confidence=0.95)
    q = 0.05 ** (1 / 200)
    assert found == pytest.approx(math.log(q / (1 - q)), abs=1e-6)
    assert one_run_mu(scores, included, guesses=[(100, 100)], confidence=0.95) > 1.9


def test_a_larger_mu_is_never_refuted_more() -> None:
    excess = [
        gaussian_excess(canaries=100, guesses=60, correct=50, mu=mu, significance=0.05) for mu in np.linspace(0, 4, 30)
    ]
    assert np.all(np.diff(excess) <= 1e-12)
    assert excess[0] > 0 > excess[-1]


@pytest.mark.statistical
@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0])
def test_coverage_on_independent_gaussian_canaries(mu: float) -> None:
    """At 90 % confidence both bounds exceed the truth in at most 10 % of runs.

    200 runs: more than 36 with probability below 1e-3 at a true rate of 10 %. The bounds must also prove something
    where there is something to prove.
    """
    guesses, wrong, mus = [(20, 20), (60, 60)], np.zeros(2), []
    truth = gaussian_epsilon(mu, 1e-5) if mu else 0.0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        included = rng.random(150) < 0.5
        scores = rng.normal(size=150) + mu * included
        mus.append(one_run_mu(scores, included, guesses=guesses, confidence=0.9))
        epsilon = one_run_epsilon(scores, included, guesses=guesses, delta=1e-5, confidence=0.9)
        wrong += [epsilon > truth, mus[-1] > mu]
    assert wrong.max() <= 36
    if mu == 2:
        assert np.median(mus) > 1


def test_the_gaussian_bound_is_tight_for_one_canary() -> None:
    """m = 1, no abstention: right with probability at most Φ(μ/2), so at significance s it refutes μ < 2 Φ⁻¹(s)."""
    for significance in (0.6, 0.9):
        limit = 2 * norm.ppf(significance)
        for mu, refuted in ((limit - 1e-6, True), (limit + 1e-6, False)):
            excess = gaussian_excess(canaries=1, guesses=1, correct=1, mu=mu, significance=significance)
            assert (excess > 0) is refuted
