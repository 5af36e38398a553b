"""A home of the platform on disk, with a cohort so small that a whole run takes seconds, and copies of it to harm.

The cohort is the virtual one with fewer rows and features. Its public rows come from the private population and its
tolerances are wide, so that G0A is eligible with room to spare (of 60 draws of its noise every one was); the other
verdicts are those of the bundled cohort. 137 training rows: a number that turns up nowhere else.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import absl.logging
import dagster as dg
import pytest
import yaml
from filelock import FileLock
from sqlalchemy import Engine, event
from typer.testing import CliRunner

from assets.partitions import DISCOVERY, OMICS_COHORT, PLAN
from resources.artefacts import read_artefact, write_artefact
from resources.cohorts import CohortRegistry
from resources.home import HomeResource, SynthHome
from resources.ledger import LedgerResource, NoiseResource, home_ledger
from resources.private import fingerprint_key
from synth_platform.cli.main import app
from synth_platform.contract.cohort_spec import CohortSpec, load_cohort_spec
from synth_platform.definitions import COHORT_JOB, DISCOVERY_JOB, PLAN_JOB, build_definitions, default_resources
from synth_platform.privacy.ledger import Ledger

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
CHANCES = {"c_index": 0.1, "macro_f1": 0.1, "auroc": 0.1, "spearman": 0.0}
COHORT, PLAN_KEY = "tiny", "eps8"

Document = dict[str, Any]


def tiny_document() -> Document:
    """cohort.yaml of the tiny cohort."""
    document: Document = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))
    document["name"] = COHORT
    document["privacy"] |= {"domain": COHORT, "n_ref": 150, "budget": {"epsilon": 24.0, "delta": 1e-5}}
    document["source"]["options"] |= {"world_seed": 16, "train": 137, "holdout": 67, "test": 91, "public": 300}
    document["source"]["options"]["public_shift"] = 0.0
    for modality, features in (("expression", 5), ("methylation", 4)):
        document[modality]["panel"] = document[modality]["panel"][:features]
    document["expression"]["panel"][0] = "HLA-A*01 (long)"  # a feature id is public, but no code token
    document["g0"] = {"latent": 3}
    document["endpoints"] = [{"name": name, "chance": chance} for name, chance in CHANCES.items()]
    document["gates"] = {
        "train_closer_tolerance": 0.4,
        "excess_tolerance": 0.2,
        "membership_limit": 0.72,
        "groups": 4,
        "power_draws": 8,
    }
    document["plans"] = {PLAN_KEY: {"epsilon": 8.0, "delta": 1e-5}}
    document["synthetic"] = {"rows": 200, "seeds": [1, 2, 3, 4, 5]}
    del document["discovery"]  # its sizes are those of the bundled cohort; lists have a home of their own: discovery/
    return document


@dataclass(frozen=True)
class Platform:
    """One home with its Dagster instance and definitions, as `synth` and the UI see them."""

    home: SynthHome
    instance: dg.DagsterInstance
    definitions: dg.Definitions

    @classmethod
    def at(cls, root: Path, *, seeded: int | None = None) -> Platform:
        """The platform of a home, new or copied; `seeded` puts a seeded noise source in the ledger's place of it."""
        home = SynthHome(root).prepare()
        instance = home.instance()
        resources = default_resources(home)
        if seeded is not None:
            noise = NoiseResource(source="seeded", seed=seeded)
            place = HomeResource(root=str(root))
            resources["ledger"] = LedgerResource(url=home.ledger_url, home=place, noise=noise)
        return cls(home, instance, build_definitions(resources=resources))

    @property
    def registry(self) -> CohortRegistry:
        return CohortRegistry(path=str(self.home.cohorts))

    @property
    def ledger(self) -> Ledger:
        return home_ledger(self.home)

    def add(self, folder: Path) -> CohortSpec:
        """Register a cohort folder."""
        spec = self.registry.add(folder)
        self.instance.add_dynamic_partitions(OMICS_COHORT, [spec.name])
        self.instance.add_dynamic_partitions(PLAN, list(spec.plans))
        return spec

    def spec(self, cohort: str = COHORT) -> CohortSpec:
        return self.registry.spec(cohort)

    def edit(self, change: Callable[[Document], None], cohort: str = COHORT) -> CohortSpec:
        """Change cohort.yaml, as a steward would between two runs."""
        path = self.registry.folder(cohort) / "cohort.yaml"
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        change(document)
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        return load_cohort_spec(path)

    def partition(self, plan: str | None = PLAN_KEY, cohort: str = COHORT) -> str:
        """The partition key of a plan of a cohort, or of the cohort alone."""
        return cohort if plan is None else dg.MultiPartitionKey({"cohort": cohort, "plan": plan})

    def run(
        self,
        *assets: str,
        plan: str | None = PLAN_KEY,
        cohort: str = COHORT,
        check: bool = True,
        plan_job: str = PLAN_JOB,
    ) -> dg.ExecuteInProcessResult:
        """Materialise assets ("G0A/release") of the plan's partition, or all of its job; `check` wants success."""
        if plan is not None:
            self.instance.add_dynamic_partitions(DISCOVERY if plan_job == DISCOVERY_JOB else PLAN, [plan])
        job = self.definitions.resolve_job_def(COHORT_JOB if plan is None else plan_job)
        result = job.execute_in_process(
            instance=self.instance,
            partition_key=self.partition(plan, cohort),
            asset_selection=[dg.AssetKey.from_user_string(asset) for asset in assets] or None,
            run_config=QUIET,
            raise_on_error=False,
        )
        assert result.success or not check, self.failure(result)
        return result

    def discover(self, *assets: str, plan: str, check: bool = True) -> dg.ExecuteInProcessResult:
        """Materialise assets ("discovery/release") of a discovery plan, or all of its job."""
        return self.run(*assets, plan=plan, check=check, plan_job=DISCOVERY_JOB)

    def latest(self, asset: str, plan: str | None = PLAN_KEY, cohort: str = COHORT) -> dg.EventLogRecord | None:
        """The latest materialisation of an asset partition."""
        records = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(
                asset_key=dg.AssetKey.from_user_string(asset), asset_partitions=[self.partition(plan, cohort)]
            ),
            limit=1,
        ).records
        return records[0] if records else None

    def metadata(self, asset: str, plan: str | None = PLAN_KEY, cohort: str = COHORT) -> Mapping[str, Any]:
        """Metadata values of the latest materialisation."""
        record = self.latest(asset, plan, cohort)
        assert record is not None, f"{asset} was never materialised"
        assert record.asset_materialization is not None
        return {name: entry.value for name, entry in record.asset_materialization.metadata.items()}

    def folder(self, asset: str, plan: str | None = PLAN_KEY, cohort: str = COHORT) -> Path:
        """Where the stored artefact is."""
        parts = [cohort] if plan is None else [cohort, plan]
        return Path(str(self.home.artefact(dg.AssetKey.from_user_string(asset), *parts)))

    def read(self, asset: str, plan: str | None = PLAN_KEY, cohort: str = COHORT) -> Any:
        """The stored artefact."""
        key = fingerprint_key(HomeResource(root=str(self.home.root)))
        return read_artefact(self.home.artefact(dg.AssetKey.from_user_string(asset), *self._parts(plan, cohort)), key)

    def overwrite(self, asset: str, value: object, plan: str | None = PLAN_KEY) -> None:
        """Put another value in an artefact's place, hashes and all, as somebody with write access could."""
        write_artefact(self.home.artefact(dg.AssetKey.from_user_string(asset), *self._parts(plan, COHORT)), value)

    def rows(self) -> list[dict[str, Any]]:
        """The whole ledger."""
        return self.ledger.table()

    def packages(self) -> list[str]:
        """Names in the released zone."""
        return sorted(path.name for path in self.home.released.iterdir() if path.is_dir())

    def withdraw(self) -> None:
        """Empty the released zone, so that what a run writes there shows."""
        for package in self.packages():
            shutil.rmtree(self.home.released / package)

    def check(self, asset: str, check: str, plan: str = PLAN_KEY) -> dg.AssetCheckEvaluation:
        """Evaluate one check of the plan's partition alone, tagged with its partition as a run from the UI is."""
        key = dg.AssetCheckKey(dg.AssetKey.from_user_string(asset), check)
        job = dg.define_asset_job("check", selection=dg.AssetSelection.checks(key))
        definitions = dg.Definitions.merge(self.definitions, dg.Definitions(jobs=[job]))
        dimensions = {"": str(self.partition(plan)), "/cohort": COHORT, "/plan": plan}
        result = definitions.resolve_job_def("check").execute_in_process(
            instance=self.instance,
            tags={f"dagster/partition{name}": value for name, value in dimensions.items()},
            run_config=QUIET,
            raise_on_error=False,
        )
        [evaluation] = result.get_asset_check_evaluations()
        return evaluation

    @staticmethod
    def failure(result: dg.ExecuteInProcessResult) -> str:
        """What went wrong: failed checks, and messages of every failed step, causes included."""
        messages = [
            f"{check.asset_key.to_user_string()}: {check.check_name}: {check.description}"
            for event in result.all_events
            if event.event_type_value == "ASSET_CHECK_EVALUATION"
            and not (check := event.asset_check_evaluation_data).passed
        ]
        for step in result.all_events:
            error = step.step_failure_data.error if step.is_step_failure else None
            while error is not None:
                messages.append(error.message)
                error = error.cause
        return "\n".join(messages)

    @staticmethod
    def _parts(plan: str | None, cohort: str) -> Sequence[str]:
        return [cohort] if plan is None else [cohort, plan]


@pytest.fixture(scope="session", autouse=True)
def _environment() -> Iterator[None]:
    """What `SynthHome.prepare` sets is put back, and nobody's own home is ever touched."""
    before = dict(os.environ)
    for name in ("SYNTH_HOME", "SYNTH_ARTEFACTS", "SYNTH_LEDGER_URL"):
        os.environ.pop(name, None)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session", autouse=True)
def _fast_event_log() -> Iterator[None]:
    """Dagster's own databases need not survive a power cut in a test; the ledger's keep their settings."""

    def unsynced(connection: Any, _: Any) -> None:
        if not isinstance(connection, sqlite3.Connection):
            return
        if f"{os.sep}dagster{os.sep}" in connection.execute("PRAGMA database_list").fetchone()[2]:
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", unsynced)
    yield
    event.remove(Engine, "connect", unsynced)


@pytest.fixture(scope="session", autouse=True)
def _standard_error_stays_open() -> None:
    """absl's log handler closes the stream it was made with when Dagster sets up logging, unless it is standard error;
    under a test that captures output it was made with pytest's."""
    absl.logging.get_absl_handler().python_handler.stream = sys.__stderr__


@pytest.fixture(scope="session")
def write_cohort() -> Callable[[Path, Document], Path]:
    """Write cohort.yaml into a new folder."""

    def write(folder: Path, document: Document) -> Path:
        folder.mkdir(parents=True)
        (folder / "cohort.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        return folder

    return write


@pytest.fixture
def document() -> Document:
    """cohort.yaml of the tiny cohort, to be changed."""
    return tiny_document()


@dataclass(frozen=True)
class Said:
    """What a command said and how it ended."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Session:
    """The home of a steward and what every command said there, in order."""

    root: Path
    folder: Path
    said: Mapping[str, Said]


@pytest.fixture(scope="session")
def steward(tmp_path_factory: pytest.TempPathFactory, write_cohort: Callable[[Path, Document], Path]) -> Session:
    """The tiny cohort from its folder to decisions by the command line alone; made once for all test processes."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    root = base / "finished" / "home"
    folder, record = root / "cohort_folder", base / "finished" / "said.json"
    with FileLock(base / "finished.lock"):
        if not record.exists():
            write_cohort(folder, tiny_document())
            commands = ("cohort list", f"cohort add {folder}", "cohort list --json", "run tiny --json")
            record.write_text(json.dumps({command: asdict(said(command, root)) for command in commands}), "utf-8")
    return Session(root, folder, {c: Said(**s) for c, s in json.loads(record.read_text("utf-8")).items()})


def said(command: str, root: Path) -> Said:
    """Run one `synth` command in a home."""
    result = CliRunner().invoke(app, command.split(), env={"SYNTH_HOME": str(root)}, catch_exceptions=False)
    return Said(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(scope="session")
def finished(steward: Session) -> Platform:
    """The tiny cohort run as a whole: shared stages, controls, one plan. Only to be read."""
    assert steward.said["run tiny --json"].exit_code == 0, steward.said["run tiny --json"].stderr
    return Platform.at(steward.root)


def copy_home(home: Path, root: Path) -> None:
    """Copy a home that others read meanwhile: a database that is closed while it is copied takes its log file along."""
    for _ in range(5):
        try:
            shutil.copytree(home, root)
        except shutil.Error:
            shutil.rmtree(root)
        else:
            return
    raise AssertionError(f"{home} does not hold still")


def copied_platform(platform: Platform, root: Path, seeded: int | None = None) -> Platform:
    """A copy of a home whose cohorts are its own, with a seeded source of noise if asked for."""
    copy_home(platform.home.root, root)
    register = root / "cohorts.json"
    register.write_text(register.read_text("utf-8").replace(str(platform.home.root), str(root)), "utf-8")
    return Platform.at(root, seeded=seeded)


@pytest.fixture
def copied(finished: Platform, tmp_path: Path) -> Callable[..., Platform]:
    """A copy of the finished run: `copied(seeded=1)`."""
    return lambda seeded=None: copied_platform(finished, tmp_path / "home", seeded)


@pytest.fixture
def platform(copied: Callable[..., Platform]) -> Platform:
    """A copy of the finished run that a test may harm."""
    return copied()


@pytest.fixture
def new_platform(tmp_path: Path) -> Callable[..., Platform]:
    """An empty home: `new_platform("name", seeded=1)`."""
    return lambda name="new", seeded=None: Platform.at(tmp_path / name, seeded=seeded)
