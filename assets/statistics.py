"""Stage `statistics`: the only readers of private rows on a DP path; every query is a ledger entry."""

import dagster as dg

from assets.metadata import CODE_VERSION, ledger_table
from assets.partitions import cohort_of, cohort_plans, plan_of
from checks.descriptions import describe_releases
from checks.schema import schema_check, schema_check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.ledger import LedgerResource
from synth_platform.contract.cohort_spec import DP_GENERATORS, GeneratorCode
from synth_platform.generators.build import make_generator
from synth_platform.generators.protocol import Measured
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.select import select_split
from synth_platform.privacy.affordable import require_affordable
from synth_platform.privacy.private_table import PrivateTable, unledgered


def statistics_asset(code: GeneratorCode) -> dg.AssetsDefinition:
    """`statistics/<code>`: every noisy statistic the generator asks for."""
    key = dg.AssetKey(["statistics", code])

    @dg.asset(
        key=key,
        group_name="statistics",
        partitions_def=cohort_plans,
        code_version=CODE_VERSION,
        ins={
            "reference": dg.AssetIn(key=["public", "reference"]),
            "matrix": dg.AssetIn(key=["normalized", "matrix"]),
        },
        check_specs=[schema_check_spec(key, cohort_plans)],
        description=f"Noisy statistics for {code}; materialising again returns the stored ones and spends nothing.",
    )
    def statistics(
        context: dg.AssetExecutionContext,
        registry: CohortRegistry,
        ledger: LedgerResource,
        home: HomeResource,
        reference: PublicReference,
        matrix: PrivateTable,
    ):
        spec = registry.spec(cohort_of(context))
        curator = ledger.curator(spec, run_id=context.run.run_id)
        training = matrix.transform(select_split("train"))
        generator = make_generator(code, reference, spec, spec.plan(plan_of(context)))
        require_affordable(generator.measure, training, curator, ledger.ledger(), spec.privacy.domain)
        releases = generator.measure(lambda query: training.measure(query, curator))
        measured = Measured(releases, unledgered(training.accesses))
        for note in curator.notes:
            context.log.info(note)
        entries = [release.entry_id for release in releases]
        return dg.MaterializeResult(
            value=measured,
            metadata={
                "ledger_entries": entries,
                "ledger": ledger_table(ledger.rows(entries)),
                "plan": plan_of(context),
            },
            check_results=[schema_check(describe_releases(releases), key, home.validations(context, key))],
        )

    return statistics


statistics_assets = [statistics_asset(code) for code in DP_GENERATORS]
