"""A verdict's words say exactly what stands in its way, and never a figure."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.closest_record import closest_record_gate
from synth_platform.evaluation.explain import (
    ENDPOINT_STATUS,
    explain_closest_record,
    explain_membership,
    explain_utility,
)
from synth_platform.evaluation.gates import GATES
from synth_platform.evaluation.membership import membership_gate
from synth_platform.normalize.rows import EncodedRows


def rows(x: np.ndarray) -> EncodedRows:
    """Rows that only have features."""
    n = len(x)
    return EncodedRows(
        x=x,
        features=tuple(f"f{j}" for j in range(x.shape[1])),
        label=np.zeros(n, dtype=np.int64),
        time=np.ones(n),
        event=np.zeros(n, dtype=np.int64),
        batch=np.zeros(n, dtype=np.int64),
        split=np.array(["train"] * n),
        key=np.array([f"row-{i}" for i in range(n)]),
    )


def judged_closest_record(seed: int, copies: int, tolerance: float) -> dict:
    """The gate's document on `copies` copied rows among 60 fresh ones."""
    rng = np.random.default_rng(seed)
    train, holdout, fresh = rng.normal(size=(60, 3)), rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    synthetic = np.concatenate([train[:copies], fresh[copies:]])
    options = GateOptions(train_closer_tolerance=tolerance, excess_tolerance=tolerance)
    verdict = closest_record_gate(rows(train), rows(holdout), rows(synthetic), options)
    return {"status": verdict.status, "summary": verdict.as_dict(), "evidence": verdict.evidence}


@pytest.mark.parametrize(("copies", "tolerance"), list(product((0, 1, 12, 60), (0.02, 0.2, 0.49))))
def test_closest_record_has_a_reason_exactly_when_it_fails(copies: int, tolerance: float) -> None:
    for seed in range(3):
        judged = judged_closest_record(seed, copies, tolerance)
        reasons = explain_closest_record(judged)
        assert (judged["status"] == "FAIL") == bool(reasons)
        assert ("it holds copies of training rows" in reasons) == (copies > 0)


@pytest.mark.parametrize("copies", [0, 20, 60])
def test_membership_has_a_reason_exactly_when_it_is_not_confirmed(copies: int) -> None:
    rng = np.random.default_rng(copies)
    train, holdout, public, fresh = (rng.normal(size=(60, 3)) for _ in range(4))
    synthetic = np.concatenate([train[:copies], fresh[copies:]])
    for limit in (0.501, 0.55, 0.65, 0.999):
        options = GateOptions(membership_limit=limit)
        verdict = membership_gate(rows(train), rows(holdout), rows(synthetic), rows(public), options)
        judged = {"status": verdict.status, "summary": verdict.as_dict(), "evidence": verdict.evidence}
        reasons = explain_membership(judged)
        assert (verdict.status != "PASS_CONFIRMED") == bool(reasons)
        assert (verdict.status == "FAIL") == any("tells training rows" in reason for reason in reasons)


def test_utility_names_every_endpoint_that_is_not_passed() -> None:
    statuses = {
        "c_index": "HOLD_UNINFORMATIVE",
        "macro_f1": "PASS_POINT",
        "auroc": "FAIL_RATIO",
        "spearman": "FAIL_SKILL",
    }
    reasons = explain_utility({"summary": {"endpoints": {name: {"status": s} for name, s in statuses.items()}}})
    assert [reason.split()[0] for reason in reasons] == ["c_index", "auroc", "spearman"]
    assert all(statuses[reason.split()[0]] in reason for reason in reasons)


def test_no_reason_carries_a_figure_of_the_rows() -> None:
    """Only the two frozen limits may appear as numbers."""
    texts = [*ENDPOINT_STATUS.values(), *explain_closest_record(judged_closest_record(0, 60, 0.02))]
    assert set(re.findall(r"\d[\d.]*", " ".join(texts))) <= {"95", "90"}
    assert [gate.explain for gate in GATES] == [explain_utility, explain_closest_record, explain_membership]
