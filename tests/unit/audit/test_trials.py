"""What the audit computes about repeated trials, against scipy's distributions and hand-made cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from synth_platform.audit import half_split, inference, mechanism, rules
from synth_platform.audit.endpoints import endpoint_values
from synth_platform.audit.findings import Findings
from synth_platform.audit.utility_rows import Arm, HeldOut


def test_power_of_half_splits_is_that_of_a_noncentral_t() -> None:
    rows, repetitions, limit, attacks = 372, 32, 0.55, 4
    deviation = math.sqrt(373 / (12 * 186 * 186) / 2)

    def confirmed(pairs: int) -> float:
        quantile = stats.t.ppf(1 - 0.05 / attacks, pairs - 1)
        return float(stats.nct.cdf(-quantile, pairs - 1, -math.sqrt(pairs) * 0.05 / deviation))

    expected = 1 - 3 * (1 - confirmed(16)) - (1 - confirmed(8))
    assert half_split._power(rows, repetitions, limit, attacks) == pytest.approx(max(0.0, expected), abs=1e-6)


def test_power_of_the_membership_gate_is_that_of_a_rank_sum() -> None:
    """701 rows a side are what 8-1 asks of two attacks for 90 % each."""
    one = stats.norm.cdf(0.05 / math.sqrt(1403 / (12 * 701**2)) - stats.norm.ppf(0.975))
    assert rules.confirmation_power(701, 0.55, 2) == pytest.approx(1 - 2 * (1 - one), abs=1e-9)
    assert one == pytest.approx(0.9, abs=1e-3)


def test_secrets_that_agree_count_once_and_independent_ones_each() -> None:
    ones = [1, 0] * 50
    assert inference._mean_share([ones, ones]) == (0.5, pytest.approx(100, rel=0.02))
    apart = [[1, 1, 0, 0] * 25, [1, 0, 1, 0] * 25]
    assert inference._mean_share(apart) == (0.5, pytest.approx(200, rel=0.02))


def test_one_sided_epsilon_of_an_operating_point() -> None:
    assert mechanism._epsilon((0.9, 0.1), 0.0, 1) == pytest.approx(math.log(9), abs=1e-9)
    assert mechanism._epsilon((0.2, 0.3), 0.0, 1) == 0.0
    # Two rows at once: e^(2 eps) is what the pair proves.
    assert mechanism._epsilon((0.9, 0.1), 0.0, 2) == pytest.approx(math.log(9) / 2, abs=1e-9)


def test_a_single_run_refutes_what_the_binomial_refutes() -> None:
    """23 right of 24 guesses: at delta 0 the p-value is a binomial tail."""
    evidence = {"scores": [float(-i) for i in range(24)], "included": [True] * 23 + [False], "guesses": [[24, 0]]}
    run = mechanism._OneRun(evidence)
    share = stats.binomtest(23, 24).proportion_ci(confidence_level=1 - 2 * run._each, method="exact").low
    edge = math.log(share / (1 - share))
    assert run.refutes_epsilon(edge - 1e-6, 0.0)
    assert not run.refutes_epsilon(edge + 1e-6, 0.0)


def test_folds_count_ranks_within_themselves() -> None:
    """Adding a constant to one fold's scores changes nothing, as it would if folds were pooled."""
    rng = np.random.default_rng(4)
    label, fold = np.tile([0, 1], 20), np.repeat([0, 1], 20)
    held = HeldOut(rng.normal(size=(40, 3)), label, np.ones(40, int), rng.exponential(size=40), fold)
    scores, risk = rng.normal(size=(40, 2)), rng.normal(size=40)
    everyone = [np.ones(40, bool)]
    for code in ("auroc", "c_index"):
        value = endpoint_values(code, held, everyone)
        shifted = Arm(scores + 100 * fold[:, None], risk + 100 * fold, [None, None])
        assert value(Arm(scores, risk, [None, None]), 0) == value(shifted, 0)


def test_one_fold_is_the_plain_auroc() -> None:
    rng = np.random.default_rng(5)
    label = rng.integers(0, 2, 30)
    held = HeldOut(np.zeros((30, 1)), label, np.ones(30, int), np.ones(30), np.zeros(30, int))
    scores = rng.normal(size=(30, 2))
    value = endpoint_values("auroc", held, [np.ones(30, bool)])(Arm(scores, np.zeros(30), [None]), 0)
    expected = (roc_auc_score(label == 0, scores[:, 0]) + roc_auc_score(label == 1, scores[:, 1])) / 2
    assert float(value) == pytest.approx(expected)


def test_a_design_that_is_not_registered_claims_nothing() -> None:
    document = {"status": "NOT_REGISTERED", "summary": {"status": "NOT_REGISTERED"}, "evidence": {}}
    for design, passes in (("direct", True), ("half_split", False)):
        found = Findings()
        half_split.audit_half_split(found, "G3/G0/half_split_audit", document, {"gates": {"membership_design": design}})
        assert all(check.passed for check in found.checks) is passes
