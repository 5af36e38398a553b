"""G3, mechanism audit: what canaries prove of the cost that was charged, again from their scores (8-1 §3.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import NormalDist

from scipy.special import bdtrc, expit

from synth_platform.audit.accounting import compose, epsilon_gaussian
from synth_platform.audit.findings import Findings, MalformedError
from synth_platform.audit.ledger import Book
from synth_platform.audit.reading import Document, array, item, mapping, number, sequence, six, text, whole
from synth_platform.audit.statistics import binomial_lower, binomial_upper

FALSE_ALARM, ONE_RUN_SHARE, THRESHOLDS = 1e-3, 0.1, [0.3, 0.5, 0.7]
RELATIVE = 1e-6
_NORMAL = NormalDist()
_BISECTIONS = 60


def audit_mechanism(found: Findings, name: str, document: Document, registered: Document) -> None:
    """Recompute the claimed cost, both lower bounds and the status of one mechanism audit."""
    evidence, summary = mapping(document, "evidence"), mapping(document, "summary")
    delta, group = number(summary, "delta"), whole(evidence, "group")
    found.same(f"{name}/delta", "registration", delta, number(registered, "plan", "delta"))
    for key in ("epsilon", "delta"):
        found.same(f"{name}/plan/{key}", "registration", number(evidence, key), number(registered, "plan", key))
    constants = {"thresholds": THRESHOLDS, "false_alarm": FALSE_ALARM, "one_run_share": ONE_RUN_SHARE}
    for key, value in constants.items():
        found.same(f"{name}/{key}", "registration", item(evidence, key), value)
    found.same(f"{name}/confidence", "registration", number(summary, "confidence"), 1 - FALSE_ALARM)
    claimed = max(compose(events).precision for events in sequence(evidence, "charged"))
    mu = math.sqrt(claimed)
    _figure(found, f"{name}/mu_claimed", "mu", number(summary, "mu_claimed"), mu)
    _figure(found, f"{name}/epsilon_claimed", "pld", number(summary, "epsilon_claimed"), epsilon_gaussian(mu, delta))

    canaries = sequence(evidence, "canaries")
    points = [point for canary in canaries for point in _points(canary, len(canaries))]
    runs = min(len(sequence(canary, "members")) for canary in canaries)
    found.holds(f"{name}/runs", "length", whole(summary, "runs") <= runs, "more runs claimed than scores are there")
    one_run = _OneRun(mapping(evidence, "one_run"))
    bounds = {
        "mu_lower_bound": (max(_mu(point) / group for point in points), one_run.refutes_mu),
        "epsilon_lower_bound": (
            max(_epsilon(point, delta, group) for point in points),
            lambda epsilon: one_run.refutes_epsilon(epsilon, delta),
        ),
    }
    for key, (of_canaries, refuted) in bounds.items():
        _bound(found, f"{name}/{key}", number(summary, key), of_canaries, refuted)
    beyond = six(number(summary, "mu_lower_bound")) > six(number(summary, "mu_claimed")) or (
        six(number(summary, "epsilon_lower_bound")) > six(number(summary, "epsilon_claimed"))
    )
    found.same(f"{name}/status", "status", item(summary, "status"), "CONTRADICTION" if beyond else "OK")


def audit_charge(found: Findings, code: str, documents: Document, book: Book) -> None:
    """A mechanism audit is of the generator it stands under, and of the noise that this one's ledger entries have.

    Where the ledger says nothing, there is nothing to compare: such a table is BLOCKED.
    """
    name, document = f"G3/{code}/mechanism_audit", mapping(documents, "mechanism_audit")
    found.same(f"{name}/generator", "registration", text(document, "evidence", "generator"), code)
    ledger = mapping(documents, "decision", "ledger")
    if text(ledger, "status") == "ABSENT":
        return
    paid = math.sqrt(compose(book.entries[str(entry)].event for entry in sequence(ledger, "entries")).precision)
    found.close(f"{name}/charged", "mu", number(document, "summary", "mu_claimed"), paid, public=True)


def _figure(found: Findings, name: str, kind: str, claimed: float, own: float) -> None:
    found.close(name, kind, claimed, own, tolerance=RELATIVE * max(own, 1e-3))


def _bound(found: Findings, name: str, claimed: float, of_canaries: float, refuted: Callable[[float], bool]) -> None:
    """The larger of what the canaries prove and what the single run proves: the latter where it is what it refutes."""
    if abs(claimed - of_canaries) <= RELATIVE * max(of_canaries, 1e-3):
        found.holds(name, "canary_bound", not refuted(claimed * (1 + RELATIVE) + 1e-9), "the single run proves more")
        return
    edge = refuted(claimed * (1 - RELATIVE)) and not refuted(claimed * (1 + RELATIVE))
    found.holds(name, "canary_bound", claimed > of_canaries and edge, "the figure differs")


def _points(canary: Document, canaries: int) -> Iterator[tuple[float, float]]:
    """(true positive rate at least, false positive rate at most) at each threshold, all holding together."""
    members, others = array(canary, "members").tolist(), array(canary, "nonmembers").tolist()
    each = 1 - FALSE_ALARM * (1 - ONE_RUN_SHARE) / canaries / (2 * len(THRESHOLDS))
    for threshold in THRESHOLDS:
        hits, alarms = (sum(score >= threshold for score in side) for side in (members, others))
        yield binomial_lower(hits, len(members), each), binomial_upper(alarms, len(others), each)


def _mu(point: tuple[float, float]) -> float:
    hit, alarm = point
    return _NORMAL.inv_cdf(hit) - _NORMAL.inv_cdf(alarm) if 0 < alarm < hit < 1 else 0.0


def _epsilon(point: tuple[float, float], delta: float, group: int) -> float:
    """The largest epsilon of one row at which TPR <= e^(g eps) FPR + delta (1 + ... + e^((g-1) eps)) fails."""
    hit, alarm = point

    def broken(epsilon: float) -> bool:
        grown = sum(math.exp(j * epsilon) for j in range(group))
        price = math.exp(group * epsilon)
        return hit > price * alarm + delta * grown or 1 - alarm > price * (1 - hit) + delta * grown

    return _largest(broken)


def _largest(broken: Callable[[float], bool]) -> float:
    if not broken(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while broken(high):
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if broken(middle) else (low, middle)
    return low


class _OneRun:
    """Many canaries at once, each in with probability 1/2: what the counts of right guesses refute."""

    def __init__(self, evidence: Document) -> None:
        scores, included = array(evidence, "scores").tolist(), sequence(evidence, "included")
        if len(included) != len(scores) or not all(isinstance(flag, bool) for flag in included):
            raise MalformedError("one_run.included")
        self._canaries = len(scores)
        order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        guesses = sequence(evidence, "guesses")
        self._each = FALSE_ALARM * ONE_RUN_SHARE / 2 / len(guesses)
        self._counted = [
            (
                ins + outs,
                sum(included[place] for place in order[:ins])
                + sum(not included[place] for place in order[len(order) - outs :]),
            )
            for ins, outs in guesses
        ]

    def refutes_epsilon(self, epsilon: float, delta: float) -> bool:
        """Whether some count of right guesses is too unlikely under (eps, delta)-DP (Steinke et al. 2023, Thm 5.2)."""
        return any(self._tail(total, right, epsilon, delta) < self._each for total, right in self._counted)

    def _tail(self, total: int, right: int, epsilon: float, delta: float) -> float:
        share = float(expit(epsilon))

        def at_least(count: int) -> float:
            return 1.0 if count <= 0 else float(bdtrc(count - 1, total, share))

        reached = at_least(right)
        closer = [(at_least(right - i) - reached) / i for i in range(1, right + 1)]
        return reached + 2 * self._canaries * delta * max([0.0, *closer])

    def refutes_mu(self, mu: float) -> bool:
        """The same for mu-GDP (Mahloujifar et al. 2024)."""
        return any(self._excess(total, right, mu) > 0 for total, right in self._counted)

    def _excess(self, total: int, right: int, mu: float) -> float:
        reached, missed = (self._each * count / self._canaries for count in (right, total - right))
        for count in reversed(range(right)):
            if not 0 < reached < 1:
                break
            step = _NORMAL.cdf(_NORMAL.inv_cdf(reached) - mu) - missed
            if step <= 0:
                break
            reached, missed = min(1.0, reached + count * step / (total - count)), missed + step
        return reached + missed - total / self._canaries
