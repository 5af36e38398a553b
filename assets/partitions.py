"""Partitions: one per cohort or study, and with a plan beside it for everything that depends on a privacy target."""

import dagster as dg

OMICS_COHORT = "omics_cohort"
PLAN = "plan"
GENOTYPE_STUDY = "genotype_study"
DISCOVERY = "discovery"
PHENOTYPE = "phenotype"

omics_cohorts = dg.DynamicPartitionsDefinition(name=OMICS_COHORT)
plans = dg.DynamicPartitionsDefinition(name=PLAN)
genotype_studies = dg.DynamicPartitionsDefinition(name=GENOTYPE_STUDY)
phenotype_plans = dg.DynamicPartitionsDefinition(name=PHENOTYPE)
discovery_plans = dg.DynamicPartitionsDefinition(name=DISCOVERY)
cohort_discoveries = dg.MultiPartitionsDefinition({"cohort": omics_cohorts, "plan": discovery_plans})
study_discoveries = dg.MultiPartitionsDefinition({"cohort": genotype_studies, "plan": phenotype_plans})
cohort_plans = dg.MultiPartitionsDefinition({"cohort": omics_cohorts, "plan": plans})


def cohort_of(context: dg.AssetExecutionContext) -> str:
    """The cohort name of the running partition, whether or not it has a plan dimension."""
    key = context.partition_key
    return key.keys_by_dimension["cohort"] if isinstance(key, dg.MultiPartitionKey) else key


def plan_of(context: dg.AssetExecutionContext) -> str:
    """The plan key of the running partition; "" for what is partitioned by cohort alone."""
    key = context.partition_key
    return key.keys_by_dimension["plan"] if isinstance(key, dg.MultiPartitionKey) else ""
