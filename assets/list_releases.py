"""Releases of lists of discoveries: written outside the restricted zone after everything was looked at once more."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.metadata import CODE_VERSION, release_metadata
from assets.partitions import cohort_of, plan_of
from assets.publishing import deriving_again, held_back, publish, require_none
from checks.audit import AUDIT_PASSES
from checks.schema import SCHEMA
from checks.verdicts import ELIGIBLE
from resources.cohorts import CohortRegistry
from resources.evaluations import unsettled
from resources.home import HomeResource
from resources.ledger import LedgerResource
from resources.private import fingerprint_key
from resources.register import RegisterResource
from synth_platform.release.discovery import Stage
from synth_platform.release.discovery_evidence import DOCUMENTS
from synth_platform.release.discovery_package import list_sha256, write_list
from synth_platform.release.discovery_rederive import require_list_rederived
from synth_platform.release.register import NO_ATTACKS
from synth_platform.release.verdicts import unaudited


def list_release_asset(stage: Stage, partitions: dg.PartitionsDefinition[Any]) -> dg.AssetsDefinition:
    """`<stage>/release`: the package of an eligible list; a blocked one materialises nothing."""
    key = dg.AssetKey([stage, "release"])
    judged = {"decision": ELIGIBLE, "audit": AUDIT_PASSES}
    required = [dg.AssetCheckKey(dg.AssetKey([stage, name]), SCHEMA) for name in (*DOCUMENTS, "audit")]
    required += [dg.AssetCheckKey(dg.AssetKey([stage, name]), check) for name, check in judged.items()]

    @dg.asset(
        key=key,
        group_name=stage,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        output_required=False,
        ins={name: dg.AssetIn(key=[stage, name]) for name in (*DOCUMENTS, "audit")},
        description="The release package of the list, written only if the decision, the audit, all checks and the "
        f"ledger agree. A BLOCKED plan has none: {stage}/decision says why.",
    )
    def release(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        ledger: LedgerResource,
        home: HomeResource,
        register: RegisterResource,
        private_e_values: Mapping[str, Any],
        discoveries: Mapping[str, Any],
        decision: Mapping[str, Any],
        audit: Mapping[str, Any],
    ):
        spec, plan = registry.contrasted(cohort_of(context)), plan_of(context)
        name = f"{spec.name}-{stage}-{plan}"
        if held_back(context, home.paths.released, name, decision, name):
            return
        stored = dict(zip(DOCUMENTS, (private_e_values, discoveries, decision), strict=True))
        problems = unsettled(context.instance, home, required, context.partition_key)
        judged_documents = {f"{stage}/{n}": document for n, document in stored.items()}
        problems += [f"{n}: the audit is of another one" for n in unaudited(judged_documents, audit)]
        require_none(problems)
        with deriving_again():
            require_list_rederived(
                spec=spec,
                folder=registry.folder(spec.name),
                stage=stage,
                plan=spec.discovery_plan(plan),
                documents=stored,
                ledger=ledger.ledger(),
                store=ledger.store(),
                key=fingerprint_key(home),
            )
        entries = ledger.rows(decision["ledger"]["entries"])
        package = publish(
            register.register(),
            lambda: write_list(
                home.paths.released,
                name=name,
                spec=spec,
                e_values=private_e_values,
                discoveries=discoveries,
                decision=decision,
                ledger_table=entries,
            ),
            name=name,
            cohort=spec.name,
            generator=stage,
            plan=plan,
            table=list_sha256(discoveries),
            terms=NO_ATTACKS,
        )
        yield dg.MaterializeResult(
            value={"package": package.name, "decision": decision["decision"]},
            metadata={
                "discoveries": discoveries["discoveries"],
                "false discovery rate": decision["fdr"]["level"],
                **release_metadata(decision, entries, ledger.ledger().head_hash(), package),
            },
        )

    return release
