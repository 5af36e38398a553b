"""The decision rules of 8-1 §3.3-3.5 as the audit reads them: tables of conditions, first match wins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from synth_platform.audit.reading import six
from synth_platform.audit.statistics import jackknife_error, normal_quantile, student_95

MARGIN, RATIO, SKILL = Fraction("0.05"), Fraction("0.95"), Fraction("0.90")
Value = Fraction | float | None


@dataclass(frozen=True)
class Preserved:
    """What the figures of one endpoint come to; None where a figure is not defined."""

    preservation: Fraction | None = None
    skill: Fraction | None = None
    lcb_preservation: float | None = None
    lcb_trtr: float | None = None


def preserved(
    tstr: Value, trtr: Value, tstr_groups: Sequence[Value], trtr_groups: Sequence[Value], chance: float
) -> Preserved:
    """P, S and the two jackknife lower bounds of 8-1 §3.3, from values rounded to six decimals."""
    if tstr is None or trtr is None or None in (*tstr_groups, *trtr_groups):
        return Preserved()
    a, b, c = six(tstr), six(trtr), six(chance)
    synthetic = [six(value) for value in tstr_groups if value is not None]
    real = [six(value) for value in trtr_groups if value is not None]
    quantile = student_95(len(real))
    lcb_ratio = None
    if b != 0 and 0 not in real:
        ratios = [float(s / r) for s, r in zip(synthetic, real, strict=True)]
        lcb_ratio = float(a / b) - quantile * jackknife_error(ratios)
    return Preserved(
        preservation=a / b if b != 0 else None,
        skill=(a - c) / (b - c) if b != c else None,
        lcb_preservation=lcb_ratio,
        lcb_trtr=float(b) - quantile * jackknife_error([float(value) for value in real]),
    )


def preservation_status(
    *, tstr: float | None, trtr: float | None, lcb_trtr: float | None, lcb_preservation: float | None, chance: float
) -> str:
    """Status of one endpoint from its figures at six decimals, by the ordered table of 8-1 §3.3."""
    if tstr is None or trtr is None or lcb_trtr is None:
        return "HOLD_UNDEFINED"
    a, b, c = six(tstr), six(trtr), six(chance)
    table = (
        ("HOLD_UNINFORMATIVE", b in (0, c) or six(lcb_trtr) - c <= MARGIN),
        # Multiplied out; b is above c here, and above zero because no chance level is negative.
        ("FAIL_RATIO", a < RATIO * b),
        ("FAIL_SKILL", a - c < SKILL * (b - c)),
        ("PASS_CONFIRMED", lcb_preservation is not None and six(lcb_preservation) >= RATIO),
        ("PASS_POINT", True),
    )
    return next(status for status, holds in table if holds)


def utility_status(statuses: Iterable[str]) -> str:
    """Utility of a table from its endpoints: the worst of FAIL, HOLD, PASS_POINT, PASS_CONFIRMED."""
    severity = ("PASS_CONFIRMED", "PASS_POINT", "HOLD", "FAIL")
    folded = [status.split("_")[0] if status.startswith(("FAIL", "HOLD")) else status for status in statuses]
    return severity[max(map(severity.index, folded))]


def closest_record_status(
    duplicates: float, closer_upper: float, excess_upper: float, *, closer_tolerance: float, excess_tolerance: float
) -> str:
    """PASS only without a copy and with both upper bounds inside their tolerances (8-1 §3.4)."""
    held = (
        duplicates == 0,
        six(closer_upper) <= six(0.5 + closer_tolerance),
        six(excess_upper) <= six(0.05 + excess_tolerance),
    )
    return "PASS" if all(held) else "FAIL"


def membership_status(areas: Iterable[float], uppers: Iterable[float], limit: float) -> str:
    """FAIL by the largest AUROC, confirmed by the largest upper bound (8-1 §3.4)."""
    if any(six(area) > six(limit) for area in areas):
        return "FAIL"
    return "PASS_CONFIRMED" if all(six(upper) <= six(limit) for upper in uppers) else "PASS_POINT"


def required_rows(limit: float, attacks: int) -> int:
    """N a side that confirms a true AUROC of 1/2 with 90 % power: (z_(1-.05/A) + z_.9)^2 / (6 (limit - 1/2)^2)."""
    z = normal_quantile(1 - 0.05 / attacks) + normal_quantile(0.9)
    return math.ceil(z * z / (6 * (limit - 0.5) * (limit - 0.5)))


def confirmation_power(rows: int, limit: float, attacks: int) -> float:
    """At least this often, `rows` a side confirm every attack where all true AUROCs are 1/2: 1 - A P(one is missed).

    The null variance of a rank sum is m n (m + n + 1) / 12, so that of its AUROC is (2 N + 1) / (12 N^2).
    """
    deviation = math.sqrt(2 * rows + 1) / (rows * math.sqrt(12))
    missed = 0.5 * math.erfc(((limit - 0.5) / deviation - normal_quantile(1 - 0.05 / attacks)) / math.sqrt(2))
    return max(0.0, 1 - attacks * missed)


def finding(lower: float, upper: float, limit: float) -> str:
    """Where the interval of an attack lies by the limit."""
    if six(upper) <= six(limit):
        return "BELOW"
    return "ABOVE" if six(lower) > six(limit) else "UNDECIDED"


# What each status stands in the way with. A status that is in none of these tables is not one (8-1 §3.5).
UTILITY: Mapping[str, str | None] = {
    "PASS_CONFIRMED": None,
    "PASS_POINT": None,
    "HOLD": "UTILITY_HOLD",
    "FAIL": "UTILITY_FAIL",
}
CLOSEST_RECORD: Mapping[str, str | None] = {"PASS": None, "FAIL": "CLOSEST_RECORD_FAIL"}
MEMBERSHIP: Mapping[str, str | None] = {
    "PASS_CONFIRMED": None,
    "PASS_POINT": "MEMBERSHIP_NOT_CONFIRMED",
    "FAIL": "MEMBERSHIP_FAIL",
}
FORMAL: Mapping[str, str | None] = {
    "OK": None,
    "ABSENT": "LEDGER_ABSENT",
    "BUDGET_EXCEEDED": "BUDGET_EXCEEDED",
    "CONTRADICTION": "DP_AUDIT_CONTRADICTION",
}


def release_rule(
    *, violations: int, utility: str, closest_record: str, membership: str, formal: str
) -> tuple[str, list[str]]:
    """Grade and reasons of one combination. Raises KeyError for a status that does not exist."""
    looked_up = (UTILITY[utility], CLOSEST_RECORD[closest_record], MEMBERSHIP[membership], FORMAL[formal])
    reasons = [reason for reason in ("SCHEMA_VIOLATION" if violations else None, *looked_up) if reason is not None]
    if reasons:
        return "BLOCKED", reasons
    return f"ELIGIBLE_{utility.removeprefix('PASS_')}", []
