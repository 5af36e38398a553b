"""Controls of known verdict on worlds that nothing was tuned on, and power against what is seen there. Seeds fixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.confusion import Agreement, agreements, judge_controls, world_stage
from synth_platform.evaluation.controls import misjudged
from synth_platform.trials.power import gate_power

pytestmark = pytest.mark.statistical
WORLDS = (201, 202, 203)
Document = Mapping[str, Any]


@pytest.fixture(scope="module")
def worlds() -> tuple[list[Mapping[str, Document]], list[Document]]:
    """Decisions of every control and the power summary, world by world, with eight draws of the truth in each."""
    decisions, powers = [], []
    for seed in WORLDS:
        stage = world_stage(seed, draws=8)
        power = gate_power(stage)
        decisions.append(judge_controls(stage, power))
        powers.append(power["summary"])
    return decisions, powers


@pytest.mark.parametrize("code", ["S_COPY", "S_MIX", "S_MARGINAL"])
def test_what_must_fail_fails_in_every_world(worlds: Any, code: str) -> None:
    """Copies are found with certainty, by their distance 0; independent columns lose skill by dozens of errors."""
    assert [misjudged(decisions[code]) for decisions in worlds[0]] == [()] * len(WORLDS)


def test_what_leaks_nothing_is_refused_as_rarely_as_the_gates_promise(worlds: Any) -> None:
    """S_ORACLE and S_PUBLIC, six judgements. Each is a false alarm with at most 11 % (upper bound of 300 null draws of
    the resampled kind, docs/gates.md); four of six or more have probability below 2e-3, five below 1e-4: four may be.
    """
    wrong = sum(bool(misjudged(decisions[code])) for decisions in worlds[0] for code in ("S_ORACLE", "S_PUBLIC"))
    assert wrong <= binom.isf(1e-4, 2 * len(WORLDS), 0.11)


def test_power_predicts_what_passes(worlds: Any) -> None:
    """S_ORACLE by endpoint and gate against the power of the same world: seven p-values, none below 1e-4."""
    compared = agreements([decisions["S_ORACLE"] for decisions in worlds[0]], worlds[1])
    assert [row.name for row in compared][:4] == ["c_index", "macro_f1", "auroc", "spearman"]
    assert min(row.p_value for row in compared) > 1e-4


def test_a_wrong_power_would_be_seen() -> None:
    """Power 1 over 32 draws in 20 worlds where 10 pass; and a bound of .9 where 10 pass - but not where all do."""
    assert Agreement("", 10, (1.0,) * 20, 32).p_value < 1e-4
    assert Agreement("", 10, (0.9,) * 20, None).p_value < 1e-4
    assert Agreement("", 20, (0.5,) * 20, None).p_value == 1.0


def test_p_values_are_uniform_enough() -> None:
    """Binomial counts at a known power: a p-value below .05 in at most 5 % of 400 (limit: binomial 1 - 1e-4)."""
    rng = np.random.default_rng(3)
    small = {n for n in range(21) if Agreement("", n, (0.7,) * 20, 10_000).p_value < 0.05}
    assert {0, 20} <= small
    assert sum(int(n) in small for n in rng.binomial(20, 0.7, size=400)) <= binom.isf(1e-4, 400, 0.05)
