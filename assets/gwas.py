"""Stage `gwas`: which variants differ between cases and controls of a genotype study, streamed from its file."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.discovered import measured, stage_assets
from assets.metadata import CODE_VERSION
from assets.partitions import cohort_of, plan_of, study_discoveries
from checks.descriptions import STUDY_FIELDS, describe_document
from checks.schema import schema_check, schema_check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.ledger import LedgerResource
from resources.private import close_study
from synth_platform.discovery.genotypes import genotype_study, read_study
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.release.discovery import GWAS_STAGE
from synth_platform.sources.genotypes.study import GenotypeStudy
from synth_platform.sources.tables import SourceError

STUDY = dg.AssetKey([GWAS_STAGE, "study"])
E_VALUES = dg.AssetKey([GWAS_STAGE, "private_e_values"])


def _closed(registry: CohortRegistry, home: HomeResource, cohort: str, phenotype: str) -> PrivateTable[GenotypeStudy]:
    with quiet_errors("reading the study", readable=(SourceError,)):
        return close_study(read_study(registry.study(cohort), registry.folder(cohort), phenotype), home)


@dg.asset(
    key=STUDY,
    group_name=GWAS_STAGE,
    partitions_def=study_discoveries,
    code_version=CODE_VERSION,
    check_specs=[schema_check_spec(STUDY, study_discoveries)],
    description="The genotype and phenotype files of a study, by keyed name: who was genotyped, and who is compared.",
)
def genotyped(context: dg.AssetExecutionContext, registry: CohortRegistry, home: HomeResource):
    """What is registered of the files, and what they are called; nothing of the matrix is stored."""
    spec = registry.study(cohort_of(context))
    phenotype = spec.discovery_plan(plan_of(context)).contrast
    rows = _closed(registry, home, spec.name, phenotype)
    registered = {name: getattr(spec.genotypes, name) for name in ("file", "field", "variants", "list_sha256")}
    document = {
        **registered,
        "phenotype": spec.phenotypes[phenotype].file,
        "people": rows.source,
        "rows": rows.fingerprint,
    }
    return dg.MaterializeResult(
        value=document,
        metadata=registered | {"phenotype": document["phenotype"], "private_access": "streamed from the file"},
        check_results=[
            schema_check(describe_document(document, STUDY_FIELDS), STUDY, home.validations(context, STUDY))
        ],
    )


@dg.asset(
    key=E_VALUES,
    group_name=GWAS_STAGE,
    partitions_def=study_discoveries,
    code_version=CODE_VERSION,
    ins={"study": dg.AssetIn(key=STUDY)},
    check_specs=[schema_check_spec(E_VALUES, study_discoveries)],
    description="The variants with the largest e-values, chosen and told with noise; the same request again is free.",
)
def variant_e_values(
    context: dg.AssetExecutionContext,
    registry: CohortRegistry,
    ledger: LedgerResource,
    home: HomeResource,
    study: Mapping[str, Any],
):
    """Private e-values of a phenotype; the genotypes stay in their file."""
    spec, folder = registry.study(cohort_of(context)), registry.folder(cohort_of(context))
    plan = spec.discovery_plan(plan_of(context))
    rows = _closed(registry, home, spec.name, plan.contrast)
    if rows.fingerprint != study["rows"]:
        raise dg.Failure("the files are not those that gwas/study names; materialise it again", allow_retries=False)
    return measured(context, home, ledger, spec, genotype_study(spec, folder, plan), rows, E_VALUES)


gwas_assets = [genotyped, variant_e_values, *stage_assets(GWAS_STAGE, study_discoveries)]
