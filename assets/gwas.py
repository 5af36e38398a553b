"""Stage `gwas`: which variants differ between cases and controls of a genotype study, streamed from its file."""

import dagster as dg

from assets.discovered import measured, stage_assets
from assets.metadata import CODE_VERSION
from assets.partitions import cohort_of, plan_of, study_discoveries
from checks.schema import schema_check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.ledger import LedgerResource
from resources.private import close_study
from synth_platform.discovery.genotypes import genotype_study, read_study
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.release.discovery import GWAS_STAGE
from synth_platform.sources.tables import SourceError

E_VALUES = dg.AssetKey([GWAS_STAGE, "private_e_values"])


@dg.asset(
    key=E_VALUES,
    group_name=GWAS_STAGE,
    partitions_def=study_discoveries,
    code_version=CODE_VERSION,
    check_specs=[schema_check_spec(E_VALUES, study_discoveries)],
    description="The variants with the largest e-values, chosen and told with noise; the same request again is free.",
)
def variant_e_values(
    context: dg.AssetExecutionContext, registry: CohortRegistry, ledger: LedgerResource, home: HomeResource
):
    """Private e-values of a phenotype; the genotypes stay in their file."""
    spec, folder = registry.study(cohort_of(context)), registry.folder(cohort_of(context))
    plan = spec.discovery_plan(plan_of(context))
    with quiet_errors("reading the study", readable=(SourceError,)):
        rows = close_study(read_study(spec, folder, plan.contrast), home)
    return measured(context, home, ledger, spec, genotype_study(spec, folder, plan), rows, E_VALUES)


gwas_assets = [variant_e_values, *stage_assets(GWAS_STAGE, study_discoveries)]
