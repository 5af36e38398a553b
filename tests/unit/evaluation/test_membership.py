"""The membership gate: its two scores, its bounds, its sample size and its statuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.attacks import attack_scores
from synth_platform.evaluation.membership import (
    confirmation_power,
    judge_attack,
    membership_gate,
    required_rows,
    tpr_at,
)
from synth_platform.normalize.rows import EncodedRows

OPTIONS = GateOptions()


def rows(x: np.ndarray) -> EncodedRows:
    n = len(x)
    zeros = np.zeros(n, np.int64)
    names = tuple(f"f{j}" for j in range(x.shape[1]))
    return EncodedRows(
        names, x, zeros, zeros, np.ones(n), zeros, np.full(n, "train"), np.array([f"K{i}" for i in zeros])
    )


def gaussian(n: int, seed: int, p: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, p))


def test_scores_equal_their_formulas() -> None:
    x, synthetic, public = gaussian(40, 1), gaussian(60, 2), gaussian(70, 3)
    scores = attack_scores(x, synthetic, public, neighbours=5, attacks=("A1", "A2"))
    to_synthetic, to_public = np.sort(cdist(x, synthetic)), np.sort(cdist(x, public))
    np.testing.assert_allclose(scores["A1"], -to_synthetic[:, 0], atol=1e-6)
    np.testing.assert_allclose(scores["A2"], np.log(to_public[:, 4]) - np.log(to_synthetic[:, 4]), atol=1e-5)


def test_figures_equal_other_libraries_and_the_bonferroni_bound() -> None:
    train, holdout, public = gaussian(150, 1), gaussian(150, 2), gaussian(100, 3)
    synthetic = np.r_[train[:20], gaussian(100, 4)]
    verdict = membership_gate(rows(train), rows(holdout), rows(synthetic), rows(public), OPTIONS)
    evidence = json.loads(json.dumps(verdict.evidence, allow_nan=False))
    truth = np.r_[np.ones(150), np.zeros(150)]
    for name, attack in verdict.attacks.items():
        side = evidence["scores"][name]
        pooled = np.r_[side["members"], side["nonmembers"]]
        assert attack.auroc == pytest.approx(roc_auc_score(truth, pooled), abs=1e-6)
        error = max(attack.standard_error, np.sqrt((150 + 150 + 1) / (12 * 150 * 150)))
        assert attack.upper == pytest.approx(attack.auroc + norm.ppf(1 - 0.05 / 3) * error, abs=3e-6)
        assert attack.lower == pytest.approx(2 * attack.auroc - attack.upper, abs=3e-6)
        fpr, tpr, _ = roc_curve(truth, pooled, drop_intermediate=False)
        assert attack.tpr_at_1pct_fpr == pytest.approx(tpr[fpr <= 0.01].max(), abs=1e-6)
    summary = verdict.as_dict()
    assert {"auroc", "upper", "tpr_at_1pct_fpr"} <= set(summary["attacks"]["A1"])


def test_required_rows_is_the_published_701() -> None:
    assert required_rows(0.55) == 701
    assert required_rows(0.55, attacks=1) < 701 < required_rows(0.55, attacks=4)
    assert required_rows(0.60) == 176
    assert required_rows(0.55, attacks=3) == 776  # 775.03


@pytest.mark.parametrize("attacks", [1, 2, 3])
def test_each_attack_is_confirmed_with_the_power_that_required_rows_promise(attacks: int) -> None:
    """With N rows a side by which each attack has 90 %, all together have 1 - A .1 at least; (2N + 1) / (12 N^2) is
    1 / (6 N) up to one in 2 N.
    """
    n = required_rows(0.55, attacks)
    assert confirmation_power(0.55, n, n, attacks) == pytest.approx(1 - attacks * 0.1, abs=2e-3)


def test_power_is_a_lower_bound_of_how_often_harmless_scores_are_confirmed() -> None:
    """1,000 pairs of 300 members and 500 non-members with three unrelated scores of one law, limit .58: the share of
    confirmed ones is at least the power less four standard errors (.05), and no more than what independence allows.
    """
    rng = np.random.default_rng(1)
    options = GateOptions(membership_limit=0.58)
    confirmed = []
    for _ in range(1000):
        uppers = []
        for _ in range(3):
            attack = judge_attack(rng.normal(size=300), rng.normal(size=500), options)
            uppers.append(attack.upper)
        confirmed.append(max(uppers) <= 0.58)
    power = confirmation_power(0.58, 300, 500, 3)
    assert 0.7 < power < 0.9
    assert power - 0.05 <= np.mean(confirmed) <= (1 - (1 - power) / 3) ** 3 + 0.05


def test_too_few_rows_have_no_power_and_say_that_they_cannot_decide() -> None:
    train, holdout, public = gaussian(20, 1), gaussian(20, 2), rows(gaussian(60, 3))
    verdict = membership_gate(rows(train), rows(holdout), rows(gaussian(60, 4)), public, OPTIONS)
    assert verdict.power == 0
    assert {attack.finding for attack in verdict.attacks.values()} == {"UNDECIDED"}
    assert all(attack.lower < attack.auroc < attack.upper for attack in verdict.attacks.values())


def test_findings_follow_the_interval() -> None:
    scores = np.arange(200.0)
    assert judge_attack(scores + 150, scores, OPTIONS).finding == "ABOVE"
    assert judge_attack(scores - 150, scores, OPTIONS).finding == "BELOW"
    assert judge_attack(scores + 15, scores, OPTIONS).finding == "UNDECIDED"


def test_rows_that_are_all_alike_confirm_nothing() -> None:
    """Eight rows a side at one point: every score ties, DeLong's error is 0, and the AUROC is 1/2 whatever leaked."""
    alike = rows(np.zeros((8, 5)))
    table, public = rows(gaussian(60, 4)), rows(gaussian(60, 3))
    verdict = membership_gate(alike, alike, table, public, OPTIONS)
    assert {attack.auroc for attack in verdict.attacks.values()} == {0.5}
    assert verdict.status == "PASS_POINT"
    assert {attack.finding for attack in verdict.attacks.values()} == {"UNDECIDED"}


def test_sides_that_are_apart_leave_an_error() -> None:
    """AUROC 0 and 1: the bound lies the null error of a rank sum, sqrt(mn(m + n + 1)/12) / mn, times z away."""
    scores = np.arange(6.0)
    margin = norm.ppf(1 - 0.05 / 3) * np.sqrt(6 * 4 * 11 / 12) / 24
    below, above = judge_attack(scores - 9, scores[:4], OPTIONS), judge_attack(scores + 9, scores[:4], OPTIONS)
    assert (below.auroc, below.standard_error, above.auroc, above.standard_error) == (0, 0, 1, 0)
    assert (below.upper, above.lower) == pytest.approx((margin, 1 - margin), abs=1e-6)


def test_tpr_counts_only_thresholds_within_the_rate() -> None:
    nonmembers = np.arange(200.0)
    members = np.array([198.5, 197.5, 500.0, 197.0])
    # Two of 200 non-members may exceed the threshold, so it sits at 197: the member tied with it is not above.
    assert tpr_at(members, nonmembers, 0.01) == 0.75
    assert tpr_at(members, nonmembers[:50], 0.01) == 1.0  # no non-member may exceed it
    assert tpr_at(np.array([-1.0]), nonmembers, 0.01) == 0.0


def test_statuses_follow_the_table() -> None:
    train, public = gaussian(900, 1), rows(gaussian(300, 3))

    def status(nonmembers: np.ndarray, synthetic: np.ndarray, n: int = 900) -> str:
        return membership_gate(rows(train[:n]), rows(nonmembers[:n]), rows(synthetic), public, OPTIONS).status

    assert status(gaussian(900, 2), train) == "FAIL"
    # Members and non-members of the same values: AUROC is exactly 1/2, only its bound differs with the number of rows.
    assert status(train, gaussian(100, 4)) == "PASS_CONFIRMED"
    assert status(train, gaussian(100, 4), n=60) == "PASS_POINT"


def test_sides_are_matched_and_small_sets_refused() -> None:
    public = rows(gaussian(20, 3))
    verdict = membership_gate(rows(gaussian(90, 1)), rows(gaussian(50, 2)), rows(gaussian(30, 4)), public, OPTIONS)
    assert verdict.rows == 50
    assert len(verdict.evidence["scores"]["A1"]["members"]) == 50
    with pytest.raises(ValueError, match="4 rows cannot give 5"):
        membership_gate(rows(gaussian(90, 1)), rows(gaussian(50, 2)), rows(gaussian(4, 4)), public, OPTIONS)
