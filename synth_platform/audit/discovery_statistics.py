"""G3, the statistic of a list: how far one record moves its log e-value, from its public constants by own formulas.

One record is replaced within its group of public size; of a log-rank statistic the groups are private, and a record may
change its own. A statistic that is another one than that which chose the size was chosen by the data itself: only a
family that pays for the best choice from a range which was fixed before may do so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from synth_platform.audit.findings import Findings, MalformedError
from synth_platform.audit.reading import Document, array, mapping, number, sequence, text, whole

CHOSEN = "mann_whitney_chosen_tilt"
STATISTICS: Mapping[str, Sequence[str]] = {"discovery": ("mann_whitney", CHOSEN, "log_rank"), "gwas": ("dosage",)}

_MOST = 2**53
# Of a figure that was computed in float64 by another formula.
_RELATIVE = 1e-9


def audit_statistic(found: Findings, name: str, stage: str, statistic: Document, registered: Document) -> None:
    """The statistic is one of the stage, for the registered sizes, and no less sensitive than its constants make it."""
    kind = text(statistic, "name")
    if not found.holds(f"{name}/name", "statistic", kind in STATISTICS.get(stage, ()), "not a statistic of the stage"):
        return
    sizes, own = SENSITIVITIES[kind](mapping(statistic, "parameters"))
    found.same(f"{name}/sizes", "sizes", sizes, sequence(registered, "sizes"))
    claimed = number(statistic, "sensitivity")
    same = math.isclose(claimed, own, rel_tol=_RELATIVE)
    found.holds(f"{name}/sensitivity", "sensitivity", same, f"claimed {claimed:.9g}, found {own:.9g}")


def audit_choice(found: Findings, name: str, chooser: Document, statistic: Document) -> None:
    """What the data chose among: nothing, or tilts of one range that was fixed before."""
    fixed, used = (dict(mapping(one, "parameters")) for one in (chooser, statistic))
    if text(statistic, "name") == CHOSEN:
        fixed["tilt"] = used["tilt"]
    same = text(chooser, "name") == text(statistic, "name") and fixed == used
    found.holds(name, "choice", same, "another statistic than the one that chose the size")


def mann_whitney_sensitivity(parameters: Document) -> tuple[list[int], float]:
    """[cases, controls] and Δ: a replaced record changes every comparison with the other group, each by at most 1."""
    _only(parameters, {"n_case", "n_control", "tilt", "two_sided"})
    cases, controls = count(parameters, "n_case"), count(parameters, "n_control")
    tilt = Fraction(number(parameters, "tilt"))
    return [cases, controls], float(max(abs(tilt * cases), abs(tilt * controls)))


def chosen_tilt_sensitivity(parameters: Document) -> tuple[list[int], float]:
    """[cases, controls] and Δ of the tilt that is used: what the choice costs is public and no record moves it."""
    lowest, highest = positive(parameters, "lowest"), positive(parameters, "highest")
    if not lowest <= abs(number(parameters, "tilt")) <= highest:
        raise MalformedError("tilt")
    return mann_whitney_sensitivity({k: v for k, v in parameters.items() if k not in ("lowest", "highest")})


def dosage_sensitivity(parameters: Document) -> tuple[list[int], float]:
    """[cases, controls] and Δ = log((n_small + n_large e^{2κ})/n): 0 becomes 2 beside the least favourable others."""
    _only(parameters, {"n_case", "n_control", "kappa", "two_sided"})
    cases, controls = count(parameters, "n_case"), count(parameters, "n_control")
    odds = math.exp(2 * positive(parameters, "kappa"))
    larger, smaller = max(cases, controls), min(cases, controls)
    return [cases, controls], math.log((smaller + larger * odds) / (cases + controls))


def log_rank_sensitivity(parameters: Document) -> tuple[list[int], float]:
    """[patients] and Δ = log((1 + (n − 1)e^{κv})/n), v the width of residuals: 1 at most up, sup Λ0 at most down."""
    _only(parameters, {"size", "times", "cumulative_hazard", "clip", "cut", "tilt", "two_sided"})
    patients, clip = count(parameters, "size"), positive(parameters, "clip")
    hazard, times = array(parameters, "cumulative_hazard"), array(parameters, "times")
    if not len(hazard) or len(hazard) != len(times) or hazard.min() < 0 or (times[1:] <= times[:-1]).any():
        raise MalformedError("cumulative_hazard")
    number(parameters, "cut")
    width = min(clip, 1.0) + min(clip, float(hazard.max()))
    odds = math.exp(positive(parameters, "tilt") * width)
    return [patients], math.log((1 + (patients - 1) * odds) / patients)


SENSITIVITIES: Mapping[str, Callable[[Document], tuple[list[int], float]]] = {
    "mann_whitney": mann_whitney_sensitivity,
    CHOSEN: chosen_tilt_sensitivity,
    "dosage": dosage_sensitivity,
    "log_rank": log_rank_sensitivity,
}


def _only(parameters: Document, names: set[str]) -> None:
    if set(parameters) != names or type(parameters["two_sided"]) is not bool:
        raise MalformedError("parameters")


def count(document: Document, name: str) -> int:
    """The number of things at a name: at least one, and exact as a float."""
    value = whole(document, name)
    if not 1 <= value < _MOST:
        raise MalformedError(name)
    return value


def positive(document: Document, name: str) -> float:
    """The number above zero at a name."""
    value = number(document, name)
    if value <= 0:
        raise MalformedError(name)
    return value
