"""Does a mechanism leak more than the ledger says? An attack on the noisy statistics of a generator themselves.

The generator measures a data set D and a neighbour D' that holds a group of worst rows more, many times, through the
code that production runs. Other runs on D have shown how the noise really lies; the worst row and a linear
distinguisher were chosen by that. What it then tells D from D' by bounds μ and ε from below, with an error that is
stated and proved (docs/mechanism_audit.md). Public rows stand in for private ones, so an audit costs no budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import CohortSpec, GeneratorCode
from synth_platform.evaluation.audit_bound import OperatingPoint, points_at_thresholds
from synth_platform.evaluation.evidence import rounded
from synth_platform.generators.build import make_generator
from synth_platform.generators.protocol import DPGenerator
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows, FloatArray, concatenate
from synth_platform.privacy.accounting import Composition, compose
from synth_platform.privacy.events import event_to_json
from synth_platform.privacy.figures import exceeds
from synth_platform.privacy.noise import CryptographicNoise, NoiseSource
from synth_platform.trials.canaries import extreme_rows, with_canary, worst_rows
from synth_platform.trials.distinguisher import Distinguisher, fit_distinguishers, precision
from synth_platform.trials.one_run_audit import OneRun, coin_flips, independent_rows, judge_run
from synth_platform.trials.transcripts import Charged, Door

Status = Literal["OK", "CONTRADICTION"]
FALSE_ALARM = 1e-3  # probability that a correct build is contradicted, at most
ONE_RUN_SHARE = 0.1  # of it
RUNS = 160  # on each data set, for the bound
TRAINING = 2  # runs per released number, to learn the noise from
MOST_RUNS = 4000  # where a leak is suspected
SUSPICIOUS = 1.15  # a shift that stands out of the noise by more than this times what is claimed
SPARE = 2.0  # standard errors by which a suspected leak should clear the bound
BASE_ROWS = 24
# A group is as large as this takes. A larger one could not be told from a leak without end in so few runs, a smaller
# one makes all leaks small.
GROUP_MU = 2.0
# In units of the expected shift: 0 is D, 1 is D'. The middle serves Gaussian noise, the others what is lopsided.
THRESHOLDS = (0.3, 0.5, 0.7)
ONE_RUN_DIRECTIONS = 8
DISTINGUISHERS = 2  # of each data set


@dataclass(frozen=True, eq=False)
class CanaryVerdict:
    """One data set, one canary, one set of weights. members, nonmembers [runs]: scores of D' and D, at six decimals."""

    base: str
    distinguisher: Distinguisher
    members: FloatArray
    nonmembers: FloatArray
    points: tuple[OperatingPoint, ...]


@dataclass(frozen=True, eq=False)
class MechanismVerdict:
    """What an audit found. claimed: the cost of the events that were charged; group: rows of a canary."""

    claimed: Composition
    charged: frozenset[Charged]
    delta: float
    group: int
    canaries: tuple[CanaryVerdict, ...]
    one_run: OneRun

    @property
    def mu_claimed(self) -> float:
        """Exact μ of the events."""
        return _mu(self.claimed)

    @property
    def mu_lower_bound(self) -> float:
        """Over all canaries and thresholds, and the single run."""
        return max(self.one_run.mu, *(point.mu(self.group) for point in self._points))

    @property
    def epsilon_lower_bound(self) -> float:
        """The same for ε at delta."""
        return max(self.one_run.epsilon, *(point.epsilon(self.delta, self.group) for point in self._points))

    @property
    def status(self) -> Status:
        """CONTRADICTION when a bound is above what was charged."""
        refuted = exceeds(self.mu_lower_bound, self.mu_claimed)
        return "CONTRADICTION" if refuted or exceeds(self.epsilon_lower_bound, self.claimed.epsilon_pld) else "OK"

    def summary(self) -> dict[str, Any]:
        """The figures a reader compares."""
        return {
            "mu_claimed": self.mu_claimed,
            "mu_lower_bound": self.mu_lower_bound,
            "epsilon_claimed": self.claimed.epsilon_pld,
            "epsilon_lower_bound": self.epsilon_lower_bound,
            "delta": self.delta,
            "runs": min(len(canary.members) for canary in self.canaries),
            "confidence": 1 - FALSE_ALARM,
            "status": self.status,
        }

    def evidence(self) -> dict[str, Any]:
        """Everything the bounds follow from: scores, thresholds, shares of the error, events."""
        return {
            "charged": [[event_to_json(event) for event in events] for events in self.charged],
            "group": self.group,
            "thresholds": list(THRESHOLDS),
            "false_alarm": FALSE_ALARM,
            "one_run_share": ONE_RUN_SHARE,
            "canaries": [
                {
                    "base": canary.base,
                    "weights": canary.distinguisher.weighting,
                    "row": canary.distinguisher.row,
                    "strength": round(canary.distinguisher.strength / self.group, 6),
                    "members": rounded(canary.members),
                    "nonmembers": rounded(canary.nonmembers),
                }
                for canary in self.canaries
            ],
            "one_run": {
                "scores": rounded(self.one_run.scores),
                "included": self.one_run.included.tolist(),
                "guesses": [list(pair) for pair in self.one_run.guesses],
            },
        }

    @property
    def _points(self) -> list[OperatingPoint]:
        return [point for canary in self.canaries for point in canary.points]


def mechanism_audit(
    generator: DPGenerator,
    reference: PublicReference,
    delta: float,
    *,
    noise: NoiseSource | None = None,
    runs: int = RUNS,
    adaptive: bool = False,
) -> MechanismVerdict:
    """Audit what `generator` releases; a correct build is contradicted with probability FALSE_ALARM at most.

    adaptive: every run goes through `generator.measure`, so that its later queries follow its own earlier answers;
    otherwise each run asks the queries of one pilot run on D, which are constants from then on.
    Raises what `measure` raises on public rows.
    """
    noise = noise or CryptographicNoise()
    bases = {"empty": reference.rows.take(slice(0, 0)), "public": reference.rows.take(slice(0, BASE_ROWS))}
    confidence = 1 - FALSE_ALARM * (1 - ONE_RUN_SHARE) / (len(bases) * DISTINGUISHERS)
    candidates = worst_rows(reference)
    many = extreme_rows(reference, directions=ONE_RUN_DIRECTIONS, both_ways=False)
    canaries: list[CanaryVerdict] = []
    charged: set[Charged] = set()
    with np.errstate(all="ignore"):  # some canaries are made of what overflows
        for name, base in bases.items():
            door = Door(generator, base, noise, adaptive=adaptive)
            mu = _mu(_cost(door.charged, delta))
            group = max(1, round(GROUP_MU / mu))
            training = door.run(base, TRAINING * door.dimension)
            attacks = fit_distinguishers(training, _shifts(door, base, candidates, group))
            needed = runs_needed(attacks[0].scores(training), group * mu, confidence, least=runs)
            nonmembers = door.run(base, needed)
            members = {
                row: door.run(with_canary(base, candidates, row, group), needed)
                for row in {attack.row for attack in attacks}
            }
            canaries += [_judge(name, attack, members[attack.row], nonmembers, confidence) for attack in attacks]
            charged |= door.charged
        one_run = _one_run(door, base, many, training, delta)
    return MechanismVerdict(_cost(charged, delta), frozenset(charged), delta, group, tuple(canaries), one_run)


def runs_needed(scores: FloatArray, mu: float, confidence: float, *, least: int) -> int:
    """Runs on each data set that refute μ if the canary leaks what runs without it suggest; `least` if not more than μ.

    scores [n] of training runs in units of the shift, so their spread is 1/μ where the noise is as claimed. Looking
    longer where something is suspected costs a correct build nothing, and what is found is found in other runs.
    """
    seen = min(1 / max(float(scores.std(ddof=1)), 1e-9), 2 * mu)  # a greater leak is found as soon
    if seen < SUSPICIOUS * mu:
        return least
    rate = ndtr(-seen / 2)
    error = math.sqrt(rate * (1 - rate)) / norm.pdf(seen / 2)  # of a quantile at the middle threshold, in one run
    certainty = SPARE - ndtri((1 - confidence) / (2 * len(THRESHOLDS)))
    return int(np.clip((2 * certainty * error / (seen - mu)) ** 2, least, MOST_RUNS))


def _shifts(door: Door, base: EncodedRows, candidates: EncodedRows, group: int) -> FloatArray:
    """[C, d] what `group` copies of each candidate add to what noise is added to."""
    without = door.silent(base)
    rows = range(len(candidates))
    return np.stack([door.silent(with_canary(base, candidates, row, group)) for row in rows]) - without


def _cost(charged: Iterable[Charged], delta: float) -> Composition:
    """What the dearest run cost."""
    return max((compose(events, delta) for events in charged), key=lambda cost: cost.epsilon_pld)


def _mu(cost: Composition) -> float:
    if cost.mu is None:
        raise ValueError("only plans of unsampled Gaussian mechanisms are audited: others have no exact mu")
    return cost.mu


def _judge(
    base: str, distinguisher: Distinguisher, members: FloatArray, nonmembers: FloatArray, confidence: float
) -> CanaryVerdict:
    # Rounded first: whoever has the evidence, which is rounded, arrives at the same bound.
    inside, outside = (np.round(distinguisher.scores(values), 6) for values in (members, nonmembers))
    points = points_at_thresholds(inside, outside, THRESHOLDS, confidence)
    return CanaryVerdict(base, distinguisher, inside, outside, tuple(points))


def _one_run(door: Door, base: EncodedRows, candidates: EncodedRows, training: FloatArray, delta: float) -> OneRun:
    shifts = _shifts(door, base, candidates, 1)
    chosen = independent_rows(shifts)
    included = coin_flips(len(chosen))
    [released] = door.run(concatenate([base, candidates.take(chosen[included])]), 1)
    return judge_run(
        released - training.mean(axis=0),
        shifts[chosen],
        precision(training),
        included,
        delta=delta,
        confidence=1 - FALSE_ALARM * ONE_RUN_SHARE,
    )


def mechanism_audit_document(
    code: GeneratorCode, spec: CohortSpec, reference: PublicReference, plan: Plan
) -> dict[str, Any]:
    """The audit of one generator at one plan as a stored document.

    Two audits of the same thing differ: noise is drawn from the operating system, as in production.
    """
    verdict = mechanism_audit(make_generator(code, reference, spec, plan), reference, plan.delta)
    subject = {"generator": code, "epsilon": plan.epsilon, "delta": plan.delta}
    return {
        "status": verdict.status,
        "summary": verdict.summary(),
        "evidence": subject | verdict.evidence(),
        "registration": spec.registration,
    }
