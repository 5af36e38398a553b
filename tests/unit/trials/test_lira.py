"""The likelihood-ratio attack against the laws it is derived from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from synth_platform.trials.lira import fit_row_test
from synth_platform.trials.repeated import aurocs

ROWS = 400


def halves(rng: np.random.Generator, repetitions: int, rows: int = ROWS) -> np.ndarray:
    """Members of pairs: a random half, and the others."""
    first = np.array([rng.permutation(rows) < rows // 2 for _ in range(repetitions // 2)])
    return np.stack([first, ~first], axis=1).reshape(repetitions, rows)


def world(seed: int, shift: np.ndarray, repetitions: int, between: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores [1, R, N] = a level of the row's own + shift of the row if it is in + unit noise; members [R, N]."""
    rng = np.random.default_rng(seed)
    members = halves(rng, repetitions)
    level = rng.normal(0, between, ROWS)
    return (level + members * shift + rng.normal(size=members.shape))[None], members


def attacked(scores: np.ndarray, members: np.ndarray, shadows: int) -> float:
    test = fit_row_test(scores[:, :shadows], members[:shadows])
    return float(aurocs(test(scores[:, shadows:]), members[shadows:]).mean())


def test_a_leak_of_every_row_is_used_to_the_full() -> None:
    """Claim: with a shift of d for everybody the attack reaches Phi(d / sqrt 2), that of rows without levels of their
    own, although levels with sd 10 bury the raw score. Without shrinkage 16 shadows reach .60 of it only."""
    scores, members = world(1, np.full(ROWS, 0.5), 48)
    ideal = norm.cdf(0.5 / np.sqrt(2))
    assert attacked(scores, members, 16) == pytest.approx(ideal, abs=0.03)
    assert abs(aurocs(scores[0], members).mean() - 0.5) < 0.03


def test_a_leak_of_some_rows_is_found_row_by_row() -> None:
    """Claim: where one row in four leaks 4 sd and the others nothing, the leaking rows are told almost surely, and over
    all rows the attack is near the best there is: 7/16 of the pairs have a leaking row, so 7/16 + 9/32 = .719. One
    shift for everybody would reach .69."""
    shift = np.where(np.arange(ROWS) % 4 == 0, 4.0, 0.0)
    scores, members = world(2, shift, 64)
    test = fit_row_test(scores[:, :32], members[:32])
    assert aurocs(test(scores[:, 32:])[:, ::4], members[32:, ::4]).mean() > 0.98
    assert attacked(scores, members, 32) > 0.7
    assert aurocs(scores[0], members).mean() < 0.65


def test_the_ratio_is_that_of_two_gaussians() -> None:
    """Claim: with many shadows the score is log N(s; mean_in, C) - log N(s; mean_out, C), correlation between attacks
    included, as scipy's density has it."""
    rng = np.random.default_rng(4)
    members = halves(rng, 3000, 6)
    covariance = np.array([[1.0, 0.8], [0.8, 2.0]])
    out = rng.normal(0, 5, (2, 6))
    shift = rng.normal(0, 1, (2, 6))
    noise = rng.multivariate_normal([0, 0], covariance, size=members.shape).transpose(2, 0, 1)
    scores = out[:, None] + members * shift[:, None] + noise
    test = fit_row_test(scores, members)
    fresh = (out[:, None] + rng.normal(size=(2, 1, 6)))[:, :1]
    for row in range(6):
        at = fresh[:, 0, row]
        exact = multivariate_normal.logpdf(at, out[:, row] + shift[:, row], covariance)
        exact -= multivariate_normal.logpdf(at, out[:, row], covariance)
        assert test(fresh)[0, row] == pytest.approx(exact, abs=0.35)


@pytest.mark.parametrize("shape", [(1, 12, 30), (3, 12, 30)])
def test_a_leak_without_noise_is_seen(shape: tuple[int, ...]) -> None:
    """Claim: scores that are constant given membership separate perfectly; a covariance of zero is no blindness."""
    members = halves(np.random.default_rng(5), shape[1], shape[2])
    scores = np.zeros(shape)
    scores[-1] = members - 1.0
    assert attacked(scores, members, 8) == 1.0


def test_scores_that_never_vary_and_scores_that_repeat_change_nothing() -> None:
    """Claim: a constant attack has no say, and the same attack twice is that attack."""
    scores, members = world(6, np.full(ROWS, 0.8), 24)
    alone = attacked(scores, members, 12)
    assert attacked(np.concatenate([scores, np.ones_like(scores)]), members, 12) == pytest.approx(alone, abs=1e-3)
    assert attacked(np.concatenate([scores, scores]), members, 12) == pytest.approx(alone, abs=1e-3)


def test_unfit_shadows_are_refused() -> None:
    """Claim: fewer than four shadows, or a row that was in more often than out, are an error that says so."""
    scores, members = world(8, np.zeros(ROWS), 6)
    for shadows in (2, 3, 5):
        with pytest.raises(ValueError, match="at least 4, and every row in half of them"):
            fit_row_test(scores[:, :shadows], members[:shadows])
    members[0, 7] ^= True
    with pytest.raises(ValueError, match="6 shadow trainings"):
        fit_row_test(scores, members)
