"""A cohort that breaks the contract stops at the door, and says why without showing a cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from typer.testing import CliRunner

from synth_platform.cli.main import app
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.sources.virtual import draw_cohort

CELL = 9999.125  # above the registered maximum of `marker`


@pytest.fixture
def rejected(document: dict[str, Any], tmp_path: Path) -> Path:
    """A folder of Parquet tables with one cell out of its range in the private arm."""
    folder = tmp_path / "rejected_cohort"
    folder.mkdir()
    tables = draw_cohort(CohortSpec.model_validate(document))
    marker = [CELL, *tables.clinical["marker"].to_list()[1:]]
    clinical = tables.clinical.with_columns(pl.Series("marker", marker, dtype=pl.Float64))
    for name, frame in tables.map(lambda name, frame: clinical if name == "clinical" else frame):
        frame.write_parquet(folder / f"{name}.parquet")
    document["generators"] = ["G0", "G0A", "S_COPY"]
    document["source"] = {"reader": "tables", "files": {name: f"{name}.parquet" for name, _ in tables}}
    (folder / "cohort.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder


def test_nothing_follows_a_rejected_cohort(new_platform: Any, rejected: Path) -> None:
    """Claim: a refused cohort materialises its rejections and nothing else, fails its `contract` check and its run, and
    a plan of it finds nothing to work with."""
    platform = new_platform()
    platform.add(rejected)
    result = platform.run(plan=None, check=False)
    assert not result.success
    materialised = {event.asset_key.to_user_string() for event in result.get_asset_materialization_events()}
    assert materialised == {"cohort/rejections"}
    [evaluation] = result.get_asset_check_evaluations()
    assert (evaluation.check_name, evaluation.passed, evaluation.blocking) == ("contract", False, True)
    rejections = platform.read("cohort/rejections", plan=None)
    assert rejections.select("table", "column", "count").rows() == [("clinical", "marker", 1)]
    assert not platform.run(check=False).success
    assert platform.rows() == []
    for run in platform.instance.get_runs():
        for entry in platform.instance.all_logs(run.run_id):
            assert str(CELL) not in entry.to_json()  # four digits alone stand in a time stamp now and then


def test_synth_run_says_what_was_refused(rejected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: `synth run` on it exits with 2 and names code, table and column on stderr, no cell, no traceback."""
    monkeypatch.setenv("SYNTH_HOME", str(tmp_path / "home"))
    shell = CliRunner()
    assert shell.invoke(app, ["cohort", "add", str(rejected)]).exit_code == 0
    result = shell.invoke(app, ["run", "tiny"])
    assert result.exit_code == 2
    [finding] = json.loads(shell.invoke(app, ["cohort", "check", str(rejected), "--json"]).stdout)["rejections"]
    assert f"{finding['code']} clinical.marker" in result.stderr
    assert "9999" not in result.output
    assert "Traceback" not in result.output
