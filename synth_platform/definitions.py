"""Assembly: assets, checks, jobs and resources of one code location. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.audit import audit_assets
from assets.cohort import cohort
from assets.cross_fit import cross_fit_assets
from assets.decisions import decision_assets
from assets.discovery import discovery_assets
from assets.dp_margins import dp_margins_assets
from assets.gates import gate_assets
from assets.generators import generator_assets
from assets.governance import governance_assets
from assets.gwas import gwas_assets
from assets.half_split import half_split_assets
from assets.margins import CURATED, margins_assets
from assets.mechanism_audit import mechanism_audit_assets
from assets.normalized import normalized_matrix, real_arm
from assets.partitions import (
    census_dp_plans,
    census_sdc_plans,
    cohort_discoveries,
    cohort_plans,
    study_discoveries,
)
from assets.power import gates_power
from assets.public import public_reference
from assets.reaudit import governance_watch, reaudit_job, reaudit_schedule
from assets.releases import release_assets
from assets.statistics import statistics_assets
from checks.ledger import ledger_checks
from checks.package import package_checks
from resources.artefacts import RestrictedStore
from resources.cohorts import CohortRegistry
from resources.home import HomeResource, SynthHome
from resources.ledger import LedgerResource, NoiseResource
from resources.register import RegisterResource
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS
from synth_platform.release.discovery import DISCOVERY_STAGE, GWAS_STAGE
from synth_platform.release.margins import DP_STAGE, SDC_STAGE

SHARED_STAGES = ("cohort", "public", "normalized", "gates")
COHORT_JOB = "judge_controls"
PLAN_JOB = "release_plan"
DISCOVERY_JOB = "discover"
GWAS_JOB = "discover_variants"
CENSUS_JOB = "curate_census"
MARGINS_JOB = "coarsen_margins"
DP_MARGINS_JOB = "measure_margins"
# What spends and what leaves, by the first part of its asset keys.
PARTITIONS_OF: Mapping[str, dg.MultiPartitionsDefinition] = {
    **dict.fromkeys(DP_GENERATORS, cohort_plans),
    DISCOVERY_STAGE: cohort_discoveries,
    GWAS_STAGE: study_discoveries,
    SDC_STAGE: census_sdc_plans,
    DP_STAGE: census_dp_plans,
}


# The event log holds every event; a terminal is for what somebody has to look at.
CONSOLE = dg.LoggerDefinition(
    logger_fn=dg.colored_console_logger.logger_fn,
    config_schema={
        "log_level": dg.Field(str, default_value="WARNING"),
        "name": dg.Field(str, default_value="dagster"),
    },
)


def default_resources(home: SynthHome) -> dict[str, Any]:
    """The resources of a home on this machine."""
    home_resource = HomeResource(root=str(home.root))
    return {
        "home": home_resource,
        "registry": CohortRegistry(path=str(home.cohorts)),
        "ledger": LedgerResource(url=home.ledger_url, home=home_resource, noise=NoiseResource()),
        "register": RegisterResource(url=home.register_url, home=home_resource),
        "io_manager": RestrictedStore(home=home_resource),
    }


def build_definitions(*, resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """The code location; `resources` replaces defaults by name, e.g. a ledger with seeded noise in tests."""
    return dg.Definitions(
        assets=[
            cohort,
            public_reference,
            normalized_matrix,
            real_arm,
            gates_power,
            *statistics_assets,
            *generator_assets,
            *gate_assets,
            *half_split_assets,
            *cross_fit_assets,
            *mechanism_audit_assets,
            *decision_assets,
            *audit_assets,
            *release_assets,
            *discovery_assets,
            *gwas_assets,
            *margins_assets,
            *dp_margins_assets,
            *governance_assets,
        ],
        asset_checks=[*ledger_checks(PARTITIONS_OF), *package_checks(PARTITIONS_OF)],
        jobs=[
            dg.define_asset_job(
                COHORT_JOB,
                selection=dg.AssetSelection.groups(*SHARED_STAGES, *CONTROLS),
                description="Read a cohort and judge the controls on it.",
            ),
            dg.define_asset_job(
                PLAN_JOB,
                selection=dg.AssetSelection.groups("statistics", *DP_GENERATORS, "audit"),
                description="One privacy plan of a cohort: statistics, generators, gates, decisions, audit, releases.",
            ),
            dg.define_asset_job(
                DISCOVERY_JOB,
                selection=dg.AssetSelection.groups(DISCOVERY_STAGE),
                description="Private discoveries of one contrast: e-values, list, decision, audit, release.",
            ),
            dg.define_asset_job(
                GWAS_JOB,
                selection=dg.AssetSelection.groups(GWAS_STAGE),
                description="Private discoveries of one phenotype of a genotype study.",
            ),
            dg.define_asset_job(
                CENSUS_JOB,
                selection=dg.AssetSelection.assets(CURATED),
                description="Read a census: microdata into the categories of its recipe, or published tables.",
            ),
            dg.define_asset_job(
                MARGINS_JOB,
                selection=dg.AssetSelection.groups(SDC_STAGE) - dg.AssetSelection.assets(CURATED),
                description="One plan of policy sdc: coarsened margins, disclosure gate, model, tables, release.",
            ),
            dg.define_asset_job(
                DP_MARGINS_JOB,
                selection=dg.AssetSelection.groups(DP_STAGE),
                description="One plan of policy dp: noisy margins through the ledger, model, tables, release.",
            ),
            reaudit_job,
        ],
        schedules=[reaudit_schedule()],
        sensors=[governance_watch],
        resources={**default_resources(SynthHome.from_environment()), **(resources or {})},
        executor=dg.in_process_executor,
        loggers={"console": CONSOLE},
    )


defs = build_definitions()
