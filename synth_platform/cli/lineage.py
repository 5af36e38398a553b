"""From a release back to every artefact and ledger entry behind it, as the event log and the ledger have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg


@dataclass(frozen=True)
class Node:
    """One artefact of one partition: what its latest materialisation recorded."""

    asset: str
    partition: str
    fingerprint: str | None
    time: float | None
    run_id: str | None
    ledger_entries: tuple[str, ...]
    inputs: tuple[Node, ...] = field(default=())

    def as_dict(self, seen: set[str] | None = None) -> dict[str, Any]:
        """JSON form, inputs nested; an artefact that stands before in the tree has none of its own again."""
        seen = set() if seen is None else seen
        document = {
            "asset": self.asset,
            "partition": self.partition,
            "fingerprint": self.fingerprint,
            "time": self.time,
            "run_id": self.run_id,
            "ledger_entries": list(self.ledger_entries),
        }
        if self.asset in seen:
            return document
        seen.add(self.asset)
        return document | {"inputs": [node.as_dict(seen) for node in self.inputs]}


def trace(instance: dg.DagsterInstance, graph: dg.AssetGraph, asset: dg.AssetKey, cohort: str, plan: str) -> Node:
    """The tree of artefacts behind `asset`; a parent that was never materialised has no fingerprint."""
    known: dict[dg.AssetKey, Node] = {}

    def visit(key: dg.AssetKey) -> Node:
        if key not in known:
            node = graph.get(key)
            partition = f"{cohort}|{plan}" if isinstance(node.partitions_def, dg.MultiPartitionsDefinition) else cohort
            known[key] = _node(instance, key, partition, tuple(visit(parent) for parent in sorted(node.parent_keys)))
        return known[key]

    return visit(asset)


def _node(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str, inputs: tuple[Node, ...]) -> Node:
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=key, asset_partitions=[partition]), limit=1
    ).records
    if not records or records[0].asset_materialization is None:
        return Node(key.to_user_string(), partition, None, None, None, (), inputs)
    metadata: Mapping[str, dg.MetadataValue[Any]] = records[0].asset_materialization.metadata
    entries = metadata["ledger_entries"].value if "ledger_entries" in metadata else []
    fingerprint = metadata["fingerprint"].value if "fingerprint" in metadata else None
    return Node(
        asset=key.to_user_string(),
        partition=partition,
        fingerprint=fingerprint,
        time=records[0].timestamp,
        run_id=records[0].run_id,
        ledger_entries=tuple(entries),
        inputs=inputs,
    )
