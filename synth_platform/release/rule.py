"""The release rule over all gates (8-1 §3.5): 192 combinations of statuses, of which exactly two may be released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from synth_platform.evaluation.closest_record import ClosestRecordStatus
from synth_platform.evaluation.membership import MembershipStatus
from synth_platform.evaluation.preservation import UtilityStatus
from synth_platform.privacy.formal import FORMAL_REASONS, FormalStatus

ReleaseGrade = Literal["ELIGIBLE_CONFIRMED", "ELIGIBLE_POINT", "BLOCKED"]

_REASONS: dict[tuple[str, str], str] = {
    ("utility", "FAIL"): "UTILITY_FAIL",
    ("utility", "HOLD"): "UTILITY_HOLD",
    ("closest_record", "FAIL"): "CLOSEST_RECORD_FAIL",
    ("membership", "FAIL"): "MEMBERSHIP_FAIL",
    ("membership", "PASS_POINT"): "MEMBERSHIP_NOT_CONFIRMED",
    **{("formal", status): reason for status, reason in FORMAL_REASONS.items()},
}


@dataclass(frozen=True)
class RuleDecision:
    """The grade and, where it is BLOCKED, one reason code for every status that stands in the way."""

    decision: ReleaseGrade
    reasons: tuple[str, ...]


def decide(
    *,
    schema_violations: int,
    utility: UtilityStatus,
    closest_record: ClosestRecordStatus,
    membership: MembershipStatus,
    formal: FormalStatus,
) -> RuleDecision:
    """Grade one synthetic table by its statuses.

    Privacy cannot be taken back, so membership must be confirmed; utility can, so a point pass is released under its
    own grade. Raises ValueError for a status that does not exist: nothing unknown is ever eligible.
    """
    given = {"utility": utility, "closest_record": closest_record, "membership": membership, "formal": formal}
    known = {
        "utility": get_args(UtilityStatus),
        "closest_record": get_args(ClosestRecordStatus),
        "membership": get_args(MembershipStatus),
        "formal": get_args(FormalStatus),
    }
    for gate, status in given.items():
        if status not in known[gate]:
            raise ValueError(f"{gate} status {status!r} does not exist; it is one of {', '.join(known[gate])}")
    if schema_violations < 0:
        raise ValueError(f"{schema_violations} schema violations: a count cannot be negative")
    reasons = ["SCHEMA_VIOLATION"] if schema_violations else []
    reasons += [_REASONS[key] for key in given.items() if key in _REASONS]
    if reasons:
        return RuleDecision("BLOCKED", tuple(reasons))
    return RuleDecision("ELIGIBLE_CONFIRMED" if utility == "PASS_CONFIRMED" else "ELIGIBLE_POINT", ())
