"""Adaptive margins in distribution: choices are those of the exponential mechanism, totals have no bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chisquare

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.noise.adaptive import choose_and_measure
from synth_platform.margins.rows import Rows, two_way
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.queries import SelectionQuery
from synth_platform.privacy.rehearsal import Rehearsal

pytestmark = pytest.mark.statistical

DOMAIN = Domain(tuple(Variable(name, ("0", "1", "2")) for name in "abc"))
PEOPLE = 300


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, PEOPLE)
    b = np.where(rng.random(PEOPLE) < 0.3, a, rng.integers(0, 3, PEOPLE))
    return Rows(DOMAIN, np.stack([a, b, rng.integers(0, 3, PEOPLE)], axis=1).astype(np.int64))


def test_a_candidate_is_chosen_with_probability_proportional_to_exp_of_its_score(rows):
    """ε/2 of the paper is 1/scale here. Chi-square of 20,000 draws: false alarm 1e-4."""
    queries = []
    rehearsal = Rehearsal(rows, SeededNoise(1))

    def ask(query):
        queries.append(query)
        return rehearsal.ask(query)

    choose_and_measure(ask, DOMAIN, two_way(DOMAIN), (), 0.2, 1)
    query = next(query for query in queries if isinstance(query, SelectionQuery))
    expected = softmax(query.scores(rows) / query.scale)
    assert expected.max() < 0.9  # a choice that noise has a say in
    evaluated, source = query.evaluate(rows), SeededNoise(2)
    chosen = [int(query.answer(evaluated, source)[0][0]) for _ in range(20_000)]
    observed = np.bincount(chosen, minlength=len(expected))
    usual = expected * 20_000 >= 5
    rest = np.array([observed[~usual].sum(), 20_000 * expected[~usual].sum()])
    seen, due = np.append(observed[usual], rest[0]), np.append(20_000 * expected[usual], rest[1])
    kept = due > 1e-3
    assert chisquare(seen[kept], due[kept] * seen[kept].sum() / due[kept].sum()).pvalue > 1e-4


def test_the_total_is_noisy_around_the_number_of_people(rows):
    """Mean of 60 totals within 4.5 standard errors of it: false alarm 1e-5. They vary as the noise of their cells says.

    The total is the mean by precision of those of all answers, of which one with c cells has variance c·σ². Variance
    within a factor that a chi-square of 60 leaves with probability below 1e-5.
    """
    totals, variances = [], []
    for seed in range(60):
        margins, releases = choose_and_measure(
            Rehearsal(rows, SeededNoise(seed)).ask, DOMAIN, two_way(DOMAIN), (), 1.0, 2
        )
        totals.append(margins.margins[0].total)
        first, *later = releases
        precision = 3 / (3 * first.sigma**2)
        precision += sum(1 / (answer.values.size * answer.sigma**2) for answer in later[1::2])
        variances.append(1 / precision)
    expected = np.mean(variances)
    assert abs(np.mean(totals) - PEOPLE) < 4.5 * np.sqrt(expected / 60)
    assert 0.4 < np.var(totals) / expected < 2.1
