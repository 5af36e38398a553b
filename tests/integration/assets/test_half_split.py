"""The half-split audit through Dagster: a step a block, resumable after a kill, words only in what people see."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from synth_platform.trials.half_split import BLOCK

AUDIT = "G0/half_split_audit"
REPETITIONS = 2 * BLOCK + 2

RUNS = """
import sys
from pathlib import Path
import dagster as dg
from resources.home import SynthHome
from synth_platform.definitions import PLAN_JOB, build_definitions

home = SynthHome(Path(sys.argv[1])).prepare()
build_definitions().resolve_job_def(PLAN_JOB).execute_in_process(
    instance=home.instance(),
    partition_key=dg.MultiPartitionKey({"cohort": "tiny", "plan": "eps8"}),
    asset_selection=[dg.AssetKey(["G0", "half_split_audit"])],
)
"""


def register(platform: Any) -> None:
    platform.edit(lambda d: d["gates"].update(membership_design="half_split", repetitions=REPETITIONS))


def blocks(platform: Any) -> dict[str, tuple[int, int]]:
    """Finished blocks: inode and time of the last change."""
    folder = Path(str(platform.home.restricted)) / "half_split_blocks" / "G0" / "tiny" / "eps8"
    return {f.name: (f.stat().st_ino, f.stat().st_mtime_ns) for f in folder.glob("*.safetensors")}


def test_a_cohort_without_the_design_has_a_document_all_the_same(platform: Any) -> None:
    """Claim: `direct` costs no training, passes its checks, and says that the audit is not registered."""
    result = platform.run(AUDIT)
    document = platform.read(AUDIT)
    assert document["status"] == document["summary"]["status"] == "NOT_REGISTERED"
    assert document["registration"] == platform.spec().registration
    assert blocks(platform) == {}
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert {name: check.passed for name, check in checks.items()} == {"schema": True, "verdict": True}
    assert "NOT_REGISTERED" in checks["verdict"].description


def test_a_killed_audit_goes_on(platform: Any) -> None:
    """Claim: SIGKILL after the first block; the next run computes the others and no block twice, and its document is
    that of a run which nobody disturbed, bit for bit. No figure of it is in metadata, checks or log."""
    register(platform)
    process = subprocess.Popen([sys.executable, "-c", RUNS, str(platform.home.root)], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not blocks(platform) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    before = blocks(platform)
    assert 1 <= len(before) < 3

    result = platform.run(AUDIT)
    after = blocks(platform)
    assert len(after) == 3
    assert before.items() <= after.items()
    logs = platform.instance.all_logs(result.run_id)
    said = [entry.user_message for entry in logs if entry.user_message.startswith("block ")]
    assert sorted(m.split(": ")[1] for m in said) == ["computed"] * (3 - len(before)) + ["stored already"] * len(before)
    document = platform.read(AUDIT)
    stored = document["evidence"]
    assert document["status"] in ("PASS_CONFIRMED", "PASS_POINT", "FAIL")
    assert len(stored["members"]) == stored["repetitions"] == REPETITIONS

    public = json.dumps([str(entry.dagster_event) + entry.user_message for entry in logs])
    figures = [attack[name] for attack in document["summary"]["attacks"].values() for name in ("auroc", "upper")]
    assert all(f"{figure:.6f}" not in public for figure in figures if figure < 1)

    for file in after:
        (Path(str(platform.home.restricted)) / "half_split_blocks" / "G0" / "tiny" / "eps8" / file).unlink()
    platform.run(AUDIT)
    assert platform.read(AUDIT) == document


def test_an_altered_block_is_an_error_by_name(platform: Any) -> None:
    """Claim: a block whose scores were changed is refused by the name of its file, without a value of it."""
    register(platform)
    platform.run(AUDIT)
    folder = Path(str(platform.home.restricted)) / "half_split_blocks" / "G0" / "tiny" / "eps8"
    victim = sorted(folder.glob("*.safetensors"))[0]
    content = bytearray(victim.read_bytes())
    content[-3] ^= 1
    victim.write_bytes(bytes(content))
    result = platform.run(AUDIT, check=False)
    assert not result.success
    assert f"{victim.name}: the block was altered" in platform.failure(result)


@pytest.mark.parametrize("floor", [0.5])
def test_too_few_repetitions_are_said(platform: Any, floor: float) -> None:
    """Claim: an audit whose interval cannot decide says LOW power, and is no pass."""

    def change(document: dict[str, Any]) -> None:
        document["gates"] |= {
            "membership_design": "half_split",
            "repetitions": 8,
            "membership_limit": 0.51,
            "power_floor": floor,
        }

    platform.edit(change)
    result = platform.run(AUDIT)
    [verdict] = [c for c in result.get_asset_check_evaluations() if c.check_name == "verdict"]
    assert not verdict.passed
    assert "LOW power" in verdict.description
    assert platform.read(AUDIT)["summary"]["required_repetitions"] > 8
