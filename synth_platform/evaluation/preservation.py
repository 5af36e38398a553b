"""Judging one endpoint: is the synthetic arm's skill that of the real arm? (8-1 §3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from synth_platform.evaluation.statistics import jackknife_error, six, t_quantile

PreservationStatus = Literal[
    "HOLD_UNDEFINED", "HOLD_UNINFORMATIVE", "FAIL_RATIO", "FAIL_SKILL", "PASS_CONFIRMED", "PASS_POINT"
]
UtilityStatus = Literal["PASS_CONFIRMED", "PASS_POINT", "HOLD", "FAIL"]

MARGIN_ABOVE_CHANCE = Fraction(5, 100)
RATIO = Fraction(95, 100)
SKILL = Fraction(90, 100)


@dataclass(frozen=True)
class Preservation:
    """One endpoint's figures and status, rounded to six decimals; None where a figure is not defined.

    preservation: P = TSTR/TRTR. skill: S = (TSTR - c)/(TRTR - c). lcb_*: one-sided 95 % lower bounds.
    """

    tstr: float | None
    trtr: float | None
    preservation: float | None
    skill: float | None
    lcb_preservation: float | None
    lcb_trtr: float | None
    status: PreservationStatus


def judge(
    *,
    tstr: float | None,
    trtr: float | None,
    tstr_groups: Sequence[float | None],
    trtr_groups: Sequence[float | None],
    chance: float,
) -> Preservation:
    """Judge one endpoint by the ordered table of 8-1 §3.3.

    tstr_groups, trtr_groups: the endpoint with jackknife group g deleted, the same test rows deleted in both arms, so
    that the ratio stays paired. Every comparison is between rationals of values rounded to six decimals. A group
    without a value leaves no bound to state and counts as undefined.

    Raises ValueError where the two arms have different numbers of groups.
    """
    if len(tstr_groups) != len(trtr_groups) or len(trtr_groups) < 2:
        raise ValueError(f"{len(tstr_groups)} and {len(trtr_groups)} jackknife groups: expected the same number, >= 2")
    synthetic = [float(six(value)) for value in tstr_groups if value is not None]
    real = [float(six(value)) for value in trtr_groups if value is not None]
    if tstr is None or trtr is None or len(synthetic) < len(tstr_groups) or len(real) < len(trtr_groups):
        return Preservation(_rounded(tstr), _rounded(trtr), None, None, None, None, "HOLD_UNDEFINED")

    a, b, c = six(tstr), six(trtr), six(chance)
    quantile = t_quantile(len(real))
    lcb_trtr = six(float(b) - quantile * jackknife_error(real))
    ratio = a / b if b != 0 else None
    skill = (a - c) / (b - c) if b != c else None
    lcb_ratio = None
    if ratio is not None and all(real):
        ratios = [s / r for s, r in zip(synthetic, real, strict=True)]
        lcb_ratio = six(float(ratio) - quantile * jackknife_error(ratios))

    status: PreservationStatus
    if ratio is None or skill is None or lcb_trtr <= c + MARGIN_ABOVE_CHANCE:
        status = "HOLD_UNINFORMATIVE"
    elif ratio < RATIO:
        status = "FAIL_RATIO"
    elif skill < SKILL:
        status = "FAIL_SKILL"
    elif lcb_ratio is not None and lcb_ratio >= RATIO:
        status = "PASS_CONFIRMED"
    else:
        status = "PASS_POINT"
    return Preservation(
        tstr=float(a),
        trtr=float(b),
        preservation=_rounded(ratio),
        skill=_rounded(skill),
        lcb_preservation=_rounded(lcb_ratio),
        lcb_trtr=float(lcb_trtr),
        status=status,
    )


def utility_status(statuses: Iterable[PreservationStatus]) -> UtilityStatus:
    """The cohort's utility: any FAIL, else any HOLD, else all confirmed, else a point pass."""
    found = set(statuses)
    if not found:
        raise ValueError("no endpoint was judged")
    if found & {"FAIL_RATIO", "FAIL_SKILL"}:
        return "FAIL"
    if found & {"HOLD_UNDEFINED", "HOLD_UNINFORMATIVE"}:
        return "HOLD"
    return "PASS_CONFIRMED" if found == {"PASS_CONFIRMED"} else "PASS_POINT"


def _rounded(value: float | Fraction | None) -> float | None:
    return None if value is None else float(six(float(value)))
