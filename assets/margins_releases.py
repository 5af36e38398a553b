"""Releases of tables made of margins: written outside the restricted zone after everything was looked at once more."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.metadata import CODE_VERSION, ledger_table, significant
from assets.partitions import cohort_of, plan_of
from assets.publishing import deriving_again, held_back, publish, require_none
from assets.synthesised import PROTECTED, stored_in
from checks.audit import AUDIT_PASSES
from checks.schema import SCHEMA
from checks.verdicts import ELIGIBLE, VERDICT
from resources.cohorts import CohortRegistry
from resources.evaluations import unsettled
from resources.home import HomeResource
from resources.ledger import LedgerResource
from resources.private import fingerprint_key
from resources.register import RegisterResource
from synth_platform.release.margins import SDC_STAGE, MarginsStage, protected_margins, release_name
from synth_platform.release.margins_apart import other_coarsenings
from synth_platform.release.margins_evidence import DOCUMENTS
from synth_platform.release.margins_package import table_sha256, write_margins_package
from synth_platform.release.margins_rederive import require_tables_rederived
from synth_platform.release.register import NO_ATTACKS
from synth_platform.release.verdicts import unaudited

IN_WORDS = {
    "sdc": "SDC: coarsening bounds what the tables say; it is not differential privacy",
    "dp": "DP: one person more or less changes little of what can be learned, by the ledger's figures",
}


def release_asset(stage: MarginsStage, partitions: dg.PartitionsDefinition[Any]) -> dg.AssetsDefinition:
    """`<stage>/release`: the package of an eligible plan; a blocked one materialises nothing."""
    key = dg.AssetKey([stage, "release"])
    names = (*stored_in(stage), "audit")
    judged = {"decision": ELIGIBLE, "audit": AUDIT_PASSES} | (
        {"disclosure_gate": VERDICT} if stage == SDC_STAGE else {}
    )
    required = [dg.AssetCheckKey(dg.AssetKey([stage, name]), SCHEMA) for name in names]
    required += [dg.AssetCheckKey(dg.AssetKey([stage, name]), check) for name, check in judged.items()]

    @dg.asset(
        key=key,
        group_name=stage,
        partitions_def=partitions,
        code_version=CODE_VERSION,
        output_required=False,
        ins={name: dg.AssetIn(key=[stage, name]) for name in names},
        description="The release package, written only if the decision, the audit, all checks and a new derivation "
        f"from the steward's files agree. A BLOCKED plan has none: {stage}/decision says why.",
    )
    def release(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        ledger: LedgerResource,
        home: HomeResource,
        register: RegisterResource,
        **stored: Any,
    ):
        spec, plan, decision = registry.census(cohort_of(context)), plan_of(context), stored["decision"]
        name = release_name(spec.name, stage, plan)
        if held_back(context, home.paths.released, name, decision, name):
            return
        problems = unsettled(context.instance, home, required, context.partition_key)
        documents = {f"{stage}/{n}": stored[n] for n in DOCUMENTS if n in stored}
        problems += [f"{n}: the audit is of another one" for n in unaudited(documents, stored["audit"])]
        require_none(problems)
        with deriving_again():
            require_tables_rederived(
                spec=spec,
                folder=registry.folder(spec.name),
                stage=stage,
                plan=plan,
                stored=stored,
                ledger=ledger.ledger(),
                store=ledger.store(),
                key=fingerprint_key(home),
            )
        sha256 = table_sha256(stored["synthetic"])
        if stage == SDC_STAGE:
            known = register.register().releases().values()
            others = other_coarsenings(stored["coarsened"], sha256, name, spec.name, known, home.paths.released)
            if others:
                raise dg.Failure(
                    f"nothing is released: {', '.join(others)} left with other margins of the same census, and two "
                    "coarsenings of the same people say more than either; keep to the one that left",
                    allow_retries=False,
                )
        entries = [] if decision["ledger"] is None else ledger.rows(decision["ledger"]["entries"])
        package = publish(
            register.register(),
            lambda: write_margins_package(
                home.paths.released,
                name=name,
                spec=spec,
                stage=stage,
                protected=protected_margins(stored[PROTECTED[stage]]),
                fit=stored["model"].report,
                synthetic=stored["synthetic"],
                disclosure=stored.get("disclosure_gate"),
                utility=stored["utility_gate"],
                decision=decision,
                ledger_table=entries,
            ),
            name=name,
            cohort=spec.name,
            generator=stage,
            plan=plan,
            table=sha256,
            terms=NO_ATTACKS,
        )
        yield dg.MaterializeResult(
            value={"package": package.name, "decision": decision["decision"]},
            metadata=_release_metadata(decision, entries, ledger, package),
        )

    return release


def _release_metadata(
    decision: Mapping[str, Any], entries: Any, ledger: LedgerResource, package: Any
) -> dict[str, Any]:
    """What a release says of itself: its policy in words, its package, and the ledger behind it if it spent."""
    own = {
        "decision": decision["decision"],
        "policy": decision["policy"],
        "assurance": IN_WORDS[decision["policy"]],
        "package_name": package.name,
        "package": dg.MetadataValue.path(str(package)),
        "published_zone": "released",
    }
    if decision["ledger"] is None:
        return own
    return own | {
        "epsilon_tight": significant(decision["ledger"]["epsilon_pld"]),
        "epsilon_rdp": significant(decision["ledger"]["epsilon_rdp"]),
        "delta": decision["delta"],
        "ledger": ledger_table(entries),
        "ledger_entries": decision["ledger"]["entries"],
        "ledger_head": ledger.ledger().head_hash(),
    }
