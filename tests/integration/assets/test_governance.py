"""The schedule, the watch and the daemon: a re-audit that nobody starts by hand."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.reaudit import CRON_VARIABLE, CronError, governance_watch, reaudit_schedule
from resources.home import HomeResource
from resources.ledger import LedgerResource, NoiseResource
from resources.register import home_register
from synth_platform.cli import daemon as daemon_module
from synth_platform.definitions import build_definitions

SYNTH = Path(sys.executable).with_name("synth")
PACKAGE = "tiny-G0A-eps8"
WAIT = 240  # seconds on a machine with much else to do; about 50 alone


def test_schedule_and_watch_run_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: nobody has to switch them on, nightly at three unless the environment says another time."""
    monkeypatch.delenv(CRON_VARIABLE, raising=False)
    repository = build_definitions().get_repository_def()
    schedule, watch = repository.get_schedule_def("nightly_reaudit"), repository.get_sensor_def("governance_watch")
    assert (schedule.default_status, schedule.cron_schedule) == (dg.DefaultScheduleStatus.RUNNING, "0 3 * * *")
    assert watch.default_status == dg.DefaultSensorStatus.RUNNING
    assert schedule.job_name == watch.job_name == "reaudit"
    monkeypatch.setenv(CRON_VARIABLE, "*/5 * * * *")
    assert reaudit_schedule().cron_schedule == "*/5 * * * *"


@pytest.mark.parametrize("cron", ["nightly", "", "0 25 * * *", "0 3 * *"])
def test_a_wrong_time_is_an_error_that_says_what_to_write(monkeypatch: pytest.MonkeyPatch, cron: str) -> None:
    monkeypatch.setenv(CRON_VARIABLE, cron)
    with pytest.raises(
        CronError, match=r"SYNTH_REAUDIT_CRON=.* is no cron schedule; write five fields .*'0 3 \* \* \*'"
    ):
        reaudit_schedule()


def test_the_watch_asks_for_one_re_audit_per_event(platform: Any) -> None:
    """Claim: a cap lowered to what is nearly spent, then a changed agreement: one run request each, with a key of its
    own; nothing while nothing happens."""
    home = HomeResource(root=str(platform.home.root))
    ledger = LedgerResource(url=platform.home.ledger_url, home=home, noise=NoiseResource())
    cursor = None

    def tick() -> list[str | None]:
        nonlocal cursor
        resources = {"ledger": ledger, "registry": platform.registry}
        with dg.build_sensor_context(instance=platform.instance, cursor=cursor, resources=resources) as context:
            result = governance_watch(context)
        assert isinstance(result, dg.SensorResult)
        cursor = result.cursor
        return [request.run_key for request in result.run_requests or []]

    assert tick() == tick() == []
    spent = platform.ledger.budget_summary("tiny")
    platform.ledger.set_budget("tiny", spent["spent_rdp"] * 1.2, spent["delta"], change=True)
    first = tick()
    platform.edit(lambda document: document.update(dua_tag="RESTRICTED"))
    second = tick()
    (platform.registry.folder("tiny") / "cohort.yaml").write_text("{", "utf-8")
    third = tick()
    assert tick() == []
    assert len(first) == len(second) == len(third) == 1
    assert len({*first, *second, *third}) == 3


def test_budgets_warn_at_four_fifths(platform: Any) -> None:
    """Claim: the asset shows what the ledger says, and its check warns once 80 % of a cap are spent."""

    def evaluate() -> tuple[dg.AssetCheckEvaluation, Any]:
        result = platform.definitions.resolve_job_def("reaudit").execute_in_process(
            instance=platform.instance,
            asset_selection=[dg.AssetKey(["governance", "budgets"])],
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
        [check] = [e for e in result.get_asset_check_evaluations() if e.check_name == "budget_left"]
        return check, result.output_for_node("governance__budgets")["domains"]

    check, [domain] = evaluate()
    spent = platform.ledger.budget_summary("tiny")
    assert (check.passed, domain["spent_rdp"], domain["level"]) == (True, spent["spent_rdp"], 0)
    platform.ledger.set_budget("tiny", spent["spent_rdp"] / 0.9, spent["delta"], change=True)
    check, [domain] = evaluate()
    assert (check.passed, check.severity, domain["level"]) == (False, dg.AssetCheckSeverity.WARN, 80)
    assert "tiny has spent 80 % of its cap or more" in str(check.description)


def test_one_daemon_a_home(platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: a second daemon waits while the first lives, and takes over when it is gone."""
    became = threading.Event()
    monkeypatch.setenv("SYNTH_HOME", str(platform.home.root))
    monkeypatch.setattr(daemon_module.os, "execv", lambda *_: became.set())
    first = os.open(platform.home.dagster / "daemon.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(first, fcntl.LOCK_EX)
    waiting = threading.Thread(target=daemon_module.become_daemon)
    waiting.start()
    assert not became.wait(0.5)
    os.close(first)
    assert became.wait(10)
    waiting.join()


def test_the_daemon_re_audits_by_itself(platform: Any, tmp_path: Path) -> None:
    """Claim (done-when 4): with nothing but `synth daemon` running on a home, the schedule launches the re-audit, and
    the register holds the published release with a finished look."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SYNTH_", "DAGSTER_"))}
    environment |= {"SYNTH_HOME": str(platform.home.root), CRON_VARIABLE: "* * * * *", "OPENBLAS_NUM_THREADS": "1"}
    register, log = home_register(platform.home), tmp_path / "daemon.log"
    assert looks(register) == 0
    with log.open("w") as stream:
        process = subprocess.Popen(
            [SYNTH, "daemon"], env=environment, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        until(lambda: looks(register) > 0 or process.poll() is not None, log)
        assert process.poll() is None, log.read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        until(lambda: not group_lives(process.pid), log)
    assert (register.releases()[PACKAGE].status, looks(register) >= 1) == ("PUBLISHED", True)
    runs = platform.instance.get_runs(filters=dg.RunsFilter(job_name="reaudit"))
    assert {run.tags.get("dagster/schedule_name") for run in runs} == {"nightly_reaudit"}
    assert json.loads((platform.home.released / "register.json").read_text("utf-8")) == {PACKAGE: "PUBLISHED"}


def looks(register: Any) -> int:
    return sum(release.looks for release in register.releases().values())


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def until(condition: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
