"""What of a decision and of the ledger may leave the building: an explicit list of fields, nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Document = Mapping[str, Any]
Policy = Literal["statuses_only", "aggregates"]

_ENDPOINT_FIGURES = ("tstr", "trtr", "preservation", "skill", "lift")
_CLOSEST_RECORD_FIGURES = ("duplicates", "train_closer", "train_closer_upper", "excess", "excess_upper")
_ATTACK_FIGURES = ("auroc", "upper", "tpr_at_1pct_fpr")
# Neither fingerprints of private input nor run ids: an outsider could test a guess of the cohort against the first.
_ENTRY_FIELDS = ("entry_id", "cohort", "code", "event", "sensitivity", "scale", "neighbouring", "noise_source")
_COSTS = ("epsilon_rdp", "epsilon_pld", "mu", "auroc_bound")


def published_decision(decision: Document, policy: Policy) -> dict[str, Any]:
    """The part of a decision document that goes out.

    Statuses, grade, notes, privacy costs and the registered limits always; gate figures, which are functions of private
    rows, only where the cohort's policy is "aggregates".
    """
    figures = policy == "aggregates"
    membership: dict[str, Any] = _only(decision["membership"], ("status", "design"))
    if figures:
        attacks = decision["membership"]["attacks"]
        membership["attacks"] = {name: _only(attack, _ATTACK_FIGURES) for name, attack in attacks.items()}
    return {
        **_only(decision, ("cohort", "generator", "plan", "epsilon", "delta", "mu")),
        "utility": _only(decision["utility"], ("status", "design")),
        "endpoints": {
            name: _only(endpoint, ("status", *(_ENDPOINT_FIGURES if figures else ())))
            for name, endpoint in decision["endpoints"].items()
        },
        "closest_record": _only(decision["closest_record"], ("status", *(_CLOSEST_RECORD_FIGURES if figures else ()))),
        "membership": membership,
        "inference": _only(decision["inference"], ("status",)),
        "limits": dict(decision["limits"]),
        "registration": decision["registration"],
        "ledger": _only(decision["ledger"], ("status", *_COSTS, "entries")),
        "schema": _only(decision["schema"], ("violations",)),
        **_only(decision, ("decision", "reasons", "notes")),
    }


def published_ledger(rows: Sequence[Document], entry_ids: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """The ledger entries behind one release, in the order of `entry_ids`, and the hash of the last row they rest on.

    rows: ledger rows (`Ledger.table`). Raises ValueError naming an entry without a reservation and a commit among them.
    """
    if not entry_ids:
        raise ValueError("a release rests on at least one ledger entry")
    published = []
    last: Document = {"id": 0}
    for entry_id in entry_ids:
        states = {row["state"]: row for row in rows if row["entry_id"] == entry_id}
        if not {"reserved", "committed"} <= set(states):
            raise ValueError(f"ledger entry {entry_id} is not reserved and committed in the ledger table")
        entry = _only(states["reserved"], _ENTRY_FIELDS)
        if isinstance(entry["event"], str):
            entry["event"] = json.loads(entry["event"])
        published.append(entry)
        last = max(last, *states.values(), key=lambda row: row["id"])
    return published, str(last["hash"])


def ledger_document(decision: Document, rows: Sequence[Document], *, domain: str, unit: str) -> dict[str, Any]:
    """The ledger.json of a package: what was promised and paid for it, and the entries of `published_ledger`.

    decision: the decision document. unit: whose change the costs are about. Raises ValueError as `published_ledger`.
    """
    entries, head_hash = published_ledger(rows, decision["ledger"]["entries"])
    return {
        "domain": domain,
        "unit": unit,
        "delta": decision["delta"],
        "cost": _only(decision["ledger"], _COSTS),
        "entries": entries,
        "head_hash": head_hash,
    }


def _only(document: Document, names: Sequence[str]) -> dict[str, Any]:
    return {name: document[name] for name in names}
