"""Stage `dp_margins`: synthetic tables of noisy margins, paid for through the ledger, under the release policy `dp`."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from assets.margins import CURATED
from assets.margins_releases import release_asset
from assets.metadata import CODE_VERSION, ledger_table, significant
from assets.partitions import census_dp_plans, cohort_of, plan_of
from assets.synthesised import (
    Counted,
    Model,
    audit_asset,
    decided,
    model_asset,
    synthetic_asset,
    utility_asset,
)
from checks.descriptions import describe_margins
from checks.schema import schema_check, schema_check_spec
from checks.specs import check_spec
from checks.verdicts import ELIGIBLE
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.ledger import LedgerResource
from resources.private import close_census, fingerprint_key
from synth_platform.contract.census_spec import CensusSpec, DpPlan
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.noise.noisy import NoisyMargins
from synth_platform.margins.reading.census import Microdata, read_census
from synth_platform.privacy.affordable import require_affordable
from synth_platform.privacy.private_errors import quiet_errors
from synth_platform.privacy.private_table import unledgered
from synth_platform.release.margins import DP_STAGE, decide_noisy, violations_of
from synth_platform.release.margins_rederive import bought

MEASURED = dg.AssetKey([DP_STAGE, "measured"])
DECISION = dg.AssetKey([DP_STAGE, "decision"])


def dp_plan(spec: CensusSpec, name: str) -> DpPlan:
    """The plan of that name. Raises Failure for one of another policy."""
    plan = spec.plan(name)
    if not isinstance(plan, DpPlan):
        said = f"plan {name!r} of census {spec.name!r} is of policy {plan.policy}, not dp"
        raise dg.Failure(said, allow_retries=False)
    return plan


@dg.asset(
    key=MEASURED,
    group_name=DP_STAGE,
    partitions_def=census_dp_plans,
    code_version=CODE_VERSION,
    ins={"curated": dg.AssetIn(key=CURATED)},
    check_specs=[schema_check_spec(MEASURED, census_dp_plans)],
    description="The registered margins with noise that the ledger paid for; the same request again is free.",
)
def measured(
    context: dg.AssetExecutionContext,
    registry: CohortRegistry,
    ledger: LedgerResource,
    home: HomeResource,
    curated: Counted,
):
    """Ask for noisy counts of the rows as the files give them now, which have to be those that were curated."""
    spec = registry.census(cohort_of(context))
    plan = dp_plan(spec, plan_of(context))
    with quiet_errors("reading the census", readable=(ValueError,)):
        census = read_census(spec, registry.folder(spec.name))
    if not isinstance(census, Microdata) or isinstance(curated, MarginSet):
        raise dg.Failure(f"census {spec.name!r} has published tables, to which no noise is added", allow_retries=False)
    rows = close_census(census, fingerprint_key(home))
    if rows.fingerprint != curated.fingerprint:
        raise dg.Failure(f"the file is not what {CURATED.to_user_string()} was made of; materialise it again")
    curator = ledger.curator(spec, run_id=context.run.run_id)
    assert spec.privacy is not None  # a plan of policy dp was not registered without it
    require_affordable(lambda ask: bought(spec, plan, ask), rows, curator, ledger.ledger(), spec.privacy.domain)
    margins, releases = bought(spec, plan, lambda query: rows.measure(query, curator))
    for note in curator.notes:
        context.log.info(note)
    value = NoisyMargins(
        margins,
        entries=tuple(release.entry_id for release in releases),
        seeded=any(release.source == "seeded" for release in releases),
        unledgered=unledgered(rows.accesses),
        rows=rows.fingerprint,
    )
    return dg.MaterializeResult(
        value=value,
        metadata={
            "policy": "dp",
            "options": dg.MetadataValue.json(plan.model_dump(mode="json")),
            "margins": [margin.title for margin in margins],
            "noise on each count": significant(releases[-1].sigma),
            "ledger_entries": list(value.entries),
            "ledger": ledger_table(ledger.rows(value.entries)),
        },
        check_results=[schema_check(describe_margins(margins), MEASURED, home.validations(context, MEASURED))],
    )


@dg.asset(
    key=DECISION,
    group_name=DP_STAGE,
    partitions_def=census_dp_plans,
    code_version=CODE_VERSION,
    ins={
        "noisy": dg.AssetIn(key=MEASURED),
        "model": dg.AssetIn(key=[DP_STAGE, "model"]),
        "tables": dg.AssetIn(key=[DP_STAGE, "synthetic"]),
        "utility": dg.AssetIn(key=[DP_STAGE, "utility_gate"]),
    },
    check_specs=[
        schema_check_spec(DECISION, census_dp_plans),
        check_spec(ELIGIBLE, DECISION, census_dp_plans, description="The tables may leave under the policy dp."),
    ],
    description="Whether the tables may leave the building under the policy dp, with reasons.",
)
def decision(
    context: dg.AssetExecutionContext,
    registry: CohortRegistry,
    ledger: LedgerResource,
    home: HomeResource,
    noisy: NoisyMargins,
    model: Model,
    tables: pl.DataFrame,
    utility: Mapping[str, Any],
):
    """The rule of the policy: the ledger pays for what the plan promises; schema, data use agreement."""
    spec, plan = registry.census(cohort_of(context)), plan_of(context)
    judged = decide_noisy(
        spec=spec,
        plan=plan,
        measured=noisy,
        fit=model.report,
        violations=violations_of(tables, noisy.margins, spec.plan(plan)),
        utility=utility,
        ledger=ledger.ledger(),
        store=ledger.store(),
    )
    return decided(context, home, judged, DECISION)


dp_margins_assets = [
    measured,
    model_asset(DP_STAGE, census_dp_plans),
    synthetic_asset(DP_STAGE, census_dp_plans),
    utility_asset(DP_STAGE, census_dp_plans),
    decision,
    audit_asset(DP_STAGE, census_dp_plans),
    release_asset(DP_STAGE, census_dp_plans),
]
