"""The verdict of the repeated half-split audit: the membership rule of 8-1 §3.4 on repeated attacks.

FAIL if the mean AUROC of an attack is above the limit; PASS_CONFIRMED if every upper bound is at or below it; else
PASS_POINT. An attack whose interval holds the limit is UNDECIDED. The attacks are the registered ones and LIRA;
Bonferroni counts them all. Whatever LIRA learned, it learned from shadows alone: given these, the pairs it attacks are
independent and identically distributed, so its bound is the same t bound as the others'.

Evidence, from which every figure follows without rows or generator (numbers to six decimals; R repetitions, of which 2p
and 2p + 1 are a pair; N rows; S shadows, which are repetitions 0 .. S-1, S = R // 4 * 2):

    design            "half_split"
    generator, epsilon, delta, membership_limit, neighbours, family_error
    rows, repetitions, shadows
    seeds             {"half": [R], "noise": [R], "table": [R]}
    members           [R][N] 1 = trained on
    scores            {attack: [R][N], "LIRA": [R - S][N]}; LIRA of repetitions S .. R-1 follows from members and the
                      other scores by `lira.fit_row_test` on the shadows, attacks in alphabetical order
    aurocs, tprs      {attack: [R], "LIRA": [R - S]} per repetition, TPR where FPR is at most 1 %

With A attacks, LIRA among them: auroc is the mean of aurocs, standard_error s = sd of the pair means / sqrt(pairs),
lower and upper auroc -+ t(1 - family_error / A, pairs - 1) s; required_repetitions and power by `repeated`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from synth_platform.contract.cohort_sections import Plan
from synth_platform.contract.cohort_spec import CohortSpec, GeneratorCode
from synth_platform.evaluation.evidence import rounded
from synth_platform.evaluation.membership import FAMILY_ERROR
from synth_platform.evaluation.statistics import six
from synth_platform.normalize.rows import FloatArray
from synth_platform.trials.half_split import Halves
from synth_platform.trials.lira import fit_row_test
from synth_platform.trials.repeated import RepeatedAttack, audit_power, repeated_attack, required_repetitions

HalfSplitStatus = Literal["NOT_REGISTERED", "PASS_CONFIRMED", "PASS_POINT", "FAIL"]
Document = dict[str, Any]

NAME = "half_split_audit"
CLAIM = (
    "Trained on random halves of the cohort again and again, the generator lets no attack, shadow models among them, "
    "tell the half it saw with AUROC above the limit, confirmed by its upper bound."
)
PASSING: frozenset[str] = frozenset({"NOT_REGISTERED", "PASS_CONFIRMED"})
LIRA = "LIRA"


def registers_half_split(spec: CohortSpec) -> bool:
    """Whether the cohort is judged by this audit as well."""
    return spec.gates.membership_design == "half_split"


def not_registered(spec: CohortSpec) -> Document:
    """The document of a cohort that is judged on the released table alone."""
    summary: Document = {"design": spec.gates.membership_design, "attacks": {}, "status": "NOT_REGISTERED"}
    return {"status": "NOT_REGISTERED", "summary": summary, "evidence": {}, "registration": spec.registration}


def half_split_document(
    spec: CohortSpec, code: GeneratorCode, plan: Plan, halves: Halves, scores: Mapping[str, FloatArray]
) -> Document:
    """Judge the scores {attack: [R, N]} of all repetitions; the module docstring gives rule and evidence."""
    gates, members, shadows = spec.gates, halves.all_members(), halves.shadows
    scores = {attack: scores[attack] for attack in sorted(scores)}
    stacked = np.array(list(scores.values()))
    learned = fit_row_test(stacked[:, :shadows], members[:shadows])(stacked[:, shadows:])
    attacks = {attack: repeated_attack(values, members) for attack, values in scores.items()}
    attacks[LIRA] = repeated_attack(learned, members[shadows:])
    figures = {attack: _figures(found, len(attacks), gates.membership_limit) for attack, found in attacks.items()}
    status = _status(figures, gates.membership_limit)
    # A row among many weighs little: halves larger than the training arm would understate what the release shows of it.
    diluted = 10 * spec.privacy.n_ref < 9 * (halves.rows // 2)
    if diluted and status == "PASS_CONFIRMED":
        status = "PASS_POINT"
    seeds = np.array([halves.seeds(r) for r in range(halves.repetitions)])
    return {
        "status": status,
        "summary": {
            "design": "half_split",
            "attacks": figures,
            "rows": halves.rows,
            "repetitions": halves.repetitions,
            "required_repetitions": required_repetitions(halves.rows, gates.membership_limit, len(attacks)),
            "power": round(audit_power(halves.rows, halves.repetitions, gates.membership_limit, len(attacks)), 6),
            "diluted": diluted,
            "status": status,
        },
        "evidence": {
            "design": "half_split",
            "generator": code,
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "membership_limit": gates.membership_limit,
            "neighbours": gates.neighbours,
            "family_error": FAMILY_ERROR,
            "rows": halves.rows,
            "repetitions": halves.repetitions,
            "shadows": shadows,
            "seeds": {name: seeds[:, i].tolist() for i, name in enumerate(("half", "noise", "table"))},
            "members": members.astype(np.int64).tolist(),
            "scores": {attack: rounded(values) for attack, values in {**scores, LIRA: learned}.items()},
            "aurocs": {attack: rounded(found.aurocs) for attack, found in attacks.items()},
            "tprs": {attack: rounded(found.tprs) for attack, found in attacks.items()},
        },
        "registration": spec.registration,
    }


def explain_half_split(judged: Mapping[str, Any], power_floor: float) -> tuple[str, ...]:
    """Each attack that is above the limit or not confirmed below it, and whether the audit is too small to confirm."""
    if judged["status"] == "NOT_REGISTERED":
        return ()
    summary, limit = judged["summary"], six(judged["evidence"]["membership_limit"])
    reasons = []
    for attack, figures in summary["attacks"].items():
        unsure = ", by its point estimate; its interval holds the limit" if figures["finding"] == "UNDECIDED" else ""
        if six(figures["auroc"]) > limit:
            reasons.append(f"attack {attack} tells the rows that were trained on from the others{unsure}")
        elif six(figures["upper"]) > limit:
            reasons.append(f"attack {attack} is below the limit, but its interval is too wide to confirm it")
    if summary["diluted"]:
        reasons.append("the halves are larger than the training arm (privacy.n_ref): a row weighs less there than here")
    if six(summary["power"]) < six(power_floor):
        reasons.append("LOW power: too few repetitions to confirm a generator that leaks nothing (gates.repetitions)")
    return tuple(reasons)


def _figures(attack: RepeatedAttack, attacks: int, limit: float) -> dict[str, Any]:
    lower, upper = (round(bound, 6) for bound in attack.bounds(attacks))
    return {
        "auroc": round(attack.auroc, 6),
        "lower": lower,
        "upper": upper,
        "finding": "ABOVE" if six(lower) > six(limit) else "BELOW" if six(upper) <= six(limit) else "UNDECIDED",
        "standard_error": round(attack.standard_error, 6),
        "tpr_at_1pct_fpr": round(float(attack.tprs.mean()), 6),
    }


def _status(figures: Mapping[str, Mapping[str, Any]], membership_limit: float) -> HalfSplitStatus:
    limit = six(membership_limit)
    if max(six(attack["auroc"]) for attack in figures.values()) > limit:
        return "FAIL"
    if max(six(attack["upper"]) for attack in figures.values()) <= limit:
        return "PASS_CONFIRMED"
    return "PASS_POINT"
