"""The law of ordered choices against its closed form. Seeds are fixed; each test states its false-alarm probability."""

from __future__ import annotations

import itertools

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chi2_contingency, chisquare

from synth_platform.privacy import gumbel
from synth_platform.privacy.noise import CryptographicNoise, NoiseSource, SeededNoise

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
SCORES = np.array([0.0, 1.3, -0.7, 1.3, 2.0])


def plackett_luce(scores: np.ndarray, size: int) -> dict[tuple[int, ...], float]:
    """P(ordered choice): choose by softmax, remove, choose again."""
    weight = np.exp(scores - scores.max())
    law = {}
    for order in itertools.permutations(range(scores.size), size):
        left = weight.sum() - np.concatenate([[0.0], np.cumsum(weight[list(order)])[:-1]])
        law[order] = float(np.prod(weight[list(order)] / left))
    return law


def p_value(noise: NoiseSource, scores: np.ndarray, size: int, draws: int) -> float:
    law = plackett_luce(scores, size)
    counts = dict.fromkeys(law, 0)
    for _ in range(draws):
        counts[tuple(noise.gumbel_top(scores, size).tolist())] += 1
    return float(chisquare(list(counts.values()), draws * np.array(list(law.values()))).pvalue)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ordered_choices_follow_plackett_and_luce(size: int) -> None:
    """20,000 draws of 1, 2 and 3 of five candidates, two of them tied; false alarm 1e-6 each."""
    assert p_value(SeededNoise(21 + size), SCORES, size, 20_000) > FALSE_ALARM


@pytest.mark.parametrize("scores", [np.zeros(4), np.array([1e6, 1e6 + 0.5]), 1e15 + np.array([0.0, 1.0])])
def test_large_and_equal_scores_follow_it_as_well(scores: np.ndarray) -> None:
    """10,000 draws of two; only differences count. False alarm 1e-6 each."""
    assert p_value(SeededNoise(31), scores, 2, 10_000) > FALSE_ALARM


def test_the_exact_path_follows_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error margin widened until decimal arithmetic settles every comparison; 2,000 draws, false alarm 1e-6."""
    monkeypatch.setattr(gumbel, "_RELATIVE_ERROR", 1e9)
    assert p_value(SeededNoise(41), SCORES, 2, 2_000) > FALSE_ALARM


def test_the_cryptographic_source_follows_it() -> None:
    """10,000 draws of pairs; false alarm 1e-6."""
    assert p_value(CryptographicNoise(), SCORES, 2, 10_000) > FALSE_ALARM


def test_a_choice_across_blocks_is_uniform_over_equal_scores() -> None:
    """Which tenth of 300,000 equal candidates 20 draws of 100 fall into; false alarm 1e-6."""
    noise = SeededNoise(51)
    tenths = np.concatenate([noise.gumbel_top(np.zeros(300_000), 100) for _ in range(20)]) // 30_000
    assert chisquare(np.bincount(tenths, minlength=10)).pvalue > FALSE_ALARM


def test_opendp_chooses_alike() -> None:
    """OpenDP's exact arg-max with Gumbel noise and ours: 5,000 first choices each in a table; false alarm 1e-6."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    theirs = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=1.0)
    noise = SeededNoise(61)
    draws = 5_000
    ours = np.bincount([noise.gumbel_top(SCORES, 1)[0] for _ in range(draws)], minlength=5)
    other = np.bincount([theirs(SCORES.tolist()) for _ in range(draws)], minlength=5)
    assert chi2_contingency([ours, other]).pvalue > FALSE_ALARM
