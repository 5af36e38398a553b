"""The audit's membership bounds where DeLong's error vanishes: by its own code, the same as the gate's."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from synth_platform.audit.findings import Findings
from synth_platform.audit.privacy_gates import audit_membership
from synth_platform.contract.options import GateOptions
from synth_platform.evaluation.membership import membership_gate
from synth_platform.normalize.rows import EncodedRows

OPTIONS = GateOptions()
SIDE = 8


def rows(x: np.ndarray) -> EncodedRows:
    zeros = np.zeros(len(x), np.int64)
    names = tuple(f"f{j}" for j in range(x.shape[1]))
    keys = np.array([f"K{i}" for i in range(len(x))])
    return EncodedRows(names, x, zeros, zeros, np.ones(len(x)), zeros, np.full(len(x), "train"), keys)


def document(far: float) -> dict[str, Any]:
    """The gate on eight members at one point and eight non-members at one that is `far` away from it."""
    rng = np.random.default_rng(1)
    table, public = rows(rng.normal(size=(60, 5))), rows(rng.normal(size=(60, 5)))
    sides = rows(np.zeros((SIDE, 5))), rows(np.full((SIDE, 5), far))
    verdict = membership_gate(*sides, table, public, OPTIONS)
    document: dict[str, Any] = json.loads(json.dumps({"summary": verdict.as_dict(), "evidence": verdict.evidence}))
    return document


def failed(judged: dict[str, Any]) -> list[str]:
    found = Findings()
    audit_membership(found, "G3/membership", judged, {"gates": json.loads(OPTIONS.model_dump_json())})
    return [check.name for check in found.checks if not check.passed]


@pytest.mark.parametrize("far", [0.0, 9.0], ids=["all tied", "all apart"])
def test_ties_and_separation_leave_the_null_error(far: float) -> None:
    """Claim: the audit agrees with the gate, and does not agree with bounds that lie on the AUROC itself."""
    judged = document(far)
    assert {attack["standard_error"] for attack in judged["summary"]["attacks"].values()} == {0.0}
    assert failed(judged) == []
    for attack in judged["summary"]["attacks"].values():
        attack["upper"] = attack["auroc"]
    names = failed(judged)
    assert all(f"G3/membership/{code}/upper" in names for code in OPTIONS.attacks)
