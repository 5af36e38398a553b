"""Whether a published package still rests on the decision that stands now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synth_platform.release.discovery import STAGES
from synth_platform.release.margins import MARGINS_STAGES, published_margins_decision
from synth_platform.release.publish import Policy, published_decision


def standing_fault(package: Path, decision: Mapping[str, Any], policy: Policy) -> str | None:
    """What is wrong with keeping `package` while `decision` stands; None where it holds what of it goes out.

    decision: the latest stored document of the package's cohort, generator and plan. policy: the cohort's publication.
    """
    if decision["decision"] == "BLOCKED":
        return f"the standing decision is BLOCKED: {', '.join(decision['reasons'])}; withdraw {package.name}"
    published = json.loads((package / "decision.json").read_text(encoding="utf-8"))
    if published != json.loads(json.dumps(_published(decision, policy))):
        return (
            f"the standing decision is not the one in {package.name}; withdraw it, then materialise the release again"
        )
    return None


def _published(decision: Mapping[str, Any], policy: Policy) -> Mapping[str, Any]:
    """The part of a decision that its package holds."""
    if decision["generator"] in MARGINS_STAGES:
        return published_margins_decision(decision, policy)
    return decision if decision["generator"] in STAGES else published_decision(decision, policy)
