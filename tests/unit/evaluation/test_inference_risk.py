"""The inference gate: guesses and predicates against brute force, its claims, and what it does with few or odd rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from synth_platform.contract.cohort_spec import load_cohort_spec
from synth_platform.contract.tables import split_public
from synth_platform.evaluation.attribute_inference import Secret, registered_secrets, right_guesses
from synth_platform.evaluation.explain import explain_inference
from synth_platform.evaluation.inference_risk import MARGIN, InferenceVerdict, inference_risk
from synth_platform.evaluation.singling_out import HALF_WIDTH, singled_out
from synth_platform.normalize.reference import build_reference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.sources.read import read_cohort

VIRTUAL = Path(__file__).parents[3] / "cohorts" / "virtual"
P = 6
SECRETS = (Secret("label", (P,)), Secret("event", (P + 1,)), Secret("age", (0,)), Secret("stage", (1, 2)))


def rows(x: np.ndarray, seed: int = 0) -> EncodedRows:
    n, rng = len(x), np.random.default_rng(seed)
    return EncodedRows(
        features=tuple(f"f{j}" for j in range(x.shape[1])),
        x=x,
        label=rng.integers(0, 3, n),
        event=rng.integers(0, 2, n),
        time=np.ones(n),
        batch=np.zeros(n, np.int64),
        split=np.full(n, "train"),
        key=np.array([f"K{i}" for i in range(n)]),
    )


def gaussian(n: int, seed: int, p: int = P) -> EncodedRows:
    return rows(np.random.default_rng(seed).normal(size=(n, p)), seed)


def copied(train: EncodedRows, fresh: EncodedRows, count: int) -> EncodedRows:
    """`fresh` with its first `count` rows replaced by training rows, outcome and all."""
    return replace(
        fresh,
        **{
            name: np.concatenate([getattr(train, name)[:count], getattr(fresh, name)[count:]])
            for name in ("x", "label", "event")
        },
    )


def test_guesses_equal_brute_force() -> None:
    targets, synthetic = gaussian(40, 1), gaussian(50, 2)
    right = right_guesses(targets, synthetic, SECRETS)
    for k, secret in enumerate(SECRETS):
        known = [j for j in range(P) if j not in secret.columns]
        for i in range(len(targets)):
            nearest = int(np.argmin([np.linalg.norm(targets.x[i, known] - s[known]) for s in synthetic.x]))
            truth = [*targets.x[i], targets.label[i], targets.event[i]]
            guess = [*synthetic.x[nearest], synthetic.label[nearest], synthetic.event[nearest]]
            assert right[i, k] == all(abs(truth[c] - guess[c]) <= 0.25 for c in secret.columns)


def test_the_secret_itself_is_not_known() -> None:
    """Copies whose secret column is another patient's: the guess follows the other columns, so it is wrong."""
    targets = gaussian(60, 1)
    turned = targets.x.copy()
    turned[:, 0] = np.roll(turned[:, 0], 1) + 3
    assert not right_guesses(targets, replace(targets, x=turned), SECRETS[2:3]).any()
    assert right_guesses(targets, targets, SECRETS).all()


def test_blocks_do_not_change_the_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    targets, synthetic = gaussian(47, 1), gaussian(20, 2)
    whole = right_guesses(targets, synthetic, SECRETS)
    monkeypatch.setattr("synth_platform.evaluation.attribute_inference._BLOCK_CELLS", 100)
    np.testing.assert_array_equal(right_guesses(targets, synthetic, SECRETS), whole)


def test_registered_secrets_hide_every_column_of_their_variable() -> None:
    spec = load_cohort_spec(VIRTUAL / "cohort.yaml")
    encoder = build_reference(split_public(read_cohort(spec, VIRTUAL), spec)[0], spec).encoder
    secrets = {secret.name: secret.columns for secret in registered_secrets(encoder)}
    features = encoder.features
    assert list(secrets)[:6] == ["subtype", "died", "age", "smoker", "stage", "marker"]
    assert (secrets["subtype"], secrets["died"]) == ((len(features),), (len(features) + 1,))
    for name in ("age", "smoker", "stage", "marker"):
        own = tuple(j for j, f in enumerate(features) if f.split("=")[0].removesuffix("__missing") == name)
        assert secrets[name] == own
    omics = list(secrets)[6:]
    assert len(set(omics)) == 8
    assert all(secrets[name] == (features.index(name),) and features.index(name) < 20 for name in omics)
    assert registered_secrets(encoder) == registered_secrets(encoder)


def test_singled_out_equals_brute_force() -> None:
    """With at most 20 columns a predicate uses them all: it is a box around a synthetic row."""
    train, control, synthetic = (gaussian(n, seed, 4).x for n, seed in ((80, 1), (80, 2), (40, 3)))
    alone = synthetic[(cdist(synthetic, synthetic, "chebyshev") <= HALF_WIDTH).sum(axis=1) == 1]
    for side, out in zip((train, control), singled_out(train, control, synthetic), strict=True):
        inside = cdist(alone, side, "chebyshev") <= HALF_WIDTH
        np.testing.assert_array_equal(out, inside[inside.sum(axis=1) == 1].any(axis=0))
        assert out.any()


def test_copies_are_singled_out_however_often_the_table_repeats_them() -> None:
    train, control = gaussian(200, 1, 30).x, gaussian(200, 2, 30).x
    for synthetic in (train[:100], np.repeat(train[:100], 3, axis=0)):
        members, others = singled_out(train, control, synthetic)
        assert members[:100].mean() > 0.95
        assert others.mean() < 0.05


def test_sides_of_different_size_are_not_compared() -> None:
    with pytest.raises(ValueError, match="sides of equal size, not 5 and 6 rows"):
        singled_out(gaussian(5, 1).x, gaussian(6, 2).x, gaussian(7, 3).x)


def test_copies_fail_each_part_and_fresh_rows_none() -> None:
    train, control = gaussian(500, 1, 12), gaussian(500, 2, 12)
    secrets = (Secret("label", (12,)), *(Secret(f"f{j}", (j,)) for j in range(5)))
    copy = inference_risk(train, control, train, secrets)
    assert copy.status == copy.attribute_inference.status == copy.singling_out.status == "FAIL"
    assert {secret.status for secret in copy.secrets.values()} == {"FAIL"}
    fresh = inference_risk(train, control, gaussian(500, 3, 12), secrets)
    assert fresh.status == "PASS"
    assert fresh.margin == MARGIN


def test_one_leaking_attribute_is_enough() -> None:
    """The table is made of training rows with other values in every secret but the label: the mean over secrets hides
    that, the label by itself does not.
    """
    train, control = gaussian(600, 1, 50), gaussian(600, 2, 50)
    secrets = (Secret("label", (50,)), *(Secret(f"f{j}", (j,)) for j in range(15)))
    x = train.x.copy()
    x[:, :15] = gaussian(600, 3, 15).x
    verdict = inference_risk(train, control, replace(train, x=x), secrets)
    assert [name for name, secret in verdict.secrets.items() if secret.status == "FAIL"] == ["label"]
    assert verdict.attribute_inference.status != "FAIL"
    assert verdict.status == "FAIL"


def verdict_of(seed: int, n: int, copies: int) -> InferenceVerdict:
    train, control, fresh = gaussian(n, seed), gaussian(n, seed + 1), gaussian(80, seed + 2)
    return inference_risk(train, control, copied(train, fresh, copies), SECRETS)


@pytest.mark.parametrize("copies", [0, 12, 80])
@pytest.mark.parametrize("n", [80, 600])
def test_a_reason_exactly_where_it_does_not_pass(n: int, copies: int) -> None:
    for seed in (10, 20, 30):
        verdict = verdict_of(seed, n, copies)
        reasons = explain_inference({"summary": verdict.as_dict()})
        assert (verdict.status == "PASS") == (not reasons)
        assert all(("too few rows" in reason) == (verdict.status == "UNDECIDED") for reason in reasons)


def test_evidence_reproduces_the_figures_and_holds_no_rows() -> None:
    verdict = verdict_of(40, 150, 40)
    evidence = json.loads(json.dumps(verdict.evidence, allow_nan=False))
    for name, secret in verdict.secrets.items():
        for side in ("train", "control"):
            assert set(evidence["guesses"][name][side]) <= {0, 1}
            assert np.mean(evidence["guesses"][name][side]) == pytest.approx(getattr(secret, side), abs=1e-6)
    everything = np.mean([sides["train"] for sides in evidence["guesses"].values()])
    assert everything == pytest.approx(verdict.attribute_inference.train, abs=1e-6)
    assert np.mean(evidence["singled_out"]["train"]) == pytest.approx(verdict.singling_out.train, abs=1e-6)


def test_independent_secrets_give_a_narrower_mean_than_one_secret_asked_many_times() -> None:
    """Ten independent labels are worth ten times the rows; the same label ten times is worth it once."""
    train, control, table = gaussian(400, 1, 10), gaussian(400, 2, 10), gaussian(400, 3, 10)
    independent = inference_risk(train, control, table, [Secret(f"f{j}", (j,)) for j in range(10)])
    repeated = inference_risk(train, control, table, [Secret(f"label {j}", (10,)) for j in range(10)])
    alone = inference_risk(train, control, table, [Secret("label", (10,))])

    def width(verdict: InferenceVerdict) -> float:
        return verdict.attribute_inference.upper - verdict.attribute_inference.lower

    assert width(repeated) == pytest.approx(width(alone), rel=0.01)
    one = inference_risk(train, control, table, [Secret("f0", (0,))])
    assert 10**-0.5 * 0.9 < width(independent) / width(one) < 10**-0.5 * 1.2


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    train, control, table = gaussian(30, seed), gaussian(30, seed + 1), gaussian(40, seed + 2)
    one = inference_risk(train, control, table, SECRETS)
    two = inference_risk(*(side.take(rng.permutation(len(side))) for side in (train, control, table)), SECRETS)
    assert one.as_dict() == two.as_dict()


def test_the_larger_side_is_thinned_and_few_rows_decide_nothing() -> None:
    verdict = inference_risk(gaussian(90, 1), gaussian(40, 2), gaussian(30, 3), SECRETS)
    assert verdict.rows == 40
    assert len(verdict.evidence["singled_out"]["train"]) == 40
    few = inference_risk(gaussian(2, 1), gaussian(2, 2), gaussian(30, 3), SECRETS)
    assert few.status == "UNDECIDED"
    assert inference_risk(gaussian(1, 1), gaussian(1, 2), gaussian(1, 3), SECRETS).status == "UNDECIDED"


def test_constant_columns_and_a_table_of_one_row() -> None:
    train, control = gaussian(50, 1), gaussian(50, 2)
    for side in (train, control):
        side.x[:, 3:] = 0.0
    one_row = replace(train.take(np.zeros(30, np.int64)), key=np.array([f"S{i}" for i in range(30)]))
    assert inference_risk(train, control, one_row, SECRETS).status != "PASS"


def test_nothing_to_judge_is_refused_without_a_value_in_the_message() -> None:
    good = gaussian(20, 1)
    empty = good.take(np.zeros(0, np.int64))
    for train, control in ((empty, good), (good, empty)):
        with pytest.raises(ValueError, match="needs training rows and control rows"):
            inference_risk(train, control, good, SECRETS)
    with pytest.raises(ValueError, match="needs synthetic rows"):
        inference_risk(good, good, empty, SECRETS)
    for value in (np.nan, np.inf, 1e146, -1e200):
        holed = good.x.copy()
        holed[2, 2] = value
        bad = replace(good, x=holed)
        for sides in ((good, good, bad), (bad, good, good), (good, bad, good)):
            with pytest.raises(ValueError, match=r"finite rows .1e145 at most"):
                inference_risk(*sides, SECRETS)
