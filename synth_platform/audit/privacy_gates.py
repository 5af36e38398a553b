"""G3, privacy: closest record and membership again from distances and scores (8-1 §3.4)."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from synth_platform.audit.findings import Findings
from synth_platform.audit.reading import Document, array, figure, item, mapping, number, whole
from synth_platform.audit.rules import (
    closest_record_status,
    confirmation_power,
    finding,
    membership_status,
    required_rows,
)
from synth_platform.audit.statistics import (
    auroc,
    binomial_lower,
    binomial_upper,
    delong_error,
    normal_quantile,
    quantile,
)

FALSE_POSITIVE_RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
LOW_RATE = 0.01
COPY = 1e-6


def audit_closest_record(found: Findings, name: str, document: Document, registered: Document) -> None:
    """Recompute duplicates, both shares with their exact bounds, the reported ratios and the status."""
    evidence, summary = mapping(document, "evidence"), mapping(document, "summary")
    rows = whole(registered, "rows")
    to_train = array(evidence, "synthetic_to_train", shape=(rows,)).tolist()
    to_matched = array(evidence, "synthetic_to_matched_train", shape=(rows,)).tolist()
    to_holdout = array(evidence, "synthetic_to_matched_holdout", shape=(rows,)).tolist()
    real = array(evidence, "holdout_to_train").tolist()
    near = number(evidence, "near_distance")
    tolerances = {key: number(evidence, key) for key in ("train_closer_tolerance", "excess_tolerance")}
    for key, value in tolerances.items():
        found.same(f"{name}/{key}", "registration", value, number(registered, "gates", key))
    found.holds(f"{name}/distances", "range", min(map(min, (to_train, to_matched, to_holdout, real))) >= 0)
    # The matched training rows are some of all training rows: none of them can be nearer than the nearest of all.
    subset = all(some >= every for some, every in zip(to_matched, to_train, strict=True))
    found.holds(f"{name}/matched", "range", subset, "a row of a part is nearer than the nearest of the whole")
    found.close(f"{name}/near_distance", "quantile", near, quantile(real, 0.05))

    duplicates = sum(distance <= COPY for distance in to_train)
    twice = sum((t < h) + (t <= h) for t, h in zip(to_matched, to_holdout, strict=True))
    crowded = sum(distance < near for distance in to_train)
    found.close(f"{name}/duplicates", "count", number(summary, "duplicates"), duplicates)
    found.close(f"{name}/train_closer", "share", number(summary, "train_closer"), twice / (2 * rows))
    found.close(f"{name}/excess", "share", number(summary, "excess"), crowded / rows)
    closer_upper, excess_upper = binomial_upper(-(-twice // 2), rows), binomial_upper(crowded, rows)
    found.close(f"{name}/train_closer_upper", "clopper_pearson", number(summary, "train_closer_upper"), closer_upper)
    found.close(f"{name}/excess_upper", "clopper_pearson", number(summary, "excess_upper"), excess_upper)
    for key, share in (("ratio_5", 0.05), ("ratio_50", 0.5)):
        bottom = quantile(to_holdout, share)
        ratio = quantile(to_matched, share) / bottom if bottom > 0 else None
        found.close(f"{name}/{key}", "quantile", figure(summary, key), ratio)
    status = closest_record_status(
        number(summary, "duplicates"),
        number(summary, "train_closer_upper"),
        number(summary, "excess_upper"),
        closer_tolerance=tolerances["train_closer_tolerance"],
        excess_tolerance=tolerances["excess_tolerance"],
    )
    found.same(f"{name}/status", "status", item(summary, "status"), status)


def audit_membership(found: Findings, name: str, document: Document, registered: Document) -> None:
    """Recompute AUROC, DeLong error, Bonferroni bound and TPR of every attack, the required rows and the status."""
    evidence, summary = mapping(document, "evidence"), mapping(document, "summary")
    limit = number(evidence, "membership_limit")
    found.same(f"{name}/membership_limit", "registration", limit, number(registered, "gates", "membership_limit"))
    attacks, scores = mapping(summary, "attacks"), mapping(evidence, "scores")
    found.same(f"{name}/attacks", "registration", sorted(attacks), sorted(item(registered, "gates", "attacks")))
    found.same(f"{name}/scores", "length", sorted(scores), sorted(attacks))
    rows = whole(summary, "rows")
    for code, claimed in attacks.items():
        with found.section(f"{name}/{code}"):
            members = array(evidence, "scores", code, "members", shape=(rows,)).tolist()
            others = array(evidence, "scores", code, "nonmembers", shape=(rows,)).tolist()
            audit_attack(found, f"{name}/{code}", claimed, members, others, attacks=len(attacks))
            own = finding(number(claimed, "lower"), number(claimed, "upper"), limit)
            found.same(f"{name}/{code}/finding", "status", item(claimed, "finding"), own)
    power = confirmation_power(rows, limit, len(attacks))
    found.close(f"{name}/power", "power", number(summary, "power"), power)
    needed = required_rows(limit, len(attacks))
    found.same(f"{name}/required_rows", "required_rows", item(summary, "required_rows"), needed)
    status = membership_status(
        [number(attack, "auroc") for attack in attacks.values()],
        [number(attack, "upper") for attack in attacks.values()],
        limit,
    )
    found.same(f"{name}/status", "status", item(summary, "status"), status)


def audit_attack(
    found: Findings, name: str, claimed: Document, members: Sequence[float], others: Sequence[float], *, attacks: int
) -> None:
    """The five figures of one attack from its scores.

    The margin has at least the null deviation of a rank sum over its number of pairs: where scores tie, or no pair is
    in the wrong order, the placement values do not vary, and that proves nothing.
    """
    area, error = auroc(members, others), delong_error(members, others)
    m, n = len(members), len(others)
    least = math.sqrt(m * n * (m + n + 1) / 12) / (m * n)
    margin = normal_quantile(1 - 0.05 / attacks) * max(error, least)
    found.close(f"{name}/auroc", "auroc", number(claimed, "auroc"), area)
    found.close(f"{name}/standard_error", "delong", number(claimed, "standard_error"), error)
    found.close(f"{name}/upper", "delong", number(claimed, "upper"), float(area) + margin)
    found.close(f"{name}/lower", "delong", number(claimed, "lower"), float(area) - margin)
    rate = true_positive_rate(members, others, LOW_RATE)
    found.close(f"{name}/tpr_at_1pct_fpr", "tpr", number(claimed, "tpr_at_1pct_fpr"), rate)


def true_positive_rate(members: Sequence[float], others: Sequence[float], false_positive_rate: float) -> float:
    """The rate at the lowest non-member score that few enough non-members exceed, found by bisection."""
    allowed = math.floor(false_positive_rate * len(others) + 1e-9)
    if allowed >= len(others):
        return 1.0
    ordered = sorted(others)
    candidates = sorted(set(others))
    first = bisect_left(candidates, True, key=lambda t: len(ordered) - bisect_right(ordered, t) <= allowed)
    return sum(score > candidates[first] for score in members) / len(members)


def epsilon_lower_bound(scores: Document, delta: float, confidence: float = 0.95) -> float:
    """The largest epsilon that an attack of one table proves, at `confidence` over all attacks and thresholds.

    Above the (x+1)-th largest of n non-member scores the false positive rate is at most the Clopper-Pearson upper bound
    of x in n; the error is shared by the attacks, the thresholds and the two bounds of each (8-1 §3.4).
    """
    best = 0.0
    for code in scores:
        members = sorted(array(scores, code, "members").tolist())
        others = sorted(array(scores, code, "nonmembers").tolist(), reverse=True)
        n = len(others)
        exceeded = sorted({math.floor(rate * n + 1e-9) for rate in FALSE_POSITIVE_RATES})
        each = 1 - (1 - confidence) / len(scores) / (2 * len(exceeded))
        for x in exceeded:
            caught = sum(score > others[x] for score in members)
            power, alarm = binomial_lower(caught, len(members), each), binomial_upper(x, n, each)
            # TPR <= e^eps FPR + delta, and the same of the rates of those who are let pass (8-1 §2.6).
            for gain, price in ((power - delta, alarm), (1 - alarm - delta, 1 - power)):
                if gain > price:
                    best = max(best, math.log(gain / price))
    return best
