"""What governance is told about without asking: budgets that are nearly spent, data use agreements that changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from resources.cohorts import CohortRegistry
from synth_platform.contract.cohort_spec import CohortSpecError
from synth_platform.privacy.figures import exceeds
from synth_platform.privacy.ledger import Ledger

LEVELS = (80, 95, 100)  # percent of a cap at which governance is told
UNREADABLE = "cohort.yaml cannot be read"


@dataclass(frozen=True)
class Seen:
    """What was there at the last look. turn: how often something had happened by then. levels: of each domain. tags: of
    each cohort."""

    turn: int = 0
    levels: Mapping[str, int] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self)


def budgets(ledger: Ledger) -> list[dict[str, Any]]:
    """`Ledger.budget_summary` of every domain, with the level it has reached."""
    return [{**summary, "level": level(summary)} for summary in map(ledger.budget_summary, ledger.domains())]


def level(summary: Mapping[str, Any], levels: Sequence[int] = LEVELS) -> int:
    """The highest of `levels`, in percent of the cap, that the RDP figure has reached at six decimals; 0 below all."""
    reached = [percent for percent in levels if not exceeds(summary["cap"] * percent / 100, summary["spent_rdp"])]
    return max(reached, default=0)


def dua_tags(registry: CohortRegistry) -> dict[str, str]:
    """The data use tag of every registered cohort as its cohort.yaml reads now."""
    return {name: _tag(registry, name) for name in sorted(registry.folders())}


def happened(before: Seen, levels: Mapping[str, int], tags: Mapping[str, str]) -> tuple[list[str], Seen]:
    """What happened since `before`, in words, and what has been seen now.

    A domain that reaches a higher level, from nothing or from where it was; a cohort whose tag is another one. A cohort
    seen for the first time is no change, and neither is one that is registered no more.
    """
    news = [
        f"privacy domain {domain} has spent {reached} % of its budget"
        for domain, reached in levels.items()
        if reached > before.levels.get(domain, 0)
    ]
    news += [
        f"the data use agreement of cohort {cohort} is now: {tag}"
        for cohort, tag in tags.items()
        if before.tags.get(cohort, tag) != tag
    ]
    return news, Seen(before.turn + bool(news), dict(levels), {**before.tags, **tags})


def run_key(news: Sequence[str], turn: int) -> str:
    """The key of the run that `news` requests: another one each turn, and for other news if turns start anew."""
    return f"watch-{turn}-{hashlib.sha256('; '.join(news).encode()).hexdigest()[:12]}"


def _tag(registry: CohortRegistry, name: str) -> str:
    try:
        return registry.registered(name).dua_tag
    except CohortSpecError:
        return UNREADABLE
