"""The half-split audit: halves, blocks, verdicts of generators whose right verdict is known, and a document that says
everything."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from scipy.stats import t as student_t
from sklearn.metrics import roc_auc_score

from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.normalize.rows import EncodedRows
from synth_platform.sources.virtual import draw_cohort
from synth_platform.trials.blocks import BlockError, BlockStore
from synth_platform.trials.half_split import (
    BLOCK,
    HalfSplit,
    Halves,
    Training,
    block_count,
    dp_half_split,
)
from synth_platform.trials.half_split_gate import explain_half_split, half_split_document, not_registered
from synth_platform.trials.stage import Stage, make_stage

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
REPETITIONS = 2 * BLOCK + 4
PLAN = Plan(epsilon=1.0, delta=1e-5)


@cache
def stage(repetitions: int = REPETITIONS) -> Stage:
    document = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))
    document["source"]["options"] |= {"train": 70, "holdout": 31, "test": 40, "public": 120}
    document["privacy"]["n_ref"] = 70
    for modality, features in (("expression", 6), ("methylation", 4)):
        document[modality]["panel"] = document[modality]["panel"][:features]
    document["g0"] = {"latent": 3}
    document["synthetic"]["rows"] = 70
    document["gates"] = {"membership_design": "half_split", "repetitions": repetitions}
    spec = CohortSpec.model_validate(document)
    return make_stage(spec, draw_cohort(spec))


def copies(rows: EncodedRows, _: int, __: int) -> EncodedRows:
    """S_COPY, trained on every half."""
    return rows


def public_rows(_: EncodedRows, __: int, table: int) -> EncodedRows:
    """A generator that never looks at what it is trained on."""
    public = stage().reference.rows
    return public.take(np.random.default_rng(table).integers(len(public), size=70))


def audit(train: Training, rows: EncodedRows | None = None, **identity: Any) -> HalfSplit:
    s = stage()
    return HalfSplit(s.spec, s.reference, s.rows if rows is None else rows, train, {"generator": "test", **identity})


def judged(train: Training, root: Path) -> dict[str, Any]:
    experiment, store = audit(train), BlockStore(root)
    for block in range(block_count(REPETITIONS)):
        experiment.run_block(store, block)
    document = half_split_document(stage().spec, "G0", PLAN, experiment.halves, experiment.collect(store))
    return json.loads(json.dumps(document, allow_nan=False))


@settings(deadline=None, max_examples=40)
@given(st.integers(4, 400), st.integers(4, 20), st.integers(0, 3))
def test_halves_are_balanced_and_fixed_by_their_seed(rows: int, pairs: int, pair: int) -> None:
    """Claim: pair p trains on rows // 2 rows, drawn by numpy's generator from a seed that depends on p alone, so that
    more repetitions keep the first ones, and then on all the others; every training has noise and table of its own."""
    halves = Halves(rows, 2 * pairs)
    first, second = halves.members(2 * pair), halves.members(2 * pair + 1)
    [seed] = np.random.SeedSequence([8134, pair]).generate_state(1)
    assert set(np.flatnonzero(first)) == set(np.random.default_rng(int(seed)).permutation(rows)[: rows // 2])
    np.testing.assert_array_equal(second, ~first)
    np.testing.assert_array_equal(halves.all_members()[2 * pair : 2 * pair + 2], [first, second])
    others = [seed for r in range(2 * pairs) for seed in halves.seeds(r)[1:]]
    assert len(set(others)) == len(others)


def test_every_row_is_in_half_of_the_time() -> None:
    """Claim: among 2,000 first halves no row is favoured: each is in 1,000 times give or take 5 sd (false-alarm
    probability 3e-5 over 50 rows), no two halves are equal, and with their partners every row is in exactly half."""
    members = Halves(50, 4000).all_members()
    assert np.abs(members[::2].sum(axis=0) - 1000).max() < 5 * np.sqrt(500)
    assert len(np.unique(members, axis=0)) == 4000
    assert (members.sum(axis=0) == 2000).all()


def test_blocks_cover_every_repetition_once() -> None:
    """Claim: whatever the number of repetitions, blocks are consecutive, disjoint and complete."""
    for repetitions in range(2, 40, 2):
        halves = Halves(10, repetitions)
        found = [r for block in range(block_count(repetitions)) for r in halves.block(block)]
        assert found == list(range(repetitions))


def test_a_copying_generator_fails(tmp_path: Path) -> None:
    """Claim: a table of the half itself is FAIL, with A1 and LIRA at 1: copies are seen in the audit's space."""
    document = judged(copies, tmp_path)
    attacks = document["summary"]["attacks"]
    assert document["status"] == "FAIL"
    assert attacks["A1"]["auroc"] == 1.0
    assert attacks["LIRA"]["auroc"] > 0.999
    assert attacks["LIRA"]["finding"] == "ABOVE"
    assert any("LIRA tells the rows" in reason for reason in explain_half_split(document, 0.5))


def test_a_generator_that_ignores_its_rows_is_at_chance(tmp_path: Path) -> None:
    """Claim: every attack is at 1/2 within 4.5 sd of its exact null law, false-alarm probability 3e-5."""
    document = judged(public_rows, tmp_path)
    n, m = len(stage().rows), len(stage().rows) // 2
    null = np.sqrt((n + 1) / (12 * m * (n - m)))
    for attack, figures in document["summary"]["attacks"].items():
        repetitions = len(document["evidence"]["aurocs"][attack])
        assert abs(figures["auroc"] - 0.5) < 4.5 * null / np.sqrt(repetitions)
    assert document["status"] != "FAIL"


def test_lira_sees_what_no_plain_attack_does(tmp_path: Path) -> None:
    """Claim: where every member leaves a trace at a distance of its own, the trace of one row is as far as the nearest
    neighbour of another; A1 compares rows with rows, LIRA a row with itself, and is better by more than .1."""

    def train(rows: EncodedRows, noise: int, _: int) -> EncodedRows:
        own = [np.random.default_rng(abs(int(1e6 * row.sum()))) for row in rows.x]
        direction = np.array([rng.normal(size=rows.x.shape[1]) for rng in own])
        far = np.array([rng.uniform(1.0, 4.0) for rng in own])[:, None]
        jitter = np.random.default_rng(noise).normal(0, 0.05, rows.x.shape)
        return replace(rows, x=rows.x + far * direction / np.linalg.norm(direction, axis=1, keepdims=True) + jitter)

    attacks = judged(train, tmp_path)["summary"]["attacks"]
    assert attacks["LIRA"]["auroc"] > attacks["A1"]["auroc"] + 0.1


def test_a_resumed_audit_is_the_undisturbed_one(tmp_path: Path) -> None:
    """Claim: blocks computed in another order, by other processes' objects, with the rows read in another order and
    under other keys, are the same bits; a stored block is not computed again."""
    s = stage()
    first = dp_half_split("G0", s.spec, s.reference, PLAN, s.rows, "rows")
    store = BlockStore(tmp_path / "one")
    assert [first.run_block(store, block) for block in range(3)] == [True, True, True]
    order = np.random.default_rng(0).permutation(len(s.rows))
    again = replace(s.rows.take(order), key=s.rows.key)
    other = BlockStore(tmp_path / "two")
    for block in (2, 0, 1):
        resumed = dp_half_split("G0", s.spec, s.reference, PLAN, again, "rows")
        assert resumed.run_block(other, block)
        assert not resumed.run_block(other, block)
    for code, scores in first.collect(store).items():
        assert scores.shape == (REPETITIONS, len(s.rows))
        np.testing.assert_array_equal(resumed.collect(other)[code], scores)


def test_a_block_is_named_by_all_it_depends_on() -> None:
    """Claim: another block, generator, plan, set of rows, registration or code has another name."""
    s = stage()
    names = {
        dp_half_split(code, spec, s.reference, plan, s.rows, rows).digest(block)
        for code in ("G0", "G0A")
        for spec in (s.spec, stage(REPETITIONS + 2).spec)
        for plan in (PLAN, Plan(epsilon=2.0, delta=1e-5))
        for rows in ("these", "those")
        for block in (0, 1)
    }
    assert len(names) == 32


def test_blocks_are_whole_or_refused(tmp_path: Path) -> None:
    """Claim: a missing or altered block is an error that names its file; what a killed process left, and blocks of
    another audit, are cleared away once an audit is complete."""
    store = BlockStore(tmp_path)
    store.save("a" * 64, {"A1": np.arange(6.0).reshape(2, 3)})
    np.testing.assert_array_equal(store.load("a" * 64)["A1"], np.arange(6.0).reshape(2, 3))
    with pytest.raises(BlockError, match=r"b{64}\.safetensors: the block is missing"):
        store.load("b" * 64)
    file = tmp_path / f"{'a' * 64}.safetensors"
    for cut in (file.read_bytes()[:-1], file.read_bytes()[:40], file.read_bytes()[:-8] + bytes(8), b""):
        (tmp_path / f"{'c' * 64}.safetensors").write_bytes(cut)
        with pytest.raises(BlockError, match=r"c{64}\.safetensors: the block was altered"):
            store.load("c" * 64)
    (tmp_path / f"{'d' * 64}.safetensors.1234.tmp").write_bytes(b"half")
    store.keep_only(["a" * 64])
    assert [f.name for f in tmp_path.iterdir()] == [file.name]


def test_the_document_says_everything(tmp_path: Path) -> None:
    """Claim: from the JSON evidence alone, by scikit-learn and scipy, every figure and the status follow again."""
    s = stage(6 * BLOCK)
    experiment, store = dp_half_split("G0", s.spec, s.reference, PLAN, s.rows, "rows"), BlockStore(tmp_path)
    for block in range(6):
        experiment.run_block(store, block)
    document = half_split_document(s.spec, "G0", PLAN, experiment.halves, experiment.collect(store))
    document = json.loads(json.dumps(document, allow_nan=False))
    evidence, summary = document["evidence"], document["summary"]
    members = np.array(evidence["members"], bool)
    shadows, repetitions = evidence["shadows"], evidence["repetitions"]
    plain = sorted(set(evidence["scores"]) - {"LIRA"})
    assert plain == sorted(s.spec.gates.attacks)
    stacked = np.array([evidence["scores"][code] for code in plain])

    learned = independent_lira(stacked[:, :shadows], members[:shadows], stacked[:, shadows:])
    np.testing.assert_allclose(learned, np.array(evidence["scores"]["LIRA"]), atol=2e-5)
    for code, figures in summary["attacks"].items():
        inside = members[shadows:] if code == "LIRA" else members
        values = [roc_auc_score(m, x) for m, x in zip(inside, np.array(evidence["scores"][code]), strict=True)]
        np.testing.assert_allclose(evidence["aurocs"][code], values, atol=1e-6)
        values = np.array(evidence["aurocs"][code]).reshape(-1, 2).mean(axis=1)
        error = values.std(ddof=1) / np.sqrt(len(values))
        margin = student_t.ppf(1 - evidence["family_error"] / len(summary["attacks"]), len(values) - 1) * error
        assert figures["auroc"] == pytest.approx(values.mean(), abs=1e-6)
        assert figures["standard_error"] == pytest.approx(error, abs=1e-6)
        assert figures["upper"] == pytest.approx(min(1, values.mean() + margin), abs=1e-6)
        assert figures["tpr_at_1pct_fpr"] == pytest.approx(np.mean(evidence["tprs"][code]), abs=1e-6)
    worst = max(figures["auroc"] for figures in summary["attacks"].values())
    widest = max(figures["upper"] for figures in summary["attacks"].values())
    limit = evidence["membership_limit"]
    assert document["status"] == ("FAIL" if worst > limit else "PASS_CONFIRMED" if widest <= limit else "PASS_POINT")
    assert evidence["seeds"]["half"] == [Halves(4, 8).seeds(r)[0] for r in range(repetitions)]


@pytest.mark.parametrize(("n_ref", "diluted"), [(90, False), (89, True)])
def test_halves_larger_than_the_training_arm_confirm_nothing(n_ref: int, diluted: bool) -> None:
    """Claim: 100 rows of a half against 90 are within a ninth; against 89 a row weighs too little in the audit."""
    spec = stage().spec
    spec = spec.model_copy(update={"privacy": spec.privacy.model_copy(update={"n_ref": n_ref})})
    halves, rng = Halves(200, 32), np.random.default_rng(4)
    scores = {code: rng.normal(size=(32, 200)) for code in spec.gates.attacks}
    document = half_split_document(spec, "G0", PLAN, halves, scores)
    assert document["summary"]["diluted"] is diluted
    reasons = explain_half_split(document, 0.1)
    assert any("larger than the training arm" in reason for reason in reasons) is diluted
    if diluted:
        assert document["status"] == "PASS_POINT"
    else:
        assert document["status"] == "PASS_CONFIRMED"


def independent_lira(shadows: np.ndarray, members: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The log likelihood ratio by scipy's Gaussian density, row by row."""
    _, count, rows = shadows.shape
    mean_in = np.array([shadows[:, members[:, i], i].mean(axis=1) for i in range(rows)])
    mean_out = np.array([shadows[:, ~members[:, i], i].mean(axis=1) for i in range(rows)])
    deviations = [
        shadows[:, r, i] - (mean_in if members[r, i] else mean_out)[i] for r in range(count) for i in range(rows)
    ]
    covariance = np.cov(np.array(deviations).T, bias=True) * count / (count - 2)
    inside = members.sum(axis=0)
    noise = np.outer(1 / inside + 1 / (count - inside), np.diag(covariance))
    shift = mean_in - mean_out
    own = np.maximum(shift.var(axis=0) - noise.mean(axis=0), 0)
    shift = (own * shift + noise * shift.mean(axis=0)) / (own + noise)
    middle = (mean_in + mean_out) / 2
    scale = np.sqrt(np.diag(covariance))
    covariance = covariance + 1e-6 * np.diag(scale**2)
    ratio = np.empty(targets.shape[1:])
    for i in range(rows):
        up, down = (multivariate_normal(middle[i] + sign * shift[i] / 2, covariance) for sign in (1, -1))
        ratio[:, i] = up.logpdf(targets[:, :, i].T) - down.logpdf(targets[:, :, i].T)
    return ratio


def test_lira_learns_from_shadows_alone() -> None:
    """Claim: scores that leak only in the repetitions under attack leave LIRA at chance (4.5 sd): whoever let it see
    their members would find it near 1."""
    s, halves = stage(), Halves(141, REPETITIONS)
    members, rng = halves.all_members(), np.random.default_rng(1)
    scores = rng.normal(size=members.shape)
    late = np.arange(REPETITIONS)[:, None] >= halves.shadows
    # The leak has a sign of its own in every row, so that no shift common to all rows gives it away.
    scores = scores + late * members * np.where(np.arange(141) % 2 == 0, 6.0, -6.0)
    document = half_split_document(s.spec, "G0", PLAN, halves, {"A1": scores})
    # Whoever leaks by 6 sd in a direction of its own is above the others or below: with the wrong sign an AUROC is at
    # most 1/2 away, so the mean over 141 random signs is within 4.5 / (2 sqrt 141).
    assert abs(document["summary"]["attacks"]["LIRA"]["auroc"] - 0.5) < 4.5 / (2 * np.sqrt(141))


def test_what_is_not_registered_says_so() -> None:
    """Claim: the document of a direct design has the shape of one and no figure."""
    document = not_registered(stage().spec)
    assert set(document) == {"status", "summary", "evidence", "registration"}
    assert document["status"] == document["summary"]["status"] == "NOT_REGISTERED"
    assert explain_half_split(document, 0.9) == ()


def test_rows_that_cannot_be_halved_are_refused() -> None:
    """Claim: three private rows are an error that says how many are needed."""
    with pytest.raises(ValueError, match="at least 4"):
        Halves(3, 8)
