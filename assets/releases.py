"""Releases: the only assets that write outside the restricted zone, after everything was looked at once more."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from assets.metadata import CODE_VERSION, release_metadata
from assets.partitions import cohort_of, cohort_plans, plan_of
from assets.publishing import deriving_again, held_back, publish, require_none
from checks.audit import AUDIT_PASSES
from checks.mechanism import NOT_CONTRADICTED
from checks.schema import SCHEMA
from checks.verdicts import ELIGIBLE, VERDICT
from resources.cohorts import CohortRegistry
from resources.evaluations import unsettled
from resources.home import HomeResource
from resources.ledger import LedgerResource
from resources.private import fingerprint_key
from resources.register import RegisterResource
from synth_platform.contract.cohort_spec import DP_GENERATORS, CohortSpec, GeneratorCode
from synth_platform.generators.protocol import GeneratorState
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.replicates import native_table
from synth_platform.normalize.rows import EncodedRows
from synth_platform.release.assess import assess
from synth_platform.release.package import table_sha256, write_package
from synth_platform.release.rederive import require_rederived
from synth_platform.release.register import Terms
from synth_platform.release.verdicts import MECHANISM, POWER, judged_instead, unaudited, verdict_names

# Of what is the cohort's alone.
COHORT_CHECKS = (dg.AssetCheckKey(dg.AssetKey.from_user_string(POWER), SCHEMA),)


def required_checks(code: GeneratorCode, spec: CohortSpec) -> list[dg.AssetCheckKey]:
    """Checks that must have passed for the latest materialisation of what a release rests on."""
    judged = dict.fromkeys(verdict_names(code), VERDICT) | {MECHANISM: NOT_CONTRADICTED, "decision": ELIGIBLE}
    schema = [dg.AssetKey(["statistics", code]), dg.AssetKey(["audit", "report"])]
    schema += [dg.AssetKey([code, artefact]) for artefact in ("checkpoint", "synthetic", *judged)]
    replaced = judged_instead(spec, code)
    return [
        *(dg.AssetCheckKey(key, SCHEMA) for key in schema),
        *(dg.AssetCheckKey(dg.AssetKey([code, n]), check) for n, check in judged.items() if n not in replaced),
        dg.AssetCheckKey(dg.AssetKey(["audit", "report"]), AUDIT_PASSES),
    ]


def release_asset(code: GeneratorCode) -> dg.AssetsDefinition:
    """`<code>/release`: the package of an eligible table; a blocked one materialises nothing."""
    key = dg.AssetKey([code, "release"])

    @dg.asset(
        key=key,
        group_name=code,
        partitions_def=cohort_plans,
        code_version=CODE_VERSION,
        output_required=False,
        ins={
            "tables": dg.AssetIn(key=[code, "synthetic"]),
            "state": dg.AssetIn(key=[code, "checkpoint"]),
            "decision": dg.AssetIn(key=[code, "decision"]),
            "power": dg.AssetIn(key=dg.AssetKey.from_user_string(POWER)),
            "report": dg.AssetIn(key=["audit", "report"]),
            **{name: dg.AssetIn(key=[code, name]) for name in verdict_names(code)},
            "reference": dg.AssetIn(key=["public", "reference"]),
            "corrected": dg.AssetIn(key=["normalized", "batch_corrected"]),
            "attacked": dg.AssetIn(key=["normalized", "attacked"]),
        },
        description="The release package, written only if the decision, all checks and the ledger agree. "
        f"A BLOCKED plan has none: {code}/decision says why.",
    )
    def release(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        ledger: LedgerResource,
        home: HomeResource,
        register: RegisterResource,
        tables: pl.DataFrame,
        state: GeneratorState,
        decision: Mapping[str, Any],
        power: Mapping[str, Any],
        report: Mapping[str, Any],
        reference: PublicReference,
        corrected: EncodedRows,
        attacked: EncodedRows,
        **verdicts: Mapping[str, Any],
    ):
        spec, plan = registry.spec(cohort_of(context)), plan_of(context)
        name = f"{spec.name}-{code}-{plan}"
        if held_back(context, home.paths.released, name, decision, code):
            return
        problems = []
        for checks, partition in ((required_checks(code, spec), context.partition_key), (COHORT_CHECKS, spec.name)):
            problems += unsettled(context.instance, home, checks, partition)
        judged = {f"{code}/{n}": document for n, document in {**verdicts, "decision": decision}.items()}
        problems += [
            f"{name}: the audit report is of another one" for name in unaudited({**judged, POWER: power}, report)
        ]
        require_none(problems)
        book = ledger.ledger()
        again = assess(
            spec=spec,
            code=code,
            plan_key=plan,
            tables=tables,
            state=state,
            verdicts=verdicts,
            power=power,
            ledger=book,
            store=ledger.store(),
        ).as_dict()
        if again != decision:
            raise dg.Failure(
                f"the decision on {code} no longer follows from its artefacts and the ledger; materialise it again",
                allow_retries=False,
            )
        with deriving_again():
            require_rederived(
                spec=spec,
                folder=registry.folder(spec.name),
                code=code,
                plan_key=plan,
                reference=reference,
                tables=tables,
                state=state,
                verdicts=verdicts,
                power=power,
                real=corrected,
                attacked=attacked,
                ledger=book,
                store=ledger.store(),
                key=fingerprint_key(home),
            )
        entries, releases = ledger.rows(decision["ledger"]["entries"]), register.register()
        table = native_table(tables, spec.synthetic.seeds[0])
        package = publish(
            releases,
            lambda: write_package(
                home.paths.released,
                name=name,
                spec=spec,
                table=table,
                decision=decision,
                ledger_table=entries,
            ),
            name=name,
            cohort=spec.name,
            generator=code,
            plan=plan,
            table=table_sha256(table),
            terms=Terms(spec.gates.attacks, spec.gates.neighbours, spec.gates.membership_limit),
        )
        yield dg.MaterializeResult(
            value={"package": package.name, "decision": decision["decision"]},
            metadata=release_metadata(decision, entries, book.head_hash(), package),
        )

    return release


release_assets = [release_asset(code) for code in DP_GENERATORS]
