"""G3, power: how often fresh draws of the truth passed, counted again draw by draw (8-1 §3.3, §3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from synth_platform.audit.findings import Findings
from synth_platform.audit.reading import Document, figure, item, mapping, number, sequence, text, whole
from synth_platform.audit.rules import (
    closest_record_status,
    confirmation_power,
    preservation_status,
    required_rows,
    utility_status,
)

NAME = "gates/power"
PASSING = ("PASS_CONFIRMED", "PASS_POINT")


def audit_power(found: Findings, document: Document, registered: Document) -> None:
    """Recompute every share that the evidence determines, and which gates are below the floor."""
    name = f"G3/{NAME}"
    evidence, summary, gates = mapping(document, "evidence"), mapping(document, "summary"), mapping(registered, "gates")
    draws = len(sequence(evidence, "seeds"))
    found.same(f"{name}/draws", "registration", draws, whole(gates, "power_draws"))
    floor = number(summary, "floor")
    found.same(f"{name}/floor", "registration", floor, number(gates, "power_floor"))
    statuses = {}
    for endpoint in sequence(registered, "endpoints"):
        code = text(endpoint, "name")
        with found.section(f"{name}/{code}"):
            claimed = mapping(summary, "utility", code)
            statuses[code] = _endpoint(found, f"{name}/{code}", evidence, code, number(endpoint, "chance"), draws)
            passed = _share([status in PASSING for status in statuses[code]])
            found.close(f"{name}/{code}/power", "power", number(claimed, "power"), passed)
            found.same(f"{name}/{code}/draws", "length", whole(claimed, "draws"), draws)
            found.uncovered.append(f"{NAME}/utility.{code}.rows_for_90")
    overall = [utility_status(one) for one in zip(*statuses.values(), strict=True)] if any(statuses.values()) else []
    passed = _share([status in PASSING for status in overall])
    found.close(f"{name}/utility_gate/power", "power", number(summary, "utility_gate", "power"), passed)
    _closest_record(found, name, mapping(summary, "closest_record"), mapping(evidence, "closest_record"), gates)

    limit, attacks = number(gates, "membership_limit"), len(sequence(gates, "attacks"))
    claimed = mapping(summary, "membership")
    own = confirmation_power(whole(claimed, "rows"), limit, attacks)
    found.close(f"{name}/membership/power", "power", number(claimed, "power"), own)
    needed = required_rows(limit, attacks)
    found.same(f"{name}/membership/required_rows", "required_rows", whole(claimed, "required_rows"), needed)

    judged = {**mapping(summary, "utility"), **{g: mapping(summary, g) for g in ("utility_gate", "membership")}}
    judged["closest_record"] = mapping(summary, "closest_record")
    low = sorted(gate for gate, figures in judged.items() if number(figures, "power") < floor)
    found.same(f"{name}/low", "status", sorted(sequence(summary, "low")), low)
    found.same(f"{name}/status", "status", text(document, "status"), "LOW_POWER" if low else "OK")


def _endpoint(found: Findings, name: str, evidence: Document, code: str, chance: float, draws: int) -> list[str]:
    """The statuses of all draws, each held against its figures; none where the design could not be tried."""
    if code not in mapping(evidence, "utility"):
        return []
    drawn = mapping(evidence, "utility", code)
    listed = [str(status) for status in sequence(drawn, "status")]
    figures = ("tstr", "trtr", "lcb_trtr", "lcb_preservation")
    columns = {key: {str(draw): value for draw, value in enumerate(sequence(drawn, key))} for key in figures}
    own = [
        preservation_status(**{key: figure(columns[key], str(draw)) for key in figures}, chance=chance)
        for draw in range(draws)
    ]
    found.same(f"{name}/statuses", "status", listed, own, public=False)
    return listed


def _closest_record(found: Findings, name: str, claimed: Document, drawn: Document, gates: Document) -> None:
    columns = ("duplicates", "train_closer_upper", "excess_upper")
    tolerances = {
        "closer_tolerance": number(gates, "train_closer_tolerance"),
        "excess_tolerance": number(gates, "excess_tolerance"),
    }
    own = [
        closest_record_status(*map(float, figures), **tolerances)
        for figures in zip(*(sequence(drawn, column) for column in columns), strict=True)
    ]
    found.same(f"{name}/closest_record/statuses", "status", sequence(drawn, "status"), own, public=False)
    for key, wanted in (("power", "PASS"), ("false_alarm", "FAIL")):
        share = _share([status == wanted for status in own])
        found.close(f"{name}/closest_record/{key}", "power", number(claimed, key), share)
    found.uncovered.append(f"{NAME}/closest_record.excess_false_alarm")
    found.same(f"{name}/closest_record/draws", "length", item(claimed, "draws"), len(own))


def _share(outcomes: Sequence[bool]) -> float:
    return sum(outcomes) / len(outcomes) if outcomes else 0.0
