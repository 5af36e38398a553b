"""The utility gate: averaging, pairing, undefined endpoints, lift, and that its evidence reproduces its figures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from lifelines.utils import concordance_index
from scipy.stats import f_oneway, spearmanr
from sklearn.metrics import f1_score, roc_auc_score

from synth_platform.contract.cohort_sections import Endpoint
from synth_platform.evaluation.utility import UtilityVerdict, score_table, utility_gate
from synth_platform.normalize.rows import EncodedRows

CLASSES = 3
FEATURES = 12
ENDPOINTS = (
    Endpoint(name="c_index", chance=0.5),
    Endpoint(name="macro_f1", chance=1 / 3),
    Endpoint(name="auroc", chance=0.5),
    Endpoint(name="spearman", chance=0.0, top_k=4),
)


def world(n: int, seed: int) -> EncodedRows:
    """Rows of one fixed little world: three classes, twelve features, exponential survival."""
    constants = np.random.default_rng(0)
    means = constants.normal(size=(CLASSES, FEATURES)) * np.linspace(0.1, 1.2, FEATURES)
    hazard = constants.normal(size=FEATURES) * 0.3
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, n)
    x = means[label] + rng.normal(size=(n, FEATURES))
    time, censored = rng.exponential(np.exp(-x @ hazard)), rng.exponential(2.0, n)
    return EncodedRows(
        features=tuple(f"f{j}" for j in range(FEATURES)),
        x=x,
        label=label,
        event=(time <= censored).astype(np.int64),
        time=np.minimum(time, censored) + 1e-3,
        batch=np.zeros(n, np.int64),
        split=np.full(n, "train"),
        key=np.array([f"K{i}" for i in range(n)]),
    )


def gate(replicates: list[EncodedRows], test: EncodedRows, public: EncodedRows | None = None) -> UtilityVerdict:
    return utility_gate(
        train=world(300, 1), replicates=replicates, test=test, endpoints=ENDPOINTS, classes=CLASSES, public=public
    )


def shuffled(rows: EncodedRows, seed: int) -> EncodedRows:
    """Features that know nothing of the outcome."""
    return replace(rows, x=rows.x[np.random.default_rng(seed).permutation(len(rows))])


def test_the_training_rows_themselves_preserve_everything_exactly() -> None:
    verdict = gate([world(300, 1)] * 5, world(200, 2))
    assert verdict.status == "PASS_CONFIRMED"
    for endpoint in verdict.endpoints.values():
        assert endpoint.judged.preservation == 1
        assert endpoint.judged.lcb_preservation == 1


def test_rows_without_signal_fail() -> None:
    verdict = gate([shuffled(world(300, 10 + r), r) for r in range(5)], world(200, 2))
    assert verdict.status == "FAIL"
    assert verdict.endpoints["auroc"].judged.status in ("FAIL_RATIO", "FAIL_SKILL")


def test_figures_are_the_mean_over_seeds_with_the_minimum_beside_it() -> None:
    tables, test, public = [world(120, 20 + r) for r in range(6)], world(200, 2), world(120, 50)
    verdict = gate(tables, test, public)
    for name, endpoint in verdict.endpoints.items():
        single = [score_table(table, test, CLASSES)[name] for table in tables]
        assert endpoint.replicates == pytest.approx(single, abs=1e-6)
        assert endpoint.judged.tstr == pytest.approx(np.mean(single), abs=2e-6)
        assert endpoint.minimum == pytest.approx(min(single), abs=1e-6)
        assert endpoint.lift == pytest.approx(np.mean(single) - score_table(public, test, CLASSES)[name], abs=3e-6)


def test_evidence_reproduces_every_figure_through_other_libraries() -> None:
    verdict = gate([world(120, 20 + r) for r in range(5)], world(150, 2), world(100, 9))
    evidence = json.loads(json.dumps(verdict.evidence))
    label, group = np.array(evidence["label"]), np.array(evidence["group"])
    time, event = np.array(evidence["time"]), np.array(evidence["event"])
    features = np.array(evidence["test_features"])

    def values(arm: dict[str, list[float]], keep: np.ndarray) -> dict[str, float]:
        scores, risk = np.array(arm["scores"])[keep], np.array(arm["risk"])[keep]
        y = label[keep]
        reference = [f_oneway(*[features[keep][y == k, j] for k in range(CLASSES)]).statistic for j in range(FEATURES)]
        return {
            "c_index": concordance_index(time[keep], -risk, event[keep]),
            "macro_f1": f1_score(y, scores.argmax(axis=1), average="macro"),
            "auroc": float(np.mean([roc_auc_score(y == k, scores[:, k]) for k in range(CLASSES)])),
            "spearman": spearmanr(arm["importance"], reference).statistic,
        }

    synthetic = [arm for name, arm in evidence["arms"].items() if name.startswith("synthetic")]
    assert len(synthetic) == 5
    everything = np.ones(len(label), bool)
    for name, endpoint in verdict.endpoints.items():
        assert endpoint.judged.trtr == pytest.approx(values(evidence["arms"]["real"], everything)[name], abs=1e-6)
        tstr = np.mean([values(arm, everything)[name] for arm in synthetic])
        assert endpoint.judged.tstr == pytest.approx(tstr, abs=1e-6)
        real = [values(evidence["arms"]["real"], group != g)[name] for g in range(20)]
        error = np.sqrt(19 / 20 * np.sum((np.array(real) - np.mean(real)) ** 2))
        assert endpoint.judged.lcb_trtr == pytest.approx(endpoint.judged.trtr - 1.729133 * error, abs=1e-5)


def test_test_outcomes_never_reach_the_learners() -> None:
    test = world(150, 2)
    other = replace(test, label=test.label[::-1].copy(), event=1 - test.event, time=test.time[::-1].copy())
    tables = [world(120, 20 + r) for r in range(5)]
    assert gate(tables, test).evidence["arms"] == gate(tables, other).evidence["arms"]


def test_a_class_missing_from_the_test_split_holds() -> None:
    test = world(200, 2)
    verdict = gate([world(300, 1)] * 5, test.take(test.label != 2))
    assert verdict.status == "HOLD"
    assert verdict.endpoints["macro_f1"].judged.status == "HOLD_UNDEFINED"
    assert verdict.endpoints["auroc"].judged.status == "HOLD_UNDEFINED"
    assert verdict.endpoints["c_index"].judged.status != "HOLD_UNDEFINED"


def test_no_comparable_pair_holds() -> None:
    test = replace(world(200, 2), event=np.zeros(200, np.int64))
    assert gate([world(120, 20 + r) for r in range(5)], test).endpoints["c_index"].judged.status == "HOLD_UNDEFINED"


def test_a_table_that_lost_a_class_is_scored_not_undefined() -> None:
    tables = [world(200, 20 + r) for r in range(5)]
    verdict = gate([table.take(table.label != 2) for table in tables], world(200, 2))
    assert verdict.endpoints["macro_f1"].judged.status == "FAIL_RATIO"


def test_a_table_of_one_class_without_events_is_judged_without_crashing() -> None:
    tables = [replace(world(50, r), label=np.zeros(50, np.int64), event=np.zeros(50, np.int64)) for r in range(5)]
    verdict = gate(tables, world(200, 2))
    assert verdict.status == "FAIL"
    assert verdict.endpoints["c_index"].judged.tstr == 0.5
    json.dumps(verdict.evidence, allow_nan=False)


def test_fewer_than_five_seeds_and_other_features_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 5"):
        gate([world(50, 3)] * 4, world(200, 2))
    renamed = replace(world(50, 3), features=tuple(f"g{j}" for j in range(FEATURES)))
    with pytest.raises(ValueError, match="features"):
        gate([renamed] * 5, world(200, 2))


def test_summary_has_the_published_keys() -> None:
    summary = gate([world(120, 20 + r) for r in range(5)], world(200, 2), world(100, 9)).as_dict()
    assert set(summary["endpoints"]) == {"c_index", "macro_f1", "auroc", "spearman"}
    for endpoint in summary["endpoints"].values():
        assert {"tstr", "trtr", "preservation", "skill", "lift", "status"} <= set(endpoint)
    json.dumps(summary, allow_nan=False)
