"""`synth curve`: the files it leaves and where, what it says, and that nothing is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from synth_platform.cli.main import app
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.sources.virtual import draw_cohort
from synth_platform.trials import curve

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
TRAIN = 83  # a number that stands nowhere else


def synth(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SYNTH_ARTEFACTS", "SYNTH_LEDGER_URL", "DAGSTER_HOME", "SYNTH_DAGSTER_STORAGE"):
        monkeypatch.setenv(name, "")  # so that what `prepare` sets is put back
        monkeypatch.delenv(name)
    monkeypatch.setenv("SYNTH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(curve, "QUICK", curve.Grid(epsilons=(1.0, 8.0), draws=2, tables=1, shares=(1.0,)))
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small cohort of Parquet tables, as a steward brings it."""
    document: dict[str, Any] = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))
    document["privacy"]["n_ref"] = TRAIN
    document["synthetic"]["rows"] = 80
    document["source"]["options"] |= {"train": TRAIN, "holdout": 20, "test": 61, "public": 100}
    for modality, features in (("expression", 4), ("methylation", 3)):
        document[modality]["panel"] = document[modality]["panel"][:features]
    tables = draw_cohort(CohortSpec.model_validate(document))
    cohort = tmp_path / "cohort"
    cohort.mkdir()
    for name, frame in tables:
        frame.write_parquet(cohort / f"{name}.parquet")
    document["generators"] = ["G0", "G0A"]
    document["source"] = {"reader": "tables", "files": {name: f"{name}.parquet" for name, _ in tables}}
    (cohort / "cohort.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return cohort


def test_table_and_picture_go_to_the_restricted_zone_and_nothing_is_spent(home: Path, folder: Path) -> None:
    said = synth("curve", folder, "--quick")
    assert said.exit_code == 0, said.output
    place = home / "restricted" / "curve"
    assert sorted(path.name for path in place.iterdir()) == [f"curve-virtual.{end}" for end in ("csv", "json", "png")]
    assert str(place / "curve-virtual.png") in said.stdout.replace("\n", "")
    assert "restricted zone" in said.stdout
    assert "no budget was spent" in said.stdout.replace("\n", " ")
    assert not (home / "ledger.sqlite").exists()
    assert list((home / "released").iterdir()) == []
    assert "draw 2 of 2" in said.stderr
    assert str(TRAIN) not in said.stderr
    table = pl.read_csv(place / "curve-virtual.csv")
    assert set(table["generator"]) == {"G0", "G0A", "S_PUBLIC"}
    assert set(table["epsilon"].drop_nulls()) == {1.0, 8.0, curve.CEILING}
    assert table["share"].to_list() == [1.0] * table.height


def test_json_is_the_table_and_nothing_else(home: Path, folder: Path, tmp_path: Path) -> None:
    said = synth("curve", folder, "--quick", "--json", "--out", tmp_path / "elsewhere")
    printed = json.loads(said.stdout)
    assert printed == json.loads((tmp_path / "elsewhere" / "curve-virtual.json").read_text(encoding="utf-8"))
    assert len(printed) == 7 * 4
    assert not (home / "restricted" / "curve").exists()


def test_only_registered_generators_are_tried_and_the_same_command_gives_the_same_table(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    document = yaml.safe_load((folder / "cohort.yaml").read_text(encoding="utf-8"))
    (folder / "cohort.yaml").write_text(yaml.safe_dump(document | {"generators": ["G0"]}), encoding="utf-8")
    first, second = (synth("curve", folder, "--quick", "--json", "--out", tmp_path / name) for name in "ab")
    assert first.stdout == second.stdout
    assert {row["generator"] for row in json.loads(first.stdout)} == {"G0", "S_PUBLIC"}


def test_what_is_no_cohort_is_said_so(home: Path) -> None:
    said = synth("curve", "nowhere")
    assert said.exit_code == 2
    assert "not registered" in said.stderr


def test_a_file_is_no_folder_to_write_to(home: Path, folder: Path) -> None:
    said = synth("curve", folder, "--out", folder / "cohort.yaml")
    assert said.exit_code == 2
    assert "--out takes a folder" in said.stderr


def test_a_cohort_that_the_contract_refuses_is_not_tried(home: Path, folder: Path) -> None:
    clinical = pl.read_parquet(folder / "clinical.parquet").with_columns(pl.lit("Jane").alias("ward"))
    clinical.write_parquet(folder / "clinical.parquet")
    said = synth("curve", folder, "--quick")
    assert said.exit_code == 2
    assert "synth cohort check" in said.stderr
    assert "Jane" not in said.output
