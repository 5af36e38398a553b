"""G3, half splits: every attack of every repetition again from its scores, and the t bounds (8-1 §3.4).

The scores of the shadow-model attack are read like any others: how it learned from its shadows is the runner's, as the
learners of the utility gate are.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import nctdtr, stdtrit

from synth_platform.audit.findings import Findings
from synth_platform.audit.privacy_gates import LOW_RATE, true_positive_rate
from synth_platform.audit.reading import Document, array, item, mapping, number, text, whole
from synth_platform.audit.rules import finding, membership_status
from synth_platform.audit.statistics import auroc

SHADOW_ATTACK = "LIRA"
FAMILY_ERROR, WANTED_POWER = 0.05, 0.9
_LOOSE = 3e-6  # means of values at six decimals, each of which may be rounded either way


def audit_half_split(found: Findings, name: str, document: Document, registered: Document) -> None:
    """Recompute every figure and the status of one half-split document; one that is not registered claims nothing."""
    summary, gates = mapping(document, "summary"), mapping(registered, "gates")
    wanted = item(gates, "membership_design") == "half_split"
    found.same(f"{name}/registered", "registration", text(summary, "status") != "NOT_REGISTERED", wanted)
    if text(summary, "status") == "NOT_REGISTERED":
        return
    evidence = mapping(document, "evidence")
    rows, repetitions, shadows = (whole(evidence, key) for key in ("rows", "repetitions", "shadows"))
    found.same(f"{name}/rows", "length", whole(summary, "rows"), rows)
    found.same(f"{name}/repetitions", "registration", whole(summary, "repetitions"), repetitions)
    found.same(f"{name}/pairs", "registration", repetitions, whole(gates, "repetitions") // 2 * 2)
    found.same(f"{name}/shadows", "registration", shadows, repetitions // 4 * 2)
    limit = number(evidence, "membership_limit")
    found.same(f"{name}/membership_limit", "registration", limit, number(gates, "membership_limit"))
    members = array(evidence, "members", shape=(repetitions, rows)) == 1
    halves = bool((members[::2].sum(axis=1) == rows // 2).all() and (members[::2] != members[1::2]).all())
    found.holds(f"{name}/halves", "length", halves, "not halves and all the others")
    attacks = mapping(summary, "attacks")
    expected = sorted([*item(gates, "attacks"), SHADOW_ATTACK])
    found.same(f"{name}/attacks", "registration", sorted(attacks), expected)
    for code, claimed in attacks.items():
        with found.section(f"{name}/{code}"):
            inside = members[shadows:] if code == SHADOW_ATTACK else members
            scores = array(evidence, "scores", code, shape=inside.shape)
            _attack(found, f"{name}/{code}", claimed, evidence, scores, inside, attacks=len(attacks))
            own = finding(number(claimed, "lower"), number(claimed, "upper"), limit)
            found.same(f"{name}/{code}/finding", "status", item(claimed, "finding"), own)
    own_power = _power(rows, repetitions, limit, len(attacks))
    found.close(f"{name}/power", "power", number(summary, "power"), own_power, tolerance=2e-6)
    needed = whole(summary, "required_repetitions")
    enough = _power(rows, needed, limit, len(attacks)) >= WANTED_POWER - 1e-9
    fewer = _power(rows, needed - 2, limit, len(attacks)) < WANTED_POWER + 1e-9 if needed > 2 else True
    found.holds(f"{name}/required_repetitions", "required_rows", enough and fewer, "not the least even number")
    status = membership_status(
        [number(attack, "auroc") for attack in attacks.values()],
        [number(attack, "upper") for attack in attacks.values()],
        limit,
    )
    diluted = rows // 2 > whole(registered, "n_ref") / 0.9
    found.same(f"{name}/diluted", "registration", item(summary, "diluted"), diluted)
    status = "PASS_POINT" if diluted and status == "PASS_CONFIRMED" else status
    found.same(f"{name}/status", "status", item(summary, "status"), status)


def _attack(
    found: Findings,
    name: str,
    claimed: Document,
    evidence: Document,
    scores: np.ndarray,
    members: np.ndarray,
    *,
    attacks: int,
) -> None:
    code = name.rsplit("/", 1)[1]
    listed = array(evidence, "aurocs", code, shape=(len(scores),)).tolist()
    rates = array(evidence, "tprs", code, shape=(len(scores),)).tolist()
    for repetition, (row, inside) in enumerate(zip(scores, members, strict=True)):
        sides = row[inside].tolist(), row[~inside].tolist()
        found.close(f"{name}/{repetition}/auroc", "auroc", listed[repetition], auroc(*sides))
        found.close(f"{name}/{repetition}/tpr", "tpr", rates[repetition], true_positive_rate(*sides, LOW_RATE))
    pairs = [(first + second) / 2 for first, second in zip(listed[::2], listed[1::2], strict=True)]
    n = len(pairs)
    mean = math.fsum(pairs) / n
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in pairs) / (n - 1) / n)
    margin = float(stdtrit(n - 1, 1 - FAMILY_ERROR / attacks)) * error
    figures = {
        "auroc": mean,
        "standard_error": error,
        "lower": max(0.0, mean - margin),
        "upper": min(1.0, mean + margin),
        "tpr_at_1pct_fpr": math.fsum(rates) / len(rates),
    }
    for key, own in figures.items():
        found.close(f"{name}/{key}", "repeated", number(claimed, key), own, tolerance=_LOOSE)


def _power(rows: int, repetitions: int, limit: float, attacks: int) -> float:
    """At least this often all attacks are confirmed where nothing leaks; the shadow attack has half the pairs."""
    pairs = repetitions // 2
    used = [pairs] * (attacks - 1) + [pairs - pairs // 2]
    return max(0.0, 1 - sum(1 - _confirmed(rows, p, limit, attacks) for p in used))


def _confirmed(rows: int, pairs: int, limit: float, attacks: int) -> float:
    """P(t <= -quantile) of a non-central t; a pair's null mean has half the variance of a rank sum's AUROC."""
    if pairs < 2:
        return 0.0
    m, n = rows // 2, rows - rows // 2
    deviation = math.sqrt((rows + 1) / (24 * m * n))
    shift = math.sqrt(pairs) * (limit - 0.5) / deviation
    quantile = float(stdtrit(pairs - 1, 1 - FAMILY_ERROR / attacks))
    return 1 - float(nctdtr(pairs - 1, shift, quantile))
