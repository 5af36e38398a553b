"""Running jobs in this process, with progress that people can read."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg
from dagster_shared.error import SerializableErrorInfo
from rich.console import Console

from assets.governance import REGISTER
from assets.margins import CURATED
from assets.normalized import MATRIX
from assets.partitions import (
    CENSUS_COHORT,
    DISCOVERY,
    DP_PLAN,
    GENOTYPE_STUDY,
    OMICS_COHORT,
    PHENOTYPE,
    PLAN,
    SDC_PLAN,
)
from assets.reaudit import reaudit_job
from resources.cohorts import CohortRegistry
from resources.home import SynthHome
from synth_platform.cli.app import PACKAGES
from synth_platform.contract.census_spec import CensusSpec, DpPlan
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS, CohortSpec, GeneratorCode
from synth_platform.contract.discovery_options import DiscoveryPlan
from synth_platform.contract.genotype_spec import GenotypeSpec
from synth_platform.contract.registered import Contrasted, Registered
from synth_platform.definitions import (
    CENSUS_JOB,
    COHORT_JOB,
    DISCOVERY_JOB,
    DP_MARGINS_JOB,
    GWAS_JOB,
    MARGINS_JOB,
    PLAN_JOB,
    SHARED_STAGES,
    build_definitions,
)
from synth_platform.release.discovery import DISCOVERY_STAGE, GWAS_STAGE
from synth_platform.release.margins import DP_STAGE, SDC_STAGE

_OWN_CLASS = re.compile(rf"(?:{'|'.join(PACKAGES)})\.[\w.]+: ")
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class Outcome:
    """How one job went: the failed step's message, or None."""

    partition: str
    assets: int
    failure: str | None


class Runner:
    """Materialises cohorts in this process against the home's own Dagster instance, as the UI's buttons would."""

    def __init__(self, home: SynthHome, console: Console) -> None:
        self._console = console
        self._instance = home.instance()
        self._definitions = build_definitions()
        self.registry = CohortRegistry(path=str(home.cohorts))

    def run(self, spec: CohortSpec, plans: Sequence[str], generators: Sequence[GeneratorCode]) -> list[Outcome]:
        """Shared stages and controls of a cohort, then every plan with the chosen DP generators; stops at a failure."""
        controls = [code for code in generators if code in CONTROLS]
        outcomes = [self._job(COHORT_JOB, spec.name, [*SHARED_STAGES, *controls], [])]
        mechanisms = [code for code in generators if code in DP_GENERATORS]
        for plan in plans if mechanisms else ():
            if outcomes[-1].failure is not None:
                break
            spec.plan(plan)
            self._instance.add_dynamic_partitions(PLAN, [plan])
            partition = dg.MultiPartitionKey({"cohort": spec.name, "plan": plan})
            statistics = [dg.AssetKey(["statistics", m]) for m in mechanisms]
            outcomes.append(self._job(PLAN_JOB, partition, [*mechanisms, "audit"], statistics))
        return outcomes

    def discover(self, spec: Contrasted, plans: Sequence[DiscoveryPlan]) -> list[Outcome]:
        """Private discoveries of each plan, from the cohort's files on; stops at a failure."""
        study = isinstance(spec, GenotypeSpec)
        self._instance.add_dynamic_partitions(PHENOTYPE if study else DISCOVERY, [plan.key for plan in plans])
        job, stage = (GWAS_JOB, GWAS_STAGE) if study else (DISCOVERY_JOB, DISCOVERY_STAGE)
        outcomes = [] if study else [self._job(COHORT_JOB, spec.name, ["cohort", "public"], [MATRIX])]
        for plan in plans:
            if outcomes and outcomes[-1].failure is not None:
                break
            partition = dg.MultiPartitionKey({"cohort": spec.name, "plan": plan.key})
            outcomes.append(self._job(job, partition, [stage], []))
        return outcomes

    def synthesise(self, spec: CensusSpec, plans: Sequence[str]) -> list[Outcome]:
        """Synthetic tables of a census by each plan, from its files on; stops at a failure."""
        outcomes = [self._job(CENSUS_JOB, spec.name, [SDC_STAGE], [CURATED])]
        for plan in plans:
            if outcomes[-1].failure is not None:
                break
            job, stage = (DP_MARGINS_JOB, DP_STAGE) if isinstance(spec.plan(plan), DpPlan) else (MARGINS_JOB, SDC_STAGE)
            partition = dg.MultiPartitionKey({"cohort": spec.name, "plan": plan})
            outcomes.append(self._job(job, partition, [stage], []))
        return outcomes

    def reaudit(self) -> Outcome:
        """Look at every published release again."""
        return self._job(reaudit_job.name, None, [], [REGISTER])

    def add_cohort(self, spec: Registered) -> None:
        """Make the cohort, study or census and its plans selectable in the UI."""
        if isinstance(spec, CensusSpec):
            self._instance.add_dynamic_partitions(CENSUS_COHORT, [spec.name])
            for dimension, noisy in ((SDC_PLAN, False), (DP_PLAN, True)):
                names = [name for name, plan in spec.plans.items() if isinstance(plan, DpPlan) is noisy]
                self._instance.add_dynamic_partitions(dimension, names)
            return
        study = isinstance(spec, GenotypeSpec)
        self._instance.add_dynamic_partitions(GENOTYPE_STUDY if study else OMICS_COHORT, [spec.name])
        keys = [spec.plan_of(name).key for name in spec.contrasts]
        self._instance.add_dynamic_partitions(PHENOTYPE if study else DISCOVERY, keys)
        if isinstance(spec, CohortSpec):
            self._instance.add_dynamic_partitions(PLAN, list(spec.plans))

    def _job(self, name: str, partition: str | None, groups: Sequence[str], also: Sequence[dg.AssetKey]) -> Outcome:
        job = self._definitions.resolve_job_def(name)
        graph = self._definitions.resolve_asset_graph()
        chosen = [
            key for key in job.asset_layer.selected_asset_keys if graph.get(key).group_name in groups or key in also
        ]
        run_id, started, done = str(uuid.uuid4()), time.monotonic(), 0
        seen: set[str] = set()

        def show(entry: dg.EventLogEntry) -> None:
            nonlocal done
            event = entry.dagster_event
            if event is None or event.event_type_value != "ASSET_MATERIALIZATION" or event.asset_key is None:
                return
            done += 1
            stage = event.asset_key.path[0]
            if stage not in seen:
                seen.add(stage)
                elapsed = time.monotonic() - started
                self._console.print(
                    f"  [dim]{elapsed:6.1f} s[/dim]  {(partition or name).replace('|', ' · ')}  {stage}",
                    highlight=False,
                )

        self._instance.add_event_listener(run_id, show)
        result = job.execute_in_process(
            instance=self._instance,
            partition_key=partition,
            asset_selection=chosen,
            run_config=QUIET,
            run_id=run_id,
            raise_on_error=False,
        )
        return Outcome(partition or name, done, None if result.success else _failure(result))


def _message(error: SerializableErrorInfo | None) -> str:
    """What the first error of our own says, without its class; else the cause as Dagster has it."""
    chain = []
    while error is not None:
        chain.append(error.message.strip())
        error = error.cause
    own = [_OWN_CLASS.sub("", message) for message in chain if _OWN_CLASS.match(message)]
    return own[0] if own else chain[:2][-1] if chain else "failed"


def _refusals(result: dg.ExecuteInProcessResult) -> list[str]:
    """Asset checks that failed and let nothing go on, with what they say."""
    events = [event for event in result.all_events if event.event_type_value == "ASSET_CHECK_EVALUATION"]
    checks = [event.asset_check_evaluation_data for event in events]
    return [
        f"{check.asset_key.to_user_string()}, {check.check_name}: {check.description}"
        for check in checks
        if not check.passed and check.blocking
    ]


def _failure(result: dg.ExecuteInProcessResult) -> str:
    for event in result.all_events:
        if event.is_step_failure:
            said, error = event.step_failure_data.user_failure_data, event.step_failure_data.error
            if said is not None and said.description:
                return f"{event.step_key}: {said.description}"
            if refusals := _refusals(result):
                return "; ".join(refusals)
            return f"{event.step_key}: {_message(error)}"
        if event.event_type_value == "PIPELINE_FAILURE" and (error := event.job_failure_data.error) is not None:
            return _message(error)
    return "the run failed before its first step; `synth ui` shows its log"
