"""Governance: published releases looked at again, and what is left of budgets; no figure of a gate is shown."""

import dagster as dg

from assets.metadata import CODE_VERSION, significant, table
from checks.descriptions import describe_document
from checks.recalls import BUDGET_LEFT, LOOKED_AT, NO_RECALL, budget_check, looked_at_check, recall_check
from checks.schema import schema_check, schema_check_spec
from resources.cohorts import CohortRegistry
from resources.home import HomeResource
from resources.ledger import LedgerResource
from resources.register import RegisterResource, reaudit_home
from resources.watch import LEVELS, budgets
from synth_platform.release.findings import in_words

REGISTER = dg.AssetKey(["governance", "register"])
BUDGETS = dg.AssetKey(["governance", "budgets"])
REGISTER_FIELDS = ("releases", "recalled", "hindered")
RELEASE_COLUMNS = ("name", "status", "reasons", "findings", "looks", "last_look", "published_at")
BUDGET_COLUMNS = ("domain", "cap", "delta", "spent_rdp", "remaining", "level")


@dg.asset(
    key=REGISTER,
    group_name="governance",
    code_version=CODE_VERSION,
    check_specs=[
        schema_check_spec(REGISTER, None),
        dg.AssetCheckSpec(NO_RECALL, asset=REGISTER, description="No recalled release is still in the released zone."),
        dg.AssetCheckSpec(LOOKED_AT, asset=REGISTER, description="Every published release was looked at to the end."),
    ],
    description="Every published release looked at again: package, ledger, agreement, decision, audit, attacks.",
)
def release_register(
    context: dg.AssetExecutionContext,
    home: HomeResource,
    registry: CohortRegistry,
    ledger: LedgerResource,
    register: RegisterResource,
):
    """Re-audit everything, say loudly what is recalled, and show the register."""
    done = reaudit_home(home, register.register(), registry, ledger.url)
    for name, reasons in done.recalled.items():
        context.log.error(f"{name} is RECALLED: {'; '.join(map(in_words, reasons))}")
    for name, codes in done.hindered.items():
        context.log.error(f"{name} could not be looked at: {'; '.join(map(in_words, codes))}")
    document = done.as_dict()
    return dg.MaterializeResult(
        value=document,
        metadata={"register": table(document["releases"], RELEASE_COLUMNS)},
        check_results=[
            schema_check(describe_document(document, REGISTER_FIELDS), REGISTER, home.validations(context, REGISTER)),
            recall_check(done.standing_recalls, REGISTER),
            looked_at_check(done.hindered, REGISTER),
        ],
    )


@dg.asset(
    key=BUDGETS,
    group_name="governance",
    code_version=CODE_VERSION,
    check_specs=[
        schema_check_spec(BUDGETS, None),
        dg.AssetCheckSpec(BUDGET_LEFT, asset=BUDGETS, description=f"No domain has spent {LEVELS[0]} % of its cap."),
    ],
    description="What every privacy domain has spent of its cap, from the ledger.",
)
def domain_budgets(context: dg.AssetExecutionContext, home: HomeResource, ledger: LedgerResource):
    """Cap and spending of every privacy domain."""
    document = {"domains": budgets(ledger.ledger())}
    shown = [
        domain | {name: significant(domain[name]) for name in ("spent_rdp", "remaining")}
        for domain in document["domains"]
    ]
    return dg.MaterializeResult(
        value=document,
        metadata={"budgets": table(shown, BUDGET_COLUMNS)},
        check_results=[
            schema_check(describe_document(document, ("domains",)), BUDGETS, home.validations(context, BUDGETS)),
            budget_check(document["domains"], BUDGETS),
        ],
    )


governance_assets = [release_register, domain_budgets]
