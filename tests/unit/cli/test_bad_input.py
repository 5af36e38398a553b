"""What a steward gets wrong: exit code 2, the field or file by name, what to do, and never a traceback or a cell."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from synth_platform.cli import ledger_commands, ui
from synth_platform.cli.main import app
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.sources.virtual import draw_cohort

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
Synth = Callable[..., Result]


@pytest.fixture
def synth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Synth:
    """`synth` with a home of its own."""
    for name in ("SYNTH_HOME", "DAGSTER_HOME", "SYNTH_DAGSTER_STORAGE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))

    def invoke(*arguments: object) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    return invoke


@pytest.fixture
def document() -> dict[str, Any]:
    """cohort.yaml of a small virtual cohort."""
    document: dict[str, Any] = yaml.safe_load(VIRTUAL.read_text(encoding="utf-8"))
    del document["discovery"]  # its sizes are those of the whole cohort
    document["source"]["options"] |= {"train": 30, "holdout": 10, "test": 10, "public": 40}
    return document


@pytest.fixture
def folder(document: dict[str, Any], tmp_path: Path) -> Path:
    """The same cohort as a steward brings it: Parquet tables and a cohort.yaml that names them."""
    folder = tmp_path / "cohort"
    folder.mkdir()
    tables = draw_cohort(CohortSpec.model_validate(document))
    for name, frame in tables:
        frame.write_parquet(folder / f"{name}.parquet")
    document["generators"] = ["G0A", "S_COPY"]
    document["source"] = {"reader": "tables", "files": {name: f"{name}.parquet" for name, _ in tables}}
    (folder / "cohort.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder


def refused(result: Result, *named: str) -> None:
    assert result.exit_code == 2, result.output
    for word in named:
        assert word in result.stderr


def test_a_good_folder_is_accepted(synth: Synth, folder: Path) -> None:
    """Claim (the others' control): the folder is accepted as it is, by its path or by its cohort.yaml."""
    for path in (folder, folder / "cohort.yaml"):
        assert json.loads(synth("cohort", "check", path, "--json").stdout)["accepted"] is True


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d["privacy"].update(n_ref=0), ["privacy.n_ref"]),
        (lambda d: d.update(plan={}), ["plan: Extra inputs are not permitted"]),
        (lambda d: d["plans"].update(eps1={"epsilon": -1, "delta": 1e-5}), ["plans.eps1.epsilon"]),
        (lambda d: d.pop("outcome"), ["outcome: Field required"]),
        (lambda d: d["clinical"].append({"name": "patient_name", "kind": "binary"}), ["clinical", "patient_name"]),
        (lambda d: d.update(generators=["G7"]), ["generators.0"]),
    ],
)
def test_a_wrong_field_is_named(
    synth: Synth, folder: Path, document: dict[str, Any], change: Callable[[Any], Any], named: list[str]
) -> None:
    """Claim: add and check both name the file and the field."""
    change(document)
    (folder / "cohort.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    for command in ("add", "check"):
        refused(synth("cohort", command, folder), "cohort.yaml", *named)


@pytest.mark.parametrize("content", [b"name: [unclosed", b"\xff\xfe\x00binary", b"- a list", b""])
def test_a_file_that_is_no_cohort_is_refused(synth: Synth, folder: Path, content: bytes) -> None:
    """Claim: broken YAML, binary content, a list and an empty file are all answered with the file's name."""
    (folder / "cohort.yaml").write_bytes(content)
    for command in ("add", "check"):
        refused(synth("cohort", command, folder), "cohort.yaml")


def test_a_folder_without_a_cohort_is_refused(synth: Synth, tmp_path: Path) -> None:
    """Claim: an empty or missing folder says what a cohort is."""
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "nowhere"):
        for command in ("add", "check"):
            refused(synth("cohort", command, path), "a cohort is a folder with a cohort.yaml in it")


def pdf(folder: Path) -> None:
    (folder / "clinical.parquet").write_bytes(b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n%%EOF\n")


def missing(folder: Path) -> None:
    (folder / "clinical.parquet").unlink()


def truncated(folder: Path) -> None:
    file = folder / "clinical.parquet"
    file.write_bytes(file.read_bytes()[:200])


def without_key(folder: Path) -> None:
    pl.read_parquet(folder / "clinical.parquet").rename({"row_key": "id"}).write_parquet(folder / "clinical.parquet")


def a_folder(folder: Path) -> None:
    missing(folder)
    (folder / "clinical.parquet").mkdir()


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (pdf, "not readable as Parquet"),
        (missing, "does not exist"),
        (truncated, "not readable as Parquet"),
        (without_key, "no column 'row_key'"),
        (a_folder, "does not exist"),
    ],
)
def test_a_wrong_file_is_named(synth: Synth, folder: Path, harm: Callable[[Path], None], named: str) -> None:
    """Claim: a file that is none of what it says is refused by its name, with what it should be."""
    harm(folder)
    refused(synth("cohort", "check", folder), "clinical.parquet", named)


def test_a_refused_cohort_shows_no_cell(synth: Synth, folder: Path) -> None:
    """Claim: findings carry code, table, column and count; the offending cell and key appear nowhere."""
    clinical = pl.read_parquet(folder / "clinical.parquet")
    ages = [777, *clinical["age"].to_list()[1:]]
    clinical.with_columns(pl.Series("age", ages)).write_parquet(folder / "clinical.parquet")
    plain, found = synth("cohort", "check", folder), synth("cohort", "check", folder, "--json")
    assert (plain.exit_code, found.exit_code) == (2, 2)
    document = json.loads(found.stdout)
    assert document["accepted"] is False
    assert [(r["table"], r["column"], r["count"]) for r in document["rejections"]] == [("clinical", "age", 1)]
    for word in ("777", clinical["row_key"][0]):
        assert word not in plain.output + found.output


def test_a_name_that_is_taken_is_refused(synth: Synth, folder: Path, tmp_path: Path) -> None:
    """Claim: a second folder under the same cohort name is refused with the place of the first."""
    assert synth("cohort", "add", folder).exit_code == 0
    other = tmp_path / "other"
    folder.rename(other)
    folder.mkdir()
    refused(synth("cohort", "add", other), "'virtual' is registered already", str(folder))


def test_a_registered_cohort_that_moved_away_is_named(synth: Synth, folder: Path, tmp_path: Path) -> None:
    """Claim: a folder that is gone since it was registered is named by every command that needs it."""
    assert synth("cohort", "add", folder).exit_code == 0
    folder.rename(tmp_path / "moved")
    refused(synth("run", "virtual"), str(folder / "cohort.yaml"))
    listed, document = synth("cohort", "list"), json.loads(synth("cohort", "list", "--json").stdout)
    assert listed.exit_code == 0
    assert str(folder / "cohort.yaml") in listed.stderr
    assert [(item["cohort"], "no such file" in item["error"]) for item in document] == [("virtual", True)]


def test_an_empty_home_is_no_error(synth: Synth) -> None:
    """Claim: every command that only looks works before anything was done, in words and in JSON."""
    for arguments in (
        ["cohort", "list"],
        ["decisions"],
        ["ledger", "show"],
        ["ledger", "budget"],
        ["ledger", "verify"],
    ):
        assert synth(*arguments).exit_code == 0
        json.loads(synth(*arguments, "--json").stdout)
    refused(synth("lineage", "virtual-G0A-eps1"), "releases are none yet")


def test_a_command_that_does_not_exist_is_refused(synth: Synth) -> None:
    """Claim: an unknown command or option is a usage error."""
    for arguments in (["rnu"], ["run"], ["ledger", "shwo"], ["run", "virtual", "--espilon", "1"]):
        assert synth(*arguments).exit_code == 2


def test_the_ui_leaves_out_a_cohort_that_is_gone(
    synth: Synth, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claim: one lost folder is a warning, the server starts all the same."""
    started: list[list[str]] = []
    monkeypatch.setattr(ui.subprocess, "Popen", lambda command, **_: started.append(command) or Mock())
    monkeypatch.setattr(ui.signal, "signal", lambda *_: None)
    monkeypatch.setattr(ui.os, "wait", lambda: (0, 0))
    assert synth("cohort", "add", folder).exit_code == 0
    folder.rename(tmp_path / "moved")
    result = synth("ui", "--read-only", "--port", 0)
    assert result.exit_code == 0
    assert "warning: cohort 'virtual'" in result.stderr
    assert str(folder / "cohort.yaml") in result.stderr
    assert [command[2] for command in started] == ["dagster_webserver", "synth_platform.cli.daemon"]


def test_the_version_is_said(synth: Synth) -> None:
    """Claim: `--version` needs no command and no home."""
    assert synth("--version").stdout.strip() == f"synth {version('synth-platform')}"


def test_a_fault_of_the_platform_keeps_its_traceback(synth: Synth, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: only errors of our own classes become a message; a KeyError in our code is not bad input."""
    monkeypatch.setattr(ledger_commands, "open_ledger", lambda: {}["nothing"])
    with pytest.raises(AssertionError, match="nothing"):
        synth("ledger", "show")
