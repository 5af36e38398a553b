"""Looking again and again does not inflate false alarms; a leak is found all the same.

Rows are fixed per release and looked at 100 times: a score is a row's own part plus what a look adds, so that looks at
one release agree with each other as repeated attacks do. Members and non-members are exchangeable under the null.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, mannwhitneyu, norm

from synth_platform.evaluation.e_values import e_bh, log_accumulated, log_mean, mann_whitney_log_e
from synth_platform.evaluation.looks import look_log_e

pytestmark = pytest.mark.statistical

ALPHA, LIMIT, SIDE = 0.05, 0.55, 40
ROW_SHARE = 0.8  # of a score's variance that belongs to the row
ALL_LOOKS = 100


def looks(rng: np.random.Generator, count: int, *, shift: float = 0.0, side: int = SIDE) -> list[float]:
    """log e-values of `count` looks at one release; members' scores are shifted by `shift`."""
    rows = math.sqrt(ROW_SHARE) * rng.normal(size=2 * side)
    rows[:side] += shift
    scores = rows + math.sqrt(1 - ROW_SHARE) * rng.normal(size=(count, 2 * side))
    return [mann_whitney_log_e(score[:side], score[side:], LIMIT) for score in scores]


def shift_of(auroc: float) -> float:
    """The shift of standard normal scores at which the AUROC is `auroc`."""
    return float(math.sqrt(2) * norm.ppf(auroc))


def test_false_alarms_over_a_hundred_looks() -> None:
    """Claim: over 100 looks at releases that leak nothing at most alpha of them are ever recalled.

    400 releases; were the true rate alpha, more than the bound would be recalled with probability 1e-6. The product of
    the same e-values, which is what independent looks would allow, fails here, as does "p < alpha in any look".
    """
    rng = np.random.default_rng(20_261)
    evidence = [looks(rng, ALL_LOOKS) for _ in range(400)]
    bound = binom.ppf(1 - 1e-6, len(evidence), ALPHA)
    recalled = sum(log_accumulated(found) >= math.log(1 / ALPHA) for found in evidence)
    assert recalled <= bound
    product = sum(max(np.cumsum(found)) >= math.log(1 / ALPHA) for found in evidence)
    assert product > bound


def test_a_p_value_in_every_look_raises_many_false_alarms() -> None:
    """Contrast: "the attack's p-value is below alpha in some look" recalls more than twice alpha of those that leak
    nothing, although each look alone keeps alpha. At a rate of twice alpha it would hold with probability 1e-6."""
    rng = np.random.default_rng(20_262)
    alarms = 0
    for _ in range(400):
        rows = math.sqrt(ROW_SHARE) * rng.normal(size=2 * SIDE)
        scores = rows + math.sqrt(1 - ROW_SHARE) * rng.normal(size=(ALL_LOOKS, 2 * SIDE))
        p = mannwhitneyu(scores[:, :SIDE], scores[:, SIDE:], axis=1, alternative="greater", method="asymptotic").pvalue
        alarms += int((p < ALPHA).any())
    assert alarms > binom.ppf(1 - 1e-6, 400, 2 * ALPHA)


def test_false_recalls_among_all_recalls() -> None:
    """Claim: e-BH over 20 releases, 4 of which leak far past the limit, keeps the mean share of false recalls at alpha
    and finds the leaking ones. 60 registers of 10 looks; the mean of 60 shares in [0, 1] with mean alpha is above the
    bound with probability 1e-6 (Hoeffding would be looser: Bernoulli is the worst case of a share)."""
    rng = np.random.default_rng(20_263)
    shares, found = [], 0
    for _ in range(60):
        log_e = {f"n{k}": log_accumulated(looks(rng, 10)) for k in range(16)}
        log_e |= {f"l{k}": log_accumulated(looks(rng, 10, shift=shift_of(0.85))) for k in range(4)}
        recalled = e_bh(log_e, ALPHA)
        shares.append(sum(name.startswith("n") for name in recalled) / max(1, len(recalled)))
        found += sum(name.startswith("l") for name in recalled)
    assert sum(shares) <= binom.ppf(1 - 1e-6, 60, ALPHA)
    assert found > 0.8 * 60 * 4


def test_the_leak_that_differential_privacy_allows_never_adds_up() -> None:
    """Claim: with 400 rows a side and a true AUROC of .51, where a test of chance alone would reject in time, no more
    than alpha of the releases are recalled over 100 looks (60 releases; wrong with probability 1e-4 at a rate of
    alpha). Far past the limit, at .65, nearly every release is recalled by the third look."""
    rng = np.random.default_rng(20_264)
    quiet = [looks(rng, ALL_LOOKS, shift=shift_of(0.51), side=400) for _ in range(60)]
    assert sum(log_accumulated(e) >= math.log(1 / ALPHA) for e in quiet) <= binom.ppf(1 - 1e-4, 60, ALPHA)
    loud = [looks(rng, 3, shift=shift_of(0.65), side=400) for _ in range(60)]
    assert sum(log_accumulated(e) >= math.log(1 / ALPHA) for e in loud) >= 55


@pytest.mark.parametrize(("copied", "recalled"), [(0.4, True), (0.0, False)])
def test_a_table_of_copies_is_recalled_within_three_looks(copied: float, recalled: bool) -> None:
    """Claim: a mixture like S_MIX, two fifths training rows with a little noise and the rest fresh, is recalled by the
    real attacks within three looks, the same table without copies never; 8 of 8 releases of 200 rows a side each.

    With copies the AUROC is near .7, more than four standard errors above what a recall needs; without, a recall needs
    one more than four standard errors above chance: wrong with probability below 1e-3 together.
    """
    rng = np.random.default_rng(20_265)
    for release in range(8):
        members, others, public, table = (rng.normal(size=(200, 8)) for _ in range(4))
        copies = round(copied * len(table))
        table[:copies] = members[:copies] + 0.01 * rng.normal(size=(copies, 8))
        found = [
            log_mean(list(look_log_e(
                members, others, table, public, attacks=("A1", "A2"), neighbours=3, limit=LIMIT, seed=seed
            ).values()))
            for seed in range(10 * release, 10 * release + 3)
        ]  # fmt: skip
        assert (log_accumulated(found) >= math.log(1 / ALPHA)) == recalled
