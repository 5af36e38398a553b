"""A process that dies between reserving and committing: spent, explained by the next run, and completed."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

DIES_AFTER_DRAWING = """
import os, signal, sys
from pathlib import Path
import dagster as dg
from resources.home import SynthHome
from synth_platform.definitions import PLAN_JOB, build_definitions
from synth_platform.privacy.statistic_store import StatisticStore

def die(self, release):
    if release.code == "G0A_MEANS":
        os.kill(os.getpid(), signal.SIGKILL)
    return save(self, release)

save, StatisticStore.save = StatisticStore.save, die
home = SynthHome(Path(sys.argv[1])).prepare()
instance = home.instance()
instance.add_dynamic_partitions("plan", ["eps1"])
build_definitions().resolve_job_def(PLAN_JOB).execute_in_process(
    instance=instance,
    partition_key=dg.MultiPartitionKey({"cohort": "tiny", "plan": "eps1"}),
    asset_selection=[dg.AssetKey(["statistics", "G0A"])],
)
"""


def test_the_next_run_explains_and_completes(platform: Any) -> None:
    """Claim: SIGKILL after the noise was drawn and before it was stored leaves a reservation that counts; the next run
    draws anew under another entry, says so in the event log, replays what was committed, and is released like any."""
    before = platform.ledger.budget_summary("tiny")
    died = subprocess.run(
        [sys.executable, "-c", DIES_AFTER_DRAWING, str(platform.home.root)], capture_output=True, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    between = platform.ledger.budget_summary("tiny")
    assert (between["reserved"], between["committed"]) == (1, before["committed"] + 1)
    [lost] = [entry for entry in platform.ledger.entries() if entry.state == "reserved"]
    [counted] = [e for e in platform.ledger.entries() if e.code == "G0A_COUNTS" and e.run_id == lost.run_id]

    result = platform.run("statistics/G0A", plan="eps1")
    after = platform.ledger.budget_summary("tiny")
    entries = platform.metadata("statistics/G0A", plan="eps1")["ledger_entries"]
    assert (after["reserved"], after["committed"]) == (1, between["committed"] + len(entries) - 1)
    assert counted.entry_id in entries
    assert lost.entry_id not in entries
    assert after["spent_rdp"] > between["spent_rdp"] > before["spent_rdp"]
    said = [entry.user_message for entry in platform.instance.all_logs(result.run_id)]
    assert any(lost.entry_id in message and "stays spent and this run draws anew" in message for message in said)
    assert platform.ledger.verify().ok
