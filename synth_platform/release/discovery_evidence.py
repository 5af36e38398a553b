"""The evidence behind a list of discoveries: everything the independent audit needs, all of it noisy or public."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.contract.registered import Contrasted
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.statistic_store import StatisticStore, StoredReleaseError
from synth_platform.release.discovery import Stage
from synth_platform.release.evidence import ledger_evidence, package_evidence, sealed

FORMAT = "synth-discovery-evidence-1"
DOCUMENTS = ("private_e_values", "discoveries", "decision")
Document = Mapping[str, Any]


def write_list_evidence(
    *,
    spec: Contrasted,
    stage: Stage,
    plan: DiscoveryPlan,
    documents: Mapping[str, Document],
    ledger: Ledger,
    store: StatisticStore,
    package: Path | None,
) -> dict[str, Any]:
    """The sealed evidence of one list. documents: those of `DOCUMENTS`, as stored. package: folder of its package."""
    return sealed(
        {
            "format": FORMAT,
            "scope": {"cohort": spec.name, "stage": stage, "plan": plan.key, "domain": spec.privacy.domain},
            "registered": {
                "cohort": spec.name,
                "domain": spec.privacy.domain,
                "budget": spec.privacy.budget.model_dump(),
                "dua_tag": spec.dua_tag,
                "plan": vars(plan),
                "sizes": list(spec.sizes_of(plan.contrast)),
                "registration": spec.registration_of(plan),
            },
            "documents": {name: dict(documents[name]) for name in DOCUMENTS},
            "answers": _answers(documents["private_e_values"], spec.privacy.domain, ledger, store),
            "ledger": ledger_evidence(spec.privacy.domain, ledger, store),
            "package": None if package is None else package_evidence(package),
        }
    )


def _answers(e_values: Document, domain: str, ledger: Ledger, store: StatisticStore) -> list[dict[str, Any]]:
    """The stored answers, in order; one that is missing or altered is left out, which the audit then finds."""
    if not ledger.verify().ok:
        return []
    held = {entry.entry_id: entry for entry in ledger.entries(domain)}
    answers = []
    for entry_id in e_values["entries"]:
        try:
            release = store.load(held[entry_id])
        except (KeyError, StoredReleaseError):
            continue
        answers.append(
            {
                "entry_id": entry_id,
                "code": release.code,
                "values": release.values.tolist(),
                "sensitivity": release.sensitivity,
                "scale": release.sigma,
                "granularity": release.granularity,
                "source": release.source,
            }
        )
    return answers
