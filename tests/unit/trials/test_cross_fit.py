"""Cross-fitting: whole institutions are held out, nothing of them reaches their models, and the document recomputes."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.stats import f_oneway, spearmanr
from sklearn.metrics import f1_score, roc_auc_score

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.evaluation.pooled import batch_groups
from synth_platform.normalize.rows import EncodedRows
from synth_platform.sources.virtual import draw_cohort
from synth_platform.trials.cross_fit import (
    Tables,
    cross_fit,
    cross_fit_utility,
    explain_cross_fit,
    not_registered,
    split_fold,
    table_rows,
)
from synth_platform.trials.stage import Stage, make_stage

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
FOLDS, BATCHES = 3, 9
Document = dict[str, Any]


@cache
def stage(batches: int = BATCHES, private: int = 300) -> Stage:
    document = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))
    document["batches"] = [f"B-{b:02d}" for b in range(batches)]
    document["latent_batches"] = []
    document["source"]["options"] |= {"train": private - 80, "holdout": 40, "test": 40, "public": 200}
    for modality, features in (("expression", 6), ("methylation", 4)):
        document[modality]["panel"] = document[modality]["panel"][:features]
    document["gates"] = {"utility_design": "cross_fit", "folds": FOLDS}
    spec = CohortSpec.model_validate(document)
    return make_stage(spec, draw_cohort(spec))


def copies(_: int, __: EncodedRows, real: EncodedRows) -> list[EncodedRows]:
    return [real] * 5


def judged(tables: Tables = copies, rows: EncodedRows | None = None, batches: int = BATCHES) -> Document:
    s = stage(batches)
    return json.loads(json.dumps(cross_fit(s.spec, s.reference, s.rows if rows is None else rows, tables)))


def shuffled(fold: int, _: EncodedRows, real: EncodedRows) -> list[EncodedRows]:
    """Tables whose features know nothing of the outcome."""
    rngs = [np.random.default_rng([fold, r]) for r in range(5)]
    return [replace(real, x=real.x[rng.permutation(len(real))]) for rng in rngs]


def test_copies_of_the_training_rows_preserve_everything_exactly() -> None:
    document = judged()
    assert document["status"] == "PASS_CONFIRMED"
    for endpoint in document["summary"]["endpoints"].values():
        assert endpoint["preservation"] == endpoint["lcb_preservation"] == 1
        assert endpoint["minimum"] == endpoint["trtr"]


def test_tables_without_signal_fail() -> None:
    assert judged(shuffled)["status"] == "FAIL"


def test_every_row_is_held_out_once_with_its_whole_batch() -> None:
    evidence = judged()["evidence"]
    fold, batch, group = (np.array(evidence[name]) for name in ("fold", "batch", "group"))
    assert len(fold) == len(stage().rows)
    for code in range(BATCHES):
        assert len(set(fold[batch == code])) == len(set(group[batch == code])) == 1
    assert set(fold) == set(range(FOLDS))
    assert sorted(evidence["time"]) == sorted(stage().rows.time.tolist())


def test_models_never_see_the_fold_they_score() -> None:
    """Outcomes of a fold may be anything, and its features too: its models stay as they are."""
    rows, fold = stage().rows, batch_groups(stage().rows.batch, FOLDS)
    seen: list[EncodedRows] = []

    def watched(k: int, train: EncodedRows, real: EncodedRows) -> list[EncodedRows]:
        if k == 0:
            seen.extend((train, real))
        return copies(k, train, real)

    before = judged(watched)["evidence"]["arms"]
    out = fold == 0
    rng = np.random.default_rng(1)
    outcome = replace(
        rows,
        label=np.where(out, rng.permutation(rows.label), rows.label),
        event=np.where(out, 1 - rows.event, rows.event),
        time=np.where(out, rng.permutation(rows.time), rows.time),
    )
    after = judged(watched, outcome)["evidence"]["arms"]
    held = int(out.sum())
    for name, arm in before.items():
        assert arm["scores"][:held] == after[name]["scores"][:held]
        assert arm["risk"][:held] == after[name]["risk"][:held]
        assert arm["importance"][0] == after[name]["importance"][0]
    judged(watched, replace(rows, x=np.where(out[:, None], rows.x + rng.normal(size=rows.x.shape), rows.x)))
    for train, real in zip(seen[2::2], seen[3::2], strict=True):  # what the models of the fold are made of
        assert (train.x == seen[0].x).all()
        assert (real.x == seen[1].x).all()
        assert (train.label == seen[0].label).all()


def test_held_out_batches_are_aligned_without_their_labels() -> None:
    s = stage()
    fold = batch_groups(s.rows.batch, FOLDS)
    _, real, held = split_fold(s.spec, s.reference, s.rows, fold, 1)
    other = replace(s.rows, label=np.where(fold == 1, 0, s.rows.label))
    assert (split_fold(s.spec, s.reference, other, fold, 1)[2].x == held.x).all()
    omics = s.reference.encoder.omics_columns
    levels = np.array([held.x[held.batch == b][:, omics].mean(axis=0) for b in np.unique(held.batch)])
    raw = np.array([s.rows.x[s.rows.batch == b][:, omics].mean(axis=0) for b in np.unique(held.batch)])
    assert np.abs(levels - real.x[:, omics].mean(axis=0)).mean() < 0.5 * np.abs(raw - raw.mean(axis=0)).mean()


def test_evidence_reproduces_every_figure_through_other_libraries() -> None:
    def noisy(fold: int, _: EncodedRows, real: EncodedRows) -> list[EncodedRows]:
        rngs = [np.random.default_rng([fold, r]) for r in range(5)]
        return [replace(real, x=real.x + rng.normal(size=real.x.shape)) for rng in rngs]

    document = judged(noisy)
    e = document["evidence"]
    label, fold, group = np.array(e["label"]), np.array(e["fold"]), np.array(e["group"])
    time, event, x = np.array(e["time"]), np.array(e["event"]), np.array(e["test_features"])

    def values(arm: Document, keep: np.ndarray) -> dict[str, float]:
        scores, risk = np.array(arm["scores"]), np.array(arm["risk"])
        parts = [np.flatnonzero((fold == k) & keep) for k in range(FOLDS)]
        above = pairs = 0.0
        area, weight = np.zeros((FOLDS, 3)), np.zeros((FOLDS, 3))
        rank = []
        for k, m in enumerate(parts):
            comparable = (event[m][:, None] == 1) & (time[m][:, None] < time[m][None])
            difference = risk[m][:, None] - risk[m][None]
            above += float(((difference > 0) + 0.5 * (difference == 0))[comparable].sum())
            pairs += int(comparable.sum())
            for c in range(3):
                positive = label[m] == c
                weight[k, c] = positive.sum() * (~positive).sum()
                area[k, c] = roc_auc_score(positive, scores[m, c])
            reference = [f_oneway(*[x[m][label[m] == c, j] for c in range(3)]).statistic for j in range(x.shape[1])]
            rank.append(spearmanr(arm["importance"][k], reference).statistic)
        return {
            "c_index": above / pairs,
            "macro_f1": f1_score(label[keep], scores[keep].argmax(axis=1), average="macro"),
            "auroc": float(np.mean((area * weight).sum(axis=0) / weight.sum(axis=0))),
            "spearman": float(np.mean(rank)),
        }

    everything = np.ones(len(label), bool)
    runs = [values(arm, everything) for name, arm in e["arms"].items() if name.startswith("synthetic")]
    real, public = (values(e["arms"][name], everything) for name in ("real", "public"))
    left = [values(e["arms"]["real"], group != g) for g in range(e["groups"])]
    assert e["groups"] == BATCHES
    assert len(runs) == 5
    for name, endpoint in document["summary"]["endpoints"].items():
        tstr = float(np.mean([run[name] for run in runs]))
        assert endpoint["trtr"] == pytest.approx(real[name], abs=1e-6)
        assert endpoint["tstr"] == pytest.approx(tstr, abs=1e-6)
        assert endpoint["minimum"] == pytest.approx(min(run[name] for run in runs), abs=1e-6)
        assert endpoint["lift"] == pytest.approx(tstr - public[name], abs=2e-6)
        spread = np.array([v[name] for v in left])
        error = np.sqrt((BATCHES - 1) / BATCHES * np.sum((spread - spread.mean()) ** 2))
        assert endpoint["lcb_trtr"] == pytest.approx(real[name] - 1.859548 * error, abs=1e-5)  # t, 8 degrees


def test_the_same_cohort_is_judged_the_same_again() -> None:
    s = stage()
    plan = s.spec.plans["eps2"]
    first = cross_fit_utility("G0", s.spec, s.reference, plan, s.rows)
    assert cross_fit_utility("G0", s.spec, s.reference, plan, s.rows) == first
    runs = [arm["risk"] for name, arm in first["evidence"]["arms"].items() if name.startswith("synthetic")]
    assert len({tuple(risk) for risk in runs}) == len(s.spec.synthetic.seeds)


def test_tables_keep_their_registered_size_per_training_row() -> None:
    s = stage()
    sized = s.spec.model_copy(
        update={
            "privacy": s.spec.privacy.model_copy(update={"n_ref": 100}),
            "synthetic": s.spec.synthetic.model_copy(update={"rows": 120}),
        }
    )
    assert table_rows(sized, s.rows.take(np.arange(200))) == 240
    assert table_rows(sized, s.rows.take(np.arange(50))) == 60


def test_fewer_batches_than_folds_is_undefined_and_says_why() -> None:
    document = judged(batches=2)
    assert document["status"] == "HOLD"
    assert {e["status"] for e in document["summary"]["endpoints"].values()} == {"HOLD_UNDEFINED"}
    assert "fewer batches" in explain_cross_fit(document)[0]


def test_a_fold_without_events_or_without_a_class_is_undefined_where_it_matters() -> None:
    rows, fold = stage().rows, batch_groups(stage().rows.batch, FOLDS)
    quiet = judged(rows=replace(rows, event=np.where(fold == 2, 0, rows.event)))["summary"]["endpoints"]
    assert {name for name, e in quiet.items() if e["status"] == "HOLD_UNDEFINED"} == {"c_index"}
    relabelled = np.where((fold == 2) & (rows.label == 2), 1, rows.label)
    lacking = judged(rows=replace(rows, label=relabelled))["summary"]["endpoints"]
    assert {name for name, e in lacking.items() if e["status"] == "HOLD_UNDEFINED"} == {"macro_f1", "auroc", "spearman"}


def test_without_any_event_the_models_still_fit() -> None:
    rows = stage().rows
    endpoints = judged(rows=replace(rows, event=np.zeros_like(rows.event)))["summary"]["endpoints"]
    assert endpoints["c_index"]["status"] == "HOLD_UNDEFINED"
    assert endpoints["auroc"]["status"] == "PASS_CONFIRMED"


def test_another_design_costs_nothing_and_stands_in_nobodys_way() -> None:
    spec = stage().spec
    assert not_registered(spec) is None
    document = not_registered(
        spec.model_copy(update={"gates": spec.gates.model_copy(update={"utility_design": "holdout"})})
    )
    assert document is not None
    assert document["status"] == "NOT_REGISTERED"
    assert explain_cross_fit(document) == ()
