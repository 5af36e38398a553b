"""When governance is served: a nightly schedule and a sensor, both running by default, and the job they request."""

import json
import os

import dagster as dg

from assets.governance import BUDGETS, REGISTER
from resources.cohorts import CohortRegistry
from resources.ledger import LedgerResource
from resources.watch import Seen, budgets, dua_tags, happened, run_key

CRON_VARIABLE, CRON_DEFAULT = "SYNTH_REAUDIT_CRON", "0 3 * * *"
WATCH_SECONDS = 60

reaudit_job = dg.define_asset_job(
    "reaudit",
    selection=dg.AssetSelection.assets(REGISTER, BUDGETS),
    description="Look at every published release again, and at every budget.",
)


class CronError(ValueError):
    """The schedule of the re-audits cannot be read."""


def reaudit_schedule() -> dg.ScheduleDefinition:
    """`nightly_reaudit`, when SYNTH_REAUDIT_CRON says so, in UTC. Raises CronError for what is no cron schedule."""
    cron = os.environ.get(CRON_VARIABLE, CRON_DEFAULT)
    try:
        return dg.ScheduleDefinition(
            name="nightly_reaudit",
            job=reaudit_job,
            cron_schedule=cron,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description=f"Re-audits every published release at {cron!r} UTC; {CRON_VARIABLE} changes it.",
        )
    except dg.DagsterInvalidDefinitionError as error:
        raise CronError(
            f"{CRON_VARIABLE}={cron!r} is no cron schedule; write five fields (minute, hour, day of month, month, day "
            f"of week) such as {CRON_DEFAULT!r}, or unset it"
        ) from error


@dg.sensor(
    name="governance_watch",
    job=reaudit_job,
    minimum_interval_seconds=WATCH_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Requests a re-audit when a budget is nearly spent or a data use agreement changed.",
)
def governance_watch(
    context: dg.SensorEvaluationContext, ledger: LedgerResource, registry: CohortRegistry
) -> dg.SensorResult:
    """One re-audit for whatever happened since the last tick; its run key is never used again."""
    before = Seen(**json.loads(context.cursor)) if context.cursor else Seen()
    levels = {budget["domain"]: budget["level"] for budget in budgets(ledger.ledger())}
    news, seen = happened(before, levels, dua_tags(registry))
    for line in news:
        context.log.warning(line)
    return dg.SensorResult(
        run_requests=[dg.RunRequest(run_key=run_key(news, seen.turn))] if news else [],
        skip_reason=None if news else "budgets and data use agreements are as they were",
        cursor=json.dumps(seen.as_dict()),
    )
