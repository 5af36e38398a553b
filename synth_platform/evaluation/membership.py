"""The membership gate: can two named attacks tell training rows from fresh ones by the synthetic table? (8-1 §3.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from synth_platform.contract.options import AttackCode, GateOptions
from synth_platform.evaluation.attacks import attack_scores
from synth_platform.evaluation.distances import matched
from synth_platform.evaluation.evidence import Evidence, rounded
from synth_platform.evaluation.statistics import delong, normal_quantile, six
from synth_platform.normalize.rows import EncodedRows, FloatArray

MembershipStatus = Literal["PASS_CONFIRMED", "PASS_POINT", "FAIL"]

FAMILY_ERROR = 0.05
LOW_FALSE_POSITIVE_RATE = 0.01
_MATCH_SEED = 8_135


@dataclass(frozen=True)
class AttackVerdict:
    """One attack: AUROC, its Bonferroni one-sided upper bound, DeLong standard error, TPR where FPR is at most 1 %."""

    auroc: float
    upper: float
    standard_error: float
    tpr_at_1pct_fpr: float


@dataclass(frozen=True)
class MembershipVerdict:
    """The attacks by name and the gate's status.

    rows: members, and as many non-members. required_rows: how many of each would confirm a generator whose true AUROC
    is 1/2 with 90 % power; with fewer, PASS_POINT says more about the audit than about the table.
    """

    attacks: Mapping[AttackCode, AttackVerdict]
    rows: int
    required_rows: int
    status: MembershipStatus
    evidence: Evidence = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Summary without arrays."""
        return {
            "attacks": {name: asdict(attack) for name, attack in self.attacks.items()},
            "rows": self.rows,
            "required_rows": self.required_rows,
            "status": self.status,
        }


def required_rows(limit: float, attacks: int = 2, power: float = 0.9) -> int:
    """Members (and non-members) needed to confirm AUROC <= limit where the truth is 1/2: null variance 1/(6 N)."""
    distance = normal_quantile(1 - FAMILY_ERROR / attacks) + normal_quantile(power)
    return math.ceil(distance**2 / (6 * (limit - 0.5) ** 2))


def tpr_at(members: FloatArray, nonmembers: FloatArray, false_positive_rate: float) -> float:
    """Largest share of members above a threshold that at most `false_positive_rate` of the non-members exceed."""
    allowed = math.floor(false_positive_rate * len(nonmembers) + 1e-9)
    if allowed >= len(nonmembers):
        return 1.0
    threshold = np.sort(nonmembers)[len(nonmembers) - 1 - allowed]
    return float((members > threshold).mean())


def membership_gate(
    train: EncodedRows, nonmembers: EncodedRows, synthetic: EncodedRows, public: EncodedRows, options: GateOptions
) -> MembershipVerdict:
    """Attack one synthetic table with A1 and A2; members are training rows, non-members of the same population.

    The larger side is thinned by a public seed so that both have the same number of rows. Thresholds are compared as
    rationals at six decimals.

    Raises ValueError with fewer than two rows a side, or fewer synthetic or public rows than `options.neighbours`.
    """
    members_x, nonmembers_x = matched(train.x, nonmembers.x, _MATCH_SEED)
    if len(members_x) < 2:
        raise ValueError("the membership gate needs at least two training rows and two non-members")
    inside = attack_scores(members_x, synthetic.x, public.x, neighbours=options.neighbours, attacks=options.attacks)
    outside = attack_scores(nonmembers_x, synthetic.x, public.x, neighbours=options.neighbours, attacks=options.attacks)
    quantile = normal_quantile(1 - FAMILY_ERROR / len(inside))
    attacks: dict[AttackCode, AttackVerdict] = {}
    for name in inside:
        auroc, error = delong(inside[name], outside[name])
        attacks[name] = AttackVerdict(
            auroc=round(auroc, 6),
            upper=round(auroc + quantile * error, 6),
            standard_error=round(error, 6),
            tpr_at_1pct_fpr=round(tpr_at(inside[name], outside[name], LOW_FALSE_POSITIVE_RATE), 6),
        )
    limit = six(options.membership_limit)
    status: MembershipStatus
    if max(six(a.auroc) for a in attacks.values()) > limit:
        status = "FAIL"
    elif max(six(a.upper) for a in attacks.values()) <= limit:
        status = "PASS_CONFIRMED"
    else:
        status = "PASS_POINT"
    return MembershipVerdict(
        attacks=attacks,
        rows=len(members_x),
        required_rows=required_rows(options.membership_limit, attacks=len(attacks)),
        status=status,
        evidence={
            "membership_limit": options.membership_limit,
            "neighbours": options.neighbours,
            "scores": {
                name: {"members": rounded(inside[name]), "nonmembers": rounded(outside[name])} for name in inside
            },
        },
    )
