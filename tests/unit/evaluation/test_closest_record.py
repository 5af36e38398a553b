"""The closest-record gate on tables whose statistics can be counted by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import binomtest

from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.closest_record import ClosestRecordVerdict, closest_record_gate
from synth_platform.normalize.rows import EncodedRows

OPTIONS = GateOptions()


def rows(x: np.ndarray) -> EncodedRows:
    n = len(x)
    return EncodedRows(
        features=tuple(f"f{j}" for j in range(x.shape[1])),
        x=x,
        label=np.zeros(n, np.int64),
        event=np.zeros(n, np.int64),
        time=np.ones(n),
        batch=np.zeros(n, np.int64),
        split=np.full(n, "train"),
        key=np.array([f"K{i}" for i in range(n)]),
    )


def gaussian(n: int, seed: int, p: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, p))


def gate(train: np.ndarray, holdout: np.ndarray, synthetic: np.ndarray) -> ClosestRecordVerdict:
    return closest_record_gate(rows(train), rows(holdout), rows(synthetic), OPTIONS)


def upper(count: float, trials: int) -> float:
    return float(binomtest(int(np.ceil(count)), trials, alternative="less").proportion_ci(0.95, "exact").high)


def test_figures_equal_an_exhaustive_count() -> None:
    train, holdout, synthetic = gaussian(150, 1), gaussian(150, 2), gaussian(200, 3)
    synthetic[:2] = train[:2]
    verdict = gate(train, holdout, synthetic)
    to_train, to_holdout = cdist(synthetic, train).min(axis=1), cdist(synthetic, holdout).min(axis=1)
    near = np.quantile(cdist(holdout, train).min(axis=1), 0.05)
    closer, excess = (to_train < to_holdout).sum(), (to_train < near).sum()
    assert verdict.duplicates == 2
    assert verdict.train_closer == pytest.approx(closer / 200)
    assert verdict.train_closer_upper == pytest.approx(upper(closer, 200), abs=1e-6)
    assert verdict.excess == pytest.approx(excess / 200)
    assert verdict.excess_upper == pytest.approx(upper(excess, 200), abs=1e-6)
    assert verdict.ratio_50 == pytest.approx(np.median(to_train) / np.median(to_holdout), abs=1e-5)
    assert verdict.status == "FAIL"


def test_ties_count_one_half_and_round_against_the_table() -> None:
    train, holdout = np.array([[0.0], [10.0], [30.0]]), np.array([[4.0], [14.0], [50.0]])
    verdict = gate(train, holdout, np.array([[2.0], [3.0], [1.0]]))  # tie, holdout closer, train closer
    assert verdict.train_closer == pytest.approx(0.5)
    assert verdict.train_closer_upper == pytest.approx(upper(2, 3), abs=1e-6)  # 1.5 of 3 counts as 2


def test_one_copy_among_a_thousand_fails() -> None:
    train, synthetic = gaussian(300, 1), gaussian(1000, 3)
    synthetic[17] = train[200]
    verdict = gate(train, gaussian(300, 2), synthetic)
    assert verdict.duplicates == 1
    assert verdict.status == "FAIL"


def test_a_copy_of_a_row_that_matching_would_drop_is_still_found() -> None:
    train, holdout = gaussian(300, 1), gaussian(40, 2)
    verdict = gate(train, holdout, train[::3] + 0.0)
    assert verdict.duplicates == 100


def test_bounds_at_the_tolerance_pass_and_one_row_more_fails() -> None:
    # m = 400: the largest passing counts, found by scipy, then one more.
    closer = max(k for k in range(401) if upper(k, 400) <= 0.615)
    train, holdout = np.array([[0.0], [100.0]]), np.array([[50.0], [150.0]])

    def table(count: int) -> np.ndarray:
        return np.r_[np.full(count, 20.0), np.full(400 - count, 30.0)][:, None]

    options = OPTIONS.model_copy(update={"excess_tolerance": 10.0})
    for count, status in ((closer, "PASS"), (closer + 1, "FAIL")):
        assert closest_record_gate(rows(train), rows(holdout), rows(table(count)), options).status == status


def test_evidence_alone_gives_the_figures() -> None:
    verdict = gate(gaussian(120, 1), gaussian(90, 2), gaussian(200, 3))
    evidence = json.loads(json.dumps(verdict.evidence, allow_nan=False))
    train, holdout = (np.array(evidence[f"synthetic_to_matched_{side}"]) for side in ("train", "holdout"))
    closer = ((train < holdout) + 0.5 * (train == holdout)).mean()
    assert verdict.train_closer == pytest.approx(closer, abs=1e-6)
    near = np.quantile(evidence["holdout_to_train"], 0.05)
    assert verdict.excess == pytest.approx((np.array(evidence["synthetic_to_train"]) < near).mean(), abs=1e-6)
    assert {"duplicates", "train_closer", "train_closer_upper", "excess", "excess_upper", "status"} <= set(
        verdict.as_dict()
    )


def test_empty_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="needs training, holdout and synthetic"):
        gate(gaussian(10, 1), gaussian(10, 2), gaussian(10, 3)[:0])
    with pytest.raises(ValueError, match="finite"):
        gate(gaussian(10, 1), gaussian(10, 2), gaussian(10, 3) * np.nan)
