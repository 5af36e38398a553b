"""Tolerances: the exact law of the excess share, the published rule for the other one, and the frozen evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binomtest

from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.calibration import (
    Calibration,
    calibrate,
    contradictions,
    excess_failure,
    excess_tolerance,
    probe_rule,
)
from synth_platform.evaluation.null import Null, NullRows, Sizes
from synth_platform.normalize.rows import EncodedRows

SIZES = Sizes(train=60, holdout=60, synthetic=40)


def rows(x: np.ndarray) -> EncodedRows:
    n = len(x)
    zeros = np.zeros(n, np.int64)
    names = tuple(f"f{j}" for j in range(x.shape[1]))
    return EncodedRows(names, x, zeros, zeros, np.ones(n), zeros, np.full(n, "train"), np.full(n, "K"))


def gaussian(seed: int) -> NullRows:
    rng = np.random.default_rng(seed)
    train, holdout, table = (rows(rng.normal(size=(n, 4))) for n in (60, 60, 40))
    return NullRows(train, holdout, table, table.take(rng.integers(40, size=40)))


@pytest.fixture(scope="module")
def null() -> Null:
    return Null("public_gaussian", SIZES, "digest", gaussian)


@pytest.fixture(scope="module")
def frozen(null: Null) -> Calibration:
    return calibrate("c", null, GateOptions(), range(16))


@pytest.fixture
def options(frozen: Calibration) -> GateOptions:
    return GateOptions(**frozen.tolerances)


@pytest.mark.parametrize(("m", "n"), [(600, 720), (300, 271), (300, 124)])
def test_tolerance_is_the_smallest_that_keeps_the_false_alarm(m: int, n: int) -> None:
    tolerance = excess_tolerance(m, n)
    assert excess_failure(m, n, tolerance) <= 0.025 < excess_failure(m, n, tolerance - 0.004)


def test_the_published_tolerance_fails_one_honest_table_in_eight() -> None:
    assert excess_failure(600, 720, 0.035) == pytest.approx(0.119, abs=0.002)


def test_the_rule_gives_the_published_tolerances_from_the_published_null() -> None:
    """8-1 §3.4: .510/.034 and .047/.009 over 16 probes of 600 rows gave .115 and .035, multiples of .005.

    Two probes at mean +- sd / sqrt 2 have exactly that mean and standard deviation.
    """
    published = {(0.5, 0.510, 0.034): 0.115, (0.05, 0.047, 0.009): 0.035}
    for (centre, mean, sd), tolerance in published.items():
        rule = probe_rule([mean - sd / np.sqrt(2), mean + sd / np.sqrt(2)], centre, 600)
        assert (rule["mean"], rule["sd"]) == pytest.approx((mean, sd), abs=1e-6)
        assert tolerance - 0.005 < rule["tolerance"] <= tolerance


def test_half_width_is_that_of_clopper_and_pearson() -> None:
    """An independent routine: scipy's exact one-sided interval of 30 in 600."""
    upper = binomtest(30, 600, alternative="less").proportion_ci(0.95, method="exact").high
    assert probe_rule([0.05, 0.05], 0.05, 600)["half_width"] == pytest.approx(upper - 0.05, abs=1e-6)
    assert probe_rule([0.05, 0.05], 0.05, 600)["half_width"] == pytest.approx(beta.ppf(0.95, 31, 570) - 0.05, abs=1e-6)


def test_probes_are_the_shares_themselves(frozen: Calibration) -> None:
    """Counted here by brute force: nearer to training than to holdout rows, ties one half."""
    drawn = gaussian(3)
    for kind, table in (("independent", drawn.synthetic), ("resampled", drawn.resampled)):
        distance = [np.linalg.norm(table.x[:, None] - arm.x[None], axis=2) for arm in (drawn.train, drawn.holdout)]
        to_train, to_holdout = (np.round(d.min(axis=1), 6) for d in distance)
        expected = (to_train < to_holdout).mean() + 0.5 * (to_train == to_holdout).mean()
        assert frozen.probes[kind].train_closer[3] == pytest.approx(expected, abs=1e-6)  # type: ignore[index]


def test_the_larger_of_the_two_kinds_is_recommended(frozen: Calibration) -> None:
    rules = {kind: s["train_closer"]["tolerance"] for kind, s in frozen.statistics.items()}
    assert frozen.tolerances["train_closer_tolerance"] == max(rules.values())
    assert frozen.tolerances["excess_tolerance"] == excess_tolerance(SIZES.synthetic, SIZES.holdout)


def test_a_calibration_survives_its_file(frozen: Calibration, null: Null, options: GateOptions) -> None:
    document = json.loads(json.dumps(frozen.as_dict()))
    assert Calibration.from_dict(document) == frozen
    assert contradictions(document, "c", null, options) == ()


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    *parents, last = path.split(".")

    def change(document: dict[str, Any]) -> None:
        for name in parents:
            document = document[name]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_set("tolerances.train_closer_tolerance", 0.4), "do not follow from its probes"),
        (_set("probes.independent.train_closer", [0.5] * 16), "do not follow from its probes"),
        (_set("sizes.synthetic", 50), "made for 60 training, 60 holdout and 50 synthetic rows"),
        (_set("null.depends_on", "another"), "other public rows or another world"),
        (_set("null.source", "world"), "other public rows or another world"),
        (_set("cohort", "d"), "made for cohort 'd'"),
        (_set("probes", {}), "cannot be read"),
        (_set("seeds", None), "cannot be read"),
    ],
)
def test_what_does_not_back_the_tolerances_is_said(
    frozen: Calibration, null: Null, options: GateOptions, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    document = deepcopy(frozen.as_dict())
    change(document)
    assert said in "; ".join(contradictions(document, "c", null, options))


def test_looser_is_a_contradiction_and_tighter_is_not(frozen: Calibration, null: Null, options: GateOptions) -> None:
    for name, calibrated in frozen.tolerances.items():
        tighter = options.model_copy(update={name: calibrated - 0.001})
        assert contradictions(frozen.as_dict(), "c", null, tighter) == ()
        looser = options.model_copy(update={name: calibrated + 0.001})
        [said] = contradictions(frozen.as_dict(), "c", null, looser)
        assert name in said
        assert "looser" in said
