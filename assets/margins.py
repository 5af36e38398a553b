"""Stage `margins`: synthetic tables of coarsened margins, under the release policy `sdc`."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from assets.margins_releases import release_asset
from assets.metadata import CODE_VERSION, table
from assets.partitions import census_cohorts, census_sdc_plans, cohort_of, plan_of
from assets.synthesised import (
    Counted,
    Model,
    audit_asset,
    decided,
    model_asset,
    synthetic_asset,
    utility_asset,
)
from checks.descriptions import DISCLOSURE_FIELDS, describe_coded, describe_document, describe_margins
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from checks.verdicts import ELIGIBLE, VERDICT, disclosure_check
from resources.codecs import json_bytes
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.private import close_census, fingerprint_key
from synth_platform.contract.census_spec import CensusSpec, SdcPlan
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.planned import judge, protect
from synth_platform.margins.reading.census import read_census
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.release.margins import SDC_STAGE, decide_coarsened, violations_of
from synth_platform.release.margins_rederive import counted

CURATED = dg.AssetKey([SDC_STAGE, "curated"])
COARSENED = dg.AssetKey([SDC_STAGE, "coarsened"])
DISCLOSURE_GATE = dg.AssetKey([SDC_STAGE, "disclosure_gate"])
DECISION = dg.AssetKey([SDC_STAGE, "decision"])
SHOWN = 60  # margins in a table of metadata
NEVER_EXACT = (
    "No released count says, alone or with others, what the limit hides: margins and pairs are audited, threes if few."
)


def sdc_plan(spec: CensusSpec, name: str) -> SdcPlan:
    """The plan of that name. Raises Failure for one of another policy."""
    plan = spec.plan(name)
    if not isinstance(plan, SdcPlan):
        said = f"plan {name!r} of census {spec.name!r} is of policy {plan.policy}, not sdc"
        raise dg.Failure(said, allow_retries=False)
    return plan


@dg.asset(
    key=CURATED,
    group_name=SDC_STAGE,
    partitions_def=census_cohorts,
    code_version=CODE_VERSION,
    check_specs=[schema_check_spec(CURATED, census_cohorts)],
    description="Microdata in the categories of the recipe, closed; or published tables, which are open.",
)
def curated(context: dg.AssetExecutionContext, registry: CohortRegistry, home: HomeResource):
    """Read a census from its files; what was merged is reported in the restricted zone."""
    spec, key = registry.census(cohort_of(context)), fingerprint_key(home)
    with quiet_errors("reading the census", readable=(ValueError,)):
        census = read_census(spec, registry.folder(spec.name))
    folder = home.validations(context, CURATED)
    if isinstance(census, MarginSet):
        value: Any = census
        described, source = describe_margins(census), "published tables"
        metadata: dict[str, Any] = {"margins": [margin.title for margin in census]}
    else:
        value = close_census(census, key)
        described, source = describe_coded(census.curated.rows), "microdata"
        report = folder / "curation.json"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_bytes(json_bytes(census.curated.report.to_json()))
        metadata = {"curation": dg.MetadataValue.path(str(report))}
    return dg.MaterializeResult(
        value=value,
        metadata={"source": source, "registered plans": list(spec.plans), **metadata},
        check_results=[schema_check(described, CURATED, folder)],
    )


@dg.asset(
    key=COARSENED,
    group_name=SDC_STAGE,
    partitions_def=census_sdc_plans,
    code_version=CODE_VERSION,
    ins={"rows": dg.AssetIn(key=CURATED)},
    check_specs=[schema_check_spec(COARSENED, census_sdc_plans)],
    description="The registered margins, coarsened by the registered rule. Not differential privacy.",
)
def coarsened(
    context: dg.AssetExecutionContext,
    registry: CohortRegistry,
    home: HomeResource,
    rows: Counted,
):
    """Count the margins and make them so rough that they may be known."""
    spec = registry.census(cohort_of(context))
    plan = sdc_plan(spec, plan_of(context))
    with quiet_errors("coarsening", readable=(ValueError,)):
        margins = protect(counted(spec, rows), plan, spec.counted_by)
    steps = [{"margin": margin.title, "steps": list(margin.provenance)} for margin in margins]
    return dg.MaterializeResult(
        value=margins,
        metadata={
            "policy": "sdc: coarsening, which is not differential privacy",
            "options": dg.MetadataValue.json(plan.model_dump(mode="json")),
            "margins": table(steps[:SHOWN], ("margin", "steps")),
            "structural zeros": len(margins.zeros),
        },
        check_results=[schema_check(describe_margins(margins), COARSENED, home.validations(context, COARSENED))],
    )


@dg.asset(
    key=DISCLOSURE_GATE,
    group_name=SDC_STAGE,
    partitions_def=census_sdc_plans,
    code_version=CODE_VERSION,
    ins={"rows": dg.AssetIn(key=CURATED)},
    deps=[COARSENED],
    check_specs=[
        schema_check_spec(DISCLOSURE_GATE, census_sdc_plans),
        check_spec(VERDICT, DISCLOSURE_GATE, census_sdc_plans, description=NEVER_EXACT),
    ],
    description="What somebody who knows the coarsened margins and their rule can infer, by bounds that are named.",
)
def disclosure_gate(
    context: dg.AssetExecutionContext,
    registry: CohortRegistry,
    home: HomeResource,
    rows: Counted,
):
    """Audit the margins that would be released: the report tells of coarsened counts and public rules alone."""
    spec = registry.census(cohort_of(context))
    plan = sdc_plan(spec, plan_of(context))
    with quiet_errors("auditing disclosure", readable=(ValueError,)):
        document = judge(counted(spec, rows), plan, spec.source.totals)
    columns = ("title", "cells", "small", "recoverable", "exact", "zeros", "groups_disclosed", "narrowest")
    return dg.MaterializeResult(
        value=document,
        metadata={
            "policy": "sdc: coarsening, which is not differential privacy",
            "status": document["status"],
            "reasons": document["reasons"],
            "method": document["method"],
            "limit": document["limit"],
            "tables": table(document["tables"][:SHOWN], columns),
        },
        check_results=[
            schema_check(
                describe_document(document, DISCLOSURE_FIELDS),
                DISCLOSURE_GATE,
                home.validations(context, DISCLOSURE_GATE),
            ),
            disclosure_check(document, DISCLOSURE_GATE),
        ],
    )


@dg.asset(
    key=DECISION,
    group_name=SDC_STAGE,
    partitions_def=census_sdc_plans,
    code_version=CODE_VERSION,
    ins={
        "margins": dg.AssetIn(key=COARSENED),
        "disclosure": dg.AssetIn(key=DISCLOSURE_GATE),
        "model": dg.AssetIn(key=[SDC_STAGE, "model"]),
        "tables": dg.AssetIn(key=[SDC_STAGE, "synthetic"]),
        "utility": dg.AssetIn(key=[SDC_STAGE, "utility_gate"]),
    },
    check_specs=[
        schema_check_spec(DECISION, census_sdc_plans),
        check_spec(ELIGIBLE, DECISION, census_sdc_plans, description="The tables may leave under the policy sdc."),
    ],
    description="Whether the tables may leave the building under the policy sdc, with reasons.",
)
def decision(
    context: dg.AssetExecutionContext,
    registry: CohortRegistry,
    home: HomeResource,
    margins: MarginSet,
    disclosure: Mapping[str, Any],
    model: Model,
    tables: pl.DataFrame,
    utility: Mapping[str, Any],
):
    """The rule of the policy: disclosure gate, schema, data use agreement."""
    spec, plan = registry.census(cohort_of(context)), plan_of(context)
    judged = decide_coarsened(
        spec=spec,
        plan=plan,
        disclosure=disclosure,
        fit=model.report,
        violations=violations_of(tables, margins, spec.plan(plan)),
        utility=utility,
    )
    return decided(context, home, judged, DECISION)


margins_assets = [
    curated,
    coarsened,
    disclosure_gate,
    model_asset(SDC_STAGE, census_sdc_plans),
    synthetic_asset(SDC_STAGE, census_sdc_plans),
    utility_asset(SDC_STAGE, census_sdc_plans),
    decision,
    audit_asset(SDC_STAGE, census_sdc_plans),
    release_asset(SDC_STAGE, census_sdc_plans),
]
