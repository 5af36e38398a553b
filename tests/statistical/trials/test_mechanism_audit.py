"""The mechanism audit contradicts a build with any of the planted bugs, and no correct build.

A correct build is contradicted with probability 1e-3 at most (exact coverage below, proof in docs/mechanism_audit.md),
so the four audits of correct builds here fail once in 250 suites at most. How often a planted bug is caught stands in
the power table there; noise comes from the operating system, because that is what is audited.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from synth_platform.contract.options import G0AOptions, G0Options
from synth_platform.evaluation.audit_bound import OperatingPoint, points_at_thresholds
from synth_platform.generators.g0 import G0
from synth_platform.generators.g0a.generator import G0A
from synth_platform.generators.protocol import DPGenerator, PrivacyTarget
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.accounting import compose
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease
from synth_platform.trials import mechanism_audit as audit_module
from synth_platform.trials.mechanism_audit import FALSE_ALARM, ONE_RUN_SHARE, RUNS, THRESHOLDS, mechanism_audit

pytestmark = pytest.mark.statistical
DELTA = 1e-5


def planted() -> ModuleType:
    file = Path(__file__).parents[3] / "benchmarks" / "planted_bugs.py"
    spec = importlib.util.spec_from_file_location("planted_bugs", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUGS: Mapping[str, Callable[[], Any]] = planted().PLANTED
HARMLESS: Mapping[str, Callable[[], Any]] = planted().HARMLESS


def small_reference() -> PublicReference:
    rng = np.random.default_rng(3)
    n, features = 120, tuple(f"f{j}" for j in range(5))
    label = rng.integers(2, size=n)
    x = rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5)) + label[:, None]
    rows = EncodedRows(
        features=features,
        x=x,
        label=label,
        event=rng.integers(2, size=n),
        time=rng.exponential(np.exp(0.3 * x[:, 0])) * 900 + 1,
        batch=rng.integers(2, size=n),
        split=np.full(n, "public"),
        key=np.array([f"R-{i:06d}" for i in range(n)]),
    )
    none: Any = None  # generators never encode
    return PublicReference(none, rows, ("a", "b"), ("north", "south"), (), n_ref=500)


REFERENCE = small_reference()
# Plans at which a group of canaries is 1.8-GDP: leaks without end are then refuted by FEW runs.
GENERATORS: Mapping[str, DPGenerator] = {
    "G0": G0(REFERENCE, G0Options(latent=2), PrivacyTarget(2.3, DELTA)),
    "G0A": G0A(
        REFERENCE, G0AOptions(mean_directions=3, hazard_directions=3, moment_directions=2), PrivacyTarget(2.5, DELTA)
    ),
}
FEW = 60
FIVE = ("noise_halved", "clip_left_out", "count_released_raw", "row_in_two_cells", "noise_used_twice")


@pytest.mark.parametrize("code", GENERATORS)
def test_a_correct_build_is_not_contradicted(code: str) -> None:
    verdict = mechanism_audit(GENERATORS[code], REFERENCE, DELTA)
    assert verdict.status == "OK"
    assert verdict.mu_lower_bound > 0.3 * verdict.mu_claimed  # it did attack
    # The canaries spend what is charged: they attain every clip norm at once.
    assert max(canary.distinguisher.strength for canary in verdict.canaries) == pytest.approx(
        verdict.group * verdict.mu_claimed, rel=1e-6
    )
    asked: list[StatisticQuery[EncodedRows]] = []

    def ask(query: StatisticQuery[EncodedRows]) -> StatisticRelease:
        asked.append(query)
        zeros = np.zeros(query.dimension)
        return StatisticRelease(query.code, zeros, query.sensitivity, query.sigma, 1.0, "seeded", "", "")

    GENERATORS[code].measure(ask)
    assert verdict.claimed == compose([query.event for query in asked], DELTA)
    assert verdict.mu_claimed == pytest.approx(np.sqrt(sum((q.sensitivity / q.sigma) ** 2 for q in asked)), rel=1e-9)


@pytest.mark.parametrize(
    ("bug", "code"),
    [
        *((bug, code) for bug in FIVE for code in GENERATORS),
        ("noise_follows_rows", "G0"),
        ("error_on_a_broken_row", "G0A"),
    ],
)
def test_a_planted_bug_is_contradicted(bug: str, code: str) -> None:
    with BUGS[bug]():
        verdict = mechanism_audit(GENERATORS[code], REFERENCE, DELTA, runs=FEW)
    assert verdict.status == "CONTRADICTION"
    assert verdict.mu_lower_bound > verdict.mu_claimed


@pytest.mark.parametrize(("code", "wall"), [("G0", "row_clip_left_out"), ("G0A", "mechanism_clip_left_out")])
def test_one_clip_is_enough(code: str, wall: str) -> None:
    """Rows are clipped twice, so either clip alone keeps the promise and the audit says so."""
    with HARMLESS[wall]():
        assert mechanism_audit(GENERATORS[code], REFERENCE, DELTA, runs=FEW).status == "OK"


def test_queries_that_follow_their_own_answers_are_audited_as_such() -> None:
    """The moment of G0A is asked around the class means that the run itself released."""
    with BUGS["count_released_raw"]():
        verdict = mechanism_audit(GENERATORS["G0A"], REFERENCE, DELTA, adaptive=True, runs=FEW)
    assert verdict.status == "CONTRADICTION"


@pytest.mark.parametrize("mu", [1.6, 2.0, 2.4])
def test_exact_false_alarm_of_the_bound(mu: float) -> None:
    """Gaussian scores exactly at the claim: over all outcomes, the thresholds together refute less often than allowed.

    So four canaries stay below their part of FALSE_ALARM, whatever the correct build's rates are.
    """
    confidence = 1 - FALSE_ALARM * (1 - ONE_RUN_SHARE) / 4
    counts = range(RUNS + 1)
    each = 1 - (1 - confidence) / len(THRESHOLDS)
    ends = [one_point(count, each) for count in counts]
    bound = np.array([[OperatingPoint(t.true_positive, f.false_positive).mu() for f in ends] for t in ends])
    wrong = 0.0
    for threshold in THRESHOLDS:
        true_rate, false_rate = norm.sf(threshold, 1, 1 / mu), norm.sf(threshold, 0, 1 / mu)
        weight = np.outer(binom.pmf(counts, RUNS, true_rate), binom.pmf(counts, RUNS, false_rate))
        wrong += float(weight[bound > mu].sum())
    assert 0 < wrong <= 1 - confidence


def one_point(positives: int, confidence: float) -> OperatingPoint:
    scores = np.repeat([1.0, 0.0], [positives, RUNS - positives])
    [point] = points_at_thresholds(scores, scores, [0.5], confidence)
    return point


def test_a_suspected_leak_is_looked_at_longer() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 1 / 2.0, 400)

    def needed(mu: float) -> int:
        return audit_module.runs_needed(scores, mu, 0.9998, least=RUNS)

    assert needed(2.0) == needed(5.0) == RUNS
    assert RUNS < needed(1.0) < needed(2 / 1.4) < needed(2 / 1.25)
