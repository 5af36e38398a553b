"""Attacks on a table that knows nothing of the private rows: random splits of real patients, judged end to end.

The table is resampled from public rows of `tcga_brca`, so nothing in it depends on who is a member. The null of the
membership gate and of the e-values then holds for the rows that attacks score, whatever the split.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from synth_platform.contract.cohort_spec import load_cohort_spec
from synth_platform.contract.validate import select_registered, validate
from synth_platform.evaluation.attacks import attack_scores
from synth_platform.evaluation.e_values import mann_whitney_log_e
from synth_platform.evaluation.gates import GATES, INFERENCE_GATE
from synth_platform.evaluation.statistics import delong
from synth_platform.normalize.real_arm import correct_attacked, correct_real_arm
from synth_platform.normalize.rows import EncodedRows
from synth_platform.sources.read import read_cohort
from synth_platform.trials.stage import Stage, make_stage

TCGA = Path(__file__).resolve().parents[3] / "cohorts" / "tcga_brca"
SPLITS, SMALL_LIMIT = 120, 0.505
pytestmark = pytest.mark.statistical


@cache
def stage() -> Stage:
    spec = load_cohort_spec(TCGA / "cohort.yaml")
    return make_stage(spec, validate(select_registered(read_cohort(spec, TCGA), spec), spec).accepted)


@cache
def random_splits() -> dict[str, np.ndarray]:
    """[SPLITS, 2]: AUROC of A1 and its e-value, on rows by both corrections, members drawn at random.

    The e-value is that of a small limit: at .55 its mean hangs on splits that come once in thousands.
    """
    tried, spec = stage(), stage().spec
    found: dict[str, list[tuple[float, float]]] = {"attacked": [], "real": []}
    for seed in range(SPLITS):
        rng = np.random.default_rng(seed)
        rows = replace(tried.rows, split=rng.permutation(tried.rows.split))
        public = tried.reference.rows.x
        table = public[rng.integers(0, len(public), 300)]
        attacked = correct_attacked(rows, tried.reference, spec)
        real = correct_real_arm(rows, tried.reference, spec)[1]
        for name, scored in (("attacked", attacked), ("real", real)):
            score = attack_scores(scored.x, table, public, neighbours=5, attacks=("A1",))["A1"]
            inside = scored.split == "train"
            sides = score[inside], score[~inside]
            found[name].append((delong(*sides)[0], math.exp(mann_whitney_log_e(*sides, SMALL_LIMIT))))
    return {name: np.array(values) for name, values in found.items()}


def test_members_and_others_are_exchangeable_on_the_rows_that_attacks_score() -> None:
    """Mean AUROC 1/2 and mean e-value at most 1, within four standard errors of 120 splits (false alarm 2e-4).

    On the real arm, whose correction is fitted on the training rows, the same splits are more than ten errors off:
    members look nearer to whatever lies in the middle. That arm stays with the judges that do not attack.
    """
    (auroc, e_value), errors = _mean(random_splits()["attacked"])
    assert abs(auroc - 0.5) < 4 * errors[0]
    assert e_value < 1 + 4 * errors[1]
    (auroc, e_value), errors = _mean(random_splits()["real"])
    assert auroc > 0.5 + 10 * errors[0]
    assert e_value > 1 + 4 * errors[1]


def _mean(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(len(values))


def test_the_correction_of_attacked_rows_does_not_know_the_split() -> None:
    """To the last bit: who is a member changes no value that an attack sees."""
    tried = stage()
    split = np.random.default_rng(1).permutation(tried.rows.split)
    again = correct_attacked(replace(tried.rows, split=split), tried.reference, tried.spec)
    np.testing.assert_array_equal(again.x, tried.attacked.x)
    np.testing.assert_array_equal(again.split, split)


def test_attacks_score_the_attacked_rows_and_other_gates_the_real_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gate is handed both; which it used is told by the feature that marks one of them."""
    used: dict[str, set[float]] = {}

    def spy(name: str):
        def gate(*sides: EncodedRows, **arms: EncodedRows):
            both = (*sides, *arms.values())
            used[name] = {float(s.x[0, 0]) for s in both if isinstance(s, EncodedRows) and s.x[0, 0] in (-1.0, -2.0)}
            raise LookupError

        return gate

    tried = stage()
    real, attacked = (replace(tried.rows, x=np.full_like(tried.rows.x, mark)) for mark in (-1.0, -2.0))
    judges = {"utility_gate": -1.0, "closest_record_gate": -1.0, "membership_gate": -2.0, "inference_risk": -2.0}
    monkeypatch.setattr("synth_platform.evaluation.gates.encode_replicates", lambda *_: [tried.reference.rows])
    for name in judges:
        monkeypatch.setattr(f"synth_platform.evaluation.gates.{name}", spy(name))
    for gate in (*GATES, INFERENCE_GATE):
        with pytest.raises(LookupError):
            gate.judge(tried.spec, tried.reference, real, attacked, None)
    assert used == {name: {mark} for name, mark in judges.items()}
