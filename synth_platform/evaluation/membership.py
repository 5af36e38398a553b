"""The membership gate: can named attacks tell training rows from fresh ones by the synthetic table? (8-1 §3.4)."""

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
from synth_platform.evaluation.statistics import delong, normal_probability, normal_quantile, six
from synth_platform.normalize.rows import EncodedRows, FloatArray

MembershipStatus = Literal["PASS_CONFIRMED", "PASS_POINT", "FAIL"]
Finding = Literal["ABOVE", "BELOW", "UNDECIDED"]

FAMILY_ERROR = 0.05
LOW_FALSE_POSITIVE_RATE = 0.01
_MATCH_SEED = 8_135


@dataclass(frozen=True)
class AttackVerdict:
    """One attack: AUROC between its Bonferroni bounds, DeLong standard error, TPR where FPR is at most 1 %.

    lower, upper: each one-sided at 5 % over the number of attacks, with at least the null error of an AUROC: where
    scores tie or the sides are apart DeLong's is 0, which is no certainty. finding: where they lie by the limit;
    UNDECIDED is an interval too wide to tell with these rows, whatever the point estimate suggests.
    """

    auroc: float
    lower: float
    upper: float
    standard_error: float
    tpr_at_1pct_fpr: float
    finding: Finding


@dataclass(frozen=True)
class MembershipVerdict:
    """The attacks by name and the gate's status.

    rows: members, and as many non-members. power: probability, at least, that these rows confirm a table whose true
    AUROCs are all 1/2. required_rows: how many of each side would confirm each attack on it with 90 % power; with
    fewer, PASS_POINT says more about the audit than about the table.
    """

    attacks: Mapping[AttackCode, AttackVerdict]
    rows: int
    power: float
    required_rows: int
    status: MembershipStatus
    evidence: Evidence = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Summary without arrays."""
        return {
            "attacks": {name: asdict(attack) for name, attack in self.attacks.items()},
            "rows": self.rows,
            "power": self.power,
            "required_rows": self.required_rows,
            "status": self.status,
        }


def required_rows(limit: float, attacks: int = 2, power: float = 0.9) -> int:
    """Members (and non-members) needed to confirm AUROC <= limit where the truth is 1/2: null variance 1/(6 N)."""
    distance = normal_quantile(1 - FAMILY_ERROR / attacks) + normal_quantile(power)
    return math.ceil(distance**2 / (6 * (limit - 0.5) ** 2))


def confirmation_power(limit: float, members: int, nonmembers: int, attacks: int) -> float:
    """Probability, at least, that every attack is confirmed below `limit` where the truth is 1/2 for all of them.

    One attack: Phi((limit - 1/2) / s - z), s^2 = (m + n + 1) / (12 m n) the null variance of an AUROC of m members and
    n non-members, z the Bonferroni quantile. All together: 1 - A (1 - that), or 0, as nothing is assumed of their
    dependence.
    """
    error = null_error(members, nonmembers)
    each = normal_probability((limit - 0.5) / error - normal_quantile(1 - FAMILY_ERROR / attacks))
    return max(0.0, 1 - attacks * (1 - each))


def null_error(members: int, nonmembers: int) -> float:
    """Standard error sqrt((m + n + 1) / (12 m n)) of an AUROC under the null, without ties (Mann & Whitney 1947)."""
    return math.sqrt((members + nonmembers + 1) / (12 * members * nonmembers))


def judge_attack(members: FloatArray, nonmembers: FloatArray, options: GateOptions) -> AttackVerdict:
    """One attack by the scores it gives members [m] and non-members [n].

    The bounds take DeLong's standard error, or the null error where that is smaller.
    """
    auroc, error = delong(members, nonmembers)
    floor = null_error(len(members), len(nonmembers))
    margin = normal_quantile(1 - FAMILY_ERROR / len(options.attacks)) * max(error, floor)
    lower, upper = round(auroc - margin, 6), round(auroc + margin, 6)
    limit = six(options.membership_limit)
    return AttackVerdict(
        auroc=round(auroc, 6),
        lower=lower,
        upper=upper,
        standard_error=round(error, 6),
        tpr_at_1pct_fpr=round(tpr_at(members, nonmembers, LOW_FALSE_POSITIVE_RATE), 6),
        finding="ABOVE" if six(lower) > limit else "BELOW" if six(upper) <= limit else "UNDECIDED",
    )


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
    """Attack one synthetic table; members are training rows, non-members fresh rows of the same population.

    The larger side is thinned by a public seed so that both have the same number of rows. Thresholds are compared as
    rationals at six decimals.

    Raises ValueError with fewer than two rows a side, or fewer synthetic or public rows than `options.neighbours`.
    """
    members_x, nonmembers_x = matched(train.x, nonmembers.x, _MATCH_SEED)
    n = len(members_x)
    if n < 2:
        raise ValueError("the membership gate needs at least two training rows and two non-members")
    scores = attack_scores(
        np.concatenate([members_x, nonmembers_x]),
        synthetic.x,
        public.x,
        neighbours=options.neighbours,
        attacks=options.attacks,
    )
    attacks = {name: judge_attack(score[:n], score[n:], options) for name, score in scores.items()}
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
        rows=n,
        power=round(confirmation_power(options.membership_limit, n, n, len(attacks)), 6),
        required_rows=required_rows(options.membership_limit, attacks=len(attacks)),
        status=status,
        evidence={
            "membership_limit": options.membership_limit,
            "neighbours": options.neighbours,
            "scores": {
                name: {"members": rounded(score[:n]), "nonmembers": rounded(score[n:])}
                for name, score in scores.items()
            },
        },
    )
