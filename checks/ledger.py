"""Reconciling the event log with the ledger: Dagster's metadata is never the authority on what was spent."""

from collections.abc import Mapping

import dagster as dg

from checks.specs import partitioned_checks
from resources.evaluations import latest_metadata
from resources.ledger import LedgerResource
from synth_platform.release.discovery import STAGES
from synth_platform.release.margins import DP_STAGE, SDC_STAGE


def reconciliation_check(asset: dg.AssetKey, partitions: dg.MultiPartitionsDefinition) -> dg.AssetChecksDefinition:
    """`asset` names exactly entries that the ledger holds, committed, under this cohort."""
    with partitioned_checks():

        @dg.asset_check(
            asset=asset,
            name="ledger_reconciled",
            partitions_def=partitions,
            description="Every ledger entry named in the metadata is committed in a ledger that verifies.",
        )
        def reconciled(context: dg.AssetCheckExecutionContext, ledger: LedgerResource) -> dg.AssetCheckResult:
            problems = unreconciled(context.instance, asset, context.partition_key, ledger)
            return dg.AssetCheckResult(
                passed=not problems,
                description="; ".join(problems) or "The event log and the ledger agree.",
                metadata={"ledger_head": ledger.ledger().head_hash()},
            )

    return reconciled


def unreconciled(instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str, ledger: LedgerResource) -> list[str]:
    """What the latest materialisation's metadata claims and the ledger does not hold; empty when they agree."""
    report = ledger.ledger().verify()
    if not report.ok:
        return ["the ledger does not verify: run `synth ledger verify`"]
    latest = latest_metadata(instance, asset, partition)
    if latest is None:
        return ["the asset was never materialised for this partition"]
    metadata = latest[1]
    claimed = set(metadata["ledger_entries"].value) if "ledger_entries" in metadata else set()
    held = {entry.entry_id: entry for entry in ledger.ledger().entries()}
    cohort = partition.split("|", maxsplit=1)[0]
    return [
        *(f"entry {entry} is not in the ledger" for entry in sorted(claimed - held.keys())),
        *(
            f"entry {entry} is not committed"
            for entry in sorted(claimed & held.keys())
            if held[entry].state != "committed"
        ),
        *(
            f"entry {entry} is of another cohort"
            for entry in sorted(claimed & held.keys())
            if held[entry].cohort != cohort
        ),
    ]


def ledger_checks(partitions_of: Mapping[str, dg.MultiPartitionsDefinition]) -> list[dg.AssetChecksDefinition]:
    """One reconciliation per asset that spends, by generator or stage."""
    spending = {code: partitions for code, partitions in partitions_of.items() if code != SDC_STAGE}
    return [reconciliation_check(_spends(code), partitions) for code, partitions in spending.items()]


def _spends(code: str) -> dg.AssetKey:
    if code == DP_STAGE:
        return dg.AssetKey([code, "measured"])
    return dg.AssetKey([code, "private_e_values"] if code in STAGES else ["statistics", code])
