"""What stands of an asset partition now: its latest materialisation, its checks, and what it was made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import dagster as dg

from resources.artefacts import CONTENT, artefact_fingerprint
from resources.home import HomeResource
from resources.private import fingerprint_key

HISTORY = 200


def latest_metadata(
    instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str
) -> tuple[int, Mapping[str, dg.MetadataValue[Any]]] | None:
    """Storage id and metadata of the latest materialisation; None if there is none."""
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[partition]), limit=1
    ).records
    if not records or records[0].asset_materialization is None:
        return None
    return records[0].storage_id, records[0].asset_materialization.metadata


def unsettled(
    instance: dg.DagsterInstance, home: HomeResource, checks: Collection[dg.AssetCheckKey], partition: str
) -> list[str]:
    """Why nothing may rest on the assets of these checks: checks that do not stand, assets that moved on."""
    assets = dict.fromkeys(check.asset_key for check in checks)
    return _stale_or_failed(instance, checks, partition) + _moved_on(instance, home, assets, partition)


def _stale_or_failed(instance: dg.DagsterInstance, checks: Iterable[dg.AssetCheckKey], partition: str) -> list[str]:
    """Checks that are not passed *for the latest materialisation* of their asset partition, each with the reason.

    A blocking check stops only what runs after it in the same run; whoever releases has to look at the log itself.
    """
    problems = []
    for check in checks:
        name = f"{check.asset_key.to_user_string()}: {check.name}"
        latest = latest_metadata(instance, check.asset_key, partition)
        if latest is None:
            problems.append(f"{name}: the asset was never materialised")
            continue
        history = instance.event_log_storage.get_asset_check_execution_history(check, limit=HISTORY)
        verdicts = [
            record.event.dagster_event.asset_check_evaluation_data.passed
            for record in history
            if record.event is not None
            and record.event.dagster_event is not None
            and record.event.dagster_event.event_type_value == "ASSET_CHECK_EVALUATION"
            and (target := record.event.dagster_event.asset_check_evaluation_data.target_materialization_data)
            is not None
            and target.storage_id == latest[0]
        ]
        if not verdicts:
            problems.append(f"{name}: not evaluated for the latest materialisation")
        elif not verdicts[0]:
            problems.append(f"{name}: failed")
    return problems


def _moved_on(
    instance: dg.DagsterInstance, home: HomeResource, assets: Iterable[dg.AssetKey], partition: str
) -> list[str]:
    """Assets whose stored content is not what they recorded, or not made from what is stored of their inputs now.

    A passed check speaks of the content it saw: a table drawn again after its verdicts was never judged.
    """
    key, parts = fingerprint_key(home), partition.split("|")

    def stored(asset: dg.AssetKey) -> str | None:
        folders = (home.paths.artefact(asset, *parts), home.paths.artefact(asset, parts[0]))
        return next((artefact_fingerprint(folder, key) for folder in folders if (folder / CONTENT).exists()), None)

    problems = []
    for asset in assets:
        latest = latest_metadata(instance, asset, partition)
        recorded = {} if latest is None else {name: entry.value for name, entry in latest[1].items()}
        if recorded.get("fingerprint") != stored(asset):
            problems.append(f"{asset.to_user_string()}: is not what was materialised")
        for name, fingerprint in recorded.get("input_fingerprints", {}).items():
            if fingerprint != stored(dg.AssetKey.from_user_string(name)):
                problems.append(f"{asset.to_user_string()}: made from another {name}")
    return problems
