"""Why a gate's verdict is what it is, in words: which statistic stands in the way, never its figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synth_platform.evaluation.closest_record import NEAR_SHARE
from synth_platform.evaluation.statistics import six

Document = Mapping[str, Any]

ENDPOINT_STATUS: Mapping[str, str] = {
    "HOLD_UNDEFINED": "is not defined on these rows",
    "HOLD_UNINFORMATIVE": "shows no signal on the real rows themselves",
    "FAIL_RATIO": "keeps less than 95 % of what real rows give",
    "FAIL_SKILL": "keeps less than 90 % of the skill above chance",
}


def explain_utility(judged: Document) -> tuple[str, ...]:
    """Every endpoint that is not passed; empty exactly for PASS_*."""
    statuses = {name: endpoint["status"] for name, endpoint in judged["summary"]["endpoints"].items()}
    return tuple(f"{name} {ENDPOINT_STATUS[s]} ({s})" for name, s in statuses.items() if s in ENDPOINT_STATUS)


def explain_closest_record(judged: Document) -> tuple[str, ...]:
    """Each of the three judged statistics that is out of its bounds (8-1 §3.4); empty exactly for PASS."""
    figures, frozen = judged["summary"], judged["evidence"]
    broken = {
        "it holds copies of training rows": figures["duplicates"] > 0,
        "its rows lie nearer to training rows than to rows the generator never saw": (
            six(figures["train_closer_upper"]) > six(0.5 + frozen["train_closer_tolerance"])
        ),
        "too many of its rows crowd around training rows": (
            six(figures["excess_upper"]) > six(NEAR_SHARE + frozen["excess_tolerance"])
        ),
    }
    return tuple(reason for reason, holds in broken.items() if holds)


def explain_membership(judged: Document) -> tuple[str, ...]:
    """Each attack that is above the limit, or not confirmed to be below; empty exactly for PASS_CONFIRMED."""
    limit = six(judged["evidence"]["membership_limit"])
    reasons = []
    for name, attack in judged["summary"]["attacks"].items():
        unsure = ", by its point estimate; its interval holds the limit" if attack["finding"] == "UNDECIDED" else ""
        if six(attack["auroc"]) > limit:
            reasons.append(f"attack {name} tells training rows from fresh ones{unsure}")
        elif six(attack["upper"]) > limit:
            reasons.append(f"attack {name} is below the limit, but its upper bound is not: too few rows to decide")
    return tuple(reasons)


def explain_inference(judged: Document) -> tuple[str, ...]:
    """Each attack that succeeds too often on training rows, else each that is undecided; empty exactly for PASS."""
    figures = judged["summary"]
    attacks = {
        "attributes are guessed": figures["attribute_inference"],
        "people are singled out": figures["singling_out"],
    }
    secrets = {f"{name} is guessed": secret for name, secret in figures["secrets"].items()}
    failed = [name for name, attack in (attacks | secrets).items() if attack["status"] == "FAIL"]
    if failed:
        return tuple(f"{name} more often among training rows than among rows it never saw" for name in failed)
    unsure = [name for name, attack in attacks.items() if attack["status"] == "UNDECIDED"]
    return tuple(f"too few rows to tell whether {name} more often among training rows" for name in unsure)
