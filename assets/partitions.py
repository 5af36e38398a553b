"""Partitions: one per cohort or study, and with a plan beside it for everything that depends on a privacy target."""

import dagster as dg

OMICS_COHORT = "omics_cohort"
PLAN = "plan"
GENOTYPE_STUDY = "genotype_study"
DISCOVERY = "discovery"
PHENOTYPE = "phenotype"
CENSUS_COHORT = "census_cohort"
SDC_PLAN = "sdc_plan"
DP_PLAN = "dp_plan"

omics_cohorts = dg.DynamicPartitionsDefinition(name=OMICS_COHORT)
plans = dg.DynamicPartitionsDefinition(name=PLAN)
genotype_studies = dg.DynamicPartitionsDefinition(name=GENOTYPE_STUDY)
phenotype_plans = dg.DynamicPartitionsDefinition(name=PHENOTYPE)
discovery_plans = dg.DynamicPartitionsDefinition(name=DISCOVERY)
census_cohorts = dg.DynamicPartitionsDefinition(name=CENSUS_COHORT)
sdc_plans = dg.DynamicPartitionsDefinition(name=SDC_PLAN)
dp_plans = dg.DynamicPartitionsDefinition(name=DP_PLAN)
cohort_discoveries = dg.MultiPartitionsDefinition({"cohort": omics_cohorts, "plan": discovery_plans})
study_discoveries = dg.MultiPartitionsDefinition({"cohort": genotype_studies, "plan": phenotype_plans})
census_sdc_plans = dg.MultiPartitionsDefinition({"cohort": census_cohorts, "plan": sdc_plans})
census_dp_plans = dg.MultiPartitionsDefinition({"cohort": census_cohorts, "plan": dp_plans})
cohort_plans = dg.MultiPartitionsDefinition({"cohort": omics_cohorts, "plan": plans})


def cohort_of(context: dg.AssetExecutionContext) -> str:
    """The cohort name of the running partition, whether or not it has a plan dimension."""
    key = context.partition_key
    return key.keys_by_dimension["cohort"] if isinstance(key, dg.MultiPartitionKey) else key


def plan_of(context: dg.AssetExecutionContext) -> str:
    """The plan key of the running partition; "" for what is partitioned by cohort alone."""
    key = context.partition_key
    return key.keys_by_dimension["plan"] if isinstance(key, dg.MultiPartitionKey) else ""
