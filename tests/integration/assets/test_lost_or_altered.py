"""What a home lost or somebody altered: nothing is spent or published on it, and every command says so in words."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from synth_platform.cli.main import app

PACKAGE = "tiny-G0A-eps8"
Synth = Callable[..., Result]


@pytest.fixture
def synth(monkeypatch: pytest.MonkeyPatch, platform: Any) -> Synth:
    """`synth` in a copy of the finished home; no invocation may end in a traceback."""
    monkeypatch.setenv("SYNTH_HOME", str(platform.home.root))

    def invoke(*arguments: object) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    return invoke


def cut_tail(platform: Any) -> None:
    with sqlite3.connect(platform.home.root / "ledger.sqlite") as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("DELETE FROM ledger WHERE id > 2")
    connection.close()
    (platform.home.root / "ledger.sqlite.head").unlink()
    platform.ledger.table()


def cut_tail_and_anchored(platform: Any) -> None:
    cut_tail(platform)
    (first, second) = platform.ledger.table()
    anchor = {"rows": 2, "hash": second["hash"]}
    assert first["state"] == "budget"
    (platform.home.root / "ledger.sqlite.head").write_text(json.dumps(anchor), "ascii")


def no_ledger(platform: Any) -> None:
    for file in platform.home.root.glob("ledger.sqlite*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()


def no_anchor(platform: Any) -> None:
    (platform.home.root / "ledger.sqlite.head").unlink()


def broken_package_ledger(platform: Any) -> None:
    (platform.home.released / PACKAGE / "ledger.json").write_text("{", "utf-8")


def headless_package(platform: Any) -> None:
    file = platform.home.released / PACKAGE / "ledger.json"
    document = json.loads(file.read_text("utf-8"))
    del document["head_hash"]
    file.write_text(json.dumps(document), "utf-8")


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (cut_tail, "head anchor is missing"),
        (cut_tail_and_anchored, "that a release carries"),
        (no_ledger, "that a release carries"),
        (no_anchor, "synth ledger anchor"),
        (broken_package_ledger, PACKAGE),
        (headless_package, PACKAGE),
    ],
)
def test_what_verify_calls_broken_neither_spends_nor_publishes(
    synth: Synth, platform: Any, harm: Callable[[Any], None], named: str
) -> None:
    """Claim: whenever `verify` says BROKEN, `run` refuses with exit code 2, not a row and not a package is added, and
    what was decided before is not released either."""
    harm(platform)
    verified = synth("ledger", "verify")
    assert (verified.exit_code, verified.stdout.split(":")[0]) == (1, "BROKEN")
    assert named in verified.stdout
    rows, packages = platform.rows(), platform.packages()
    ran = synth("run", "tiny", "--generator", "G0A", "--epsilon", 1)
    assert ran.exit_code == 2
    assert "does not verify" in ran.stderr
    assert "synth_platform." not in ran.stderr
    assert not platform.run("G0A/release", check=False).success
    assert (platform.rows(), platform.packages()) == (rows, packages)


def test_a_lost_anchor_is_accepted_by_an_explicit_act(synth: Synth, platform: Any) -> None:
    """Claim: after `ledger anchor` the ledger is sound again; with a release's row gone the act is refused."""
    no_anchor(platform)
    assert synth("ledger", "anchor").exit_code == 0
    assert synth("ledger", "verify").exit_code == 0
    cut_tail(platform)
    refused = synth("ledger", "anchor")
    assert refused.exit_code == 2
    assert "that a release carries" in refused.stderr


def test_verify_looks_into_statistics_and_packages(synth: Synth, platform: Any) -> None:
    """Claim: an altered stored statistic, a lost one and an altered table of a package are named, each once."""
    statistics = sorted((platform.home.root / "restricted" / "statistic_releases").glob("*.safetensors"))
    statistics[0].write_bytes(statistics[0].read_bytes()[:-1] + b"x")
    statistics[1].unlink()
    table = platform.home.released / PACKAGE / "table.csv"
    table.write_text(table.read_text("utf-8").replace("S-", "T-"), "utf-8")
    verified = synth("ledger", "verify", "--json")
    assert verified.exit_code == 1
    report = json.loads(verified.stdout)
    found = [problem["what"] for problem in report["problems"]]
    assert (report["ok"], len(found)) == (False, 3)
    for name, word in ((statistics[0].name, "altered"), (statistics[1].name, "missing"), (PACKAGE, "table.csv")):
        [what] = [what for what in found if name in what]
        assert word in what


def test_the_same_rows_have_one_budget(synth: Synth, platform: Any) -> None:
    """Claim: a copy of the cohort under another name and another privacy domain is refused by the name of the domain
    that its rows are charged to, and the ledger gets no entry; in the first domain the copy may spend."""
    folder = platform.home.root / "copy"
    folder.mkdir()
    document = yaml.safe_load((platform.registry.folder("tiny") / "cohort.yaml").read_text("utf-8"))
    document["name"] = "twin"
    for domain in ("fresh", "tiny"):
        document["privacy"]["domain"] = domain
        (folder / "cohort.yaml").write_text(yaml.safe_dump(document), "utf-8")
        if domain == "fresh":
            assert synth("cohort", "add", folder).exit_code == 0
        ran = synth("run", "twin", "--generator", "G0A", "--epsilon", 0.5)
        entries = [row for row in platform.rows() if row["cohort"] == "twin"]
        if domain == "fresh":
            assert (ran.exit_code, entries) == (2, [])
            assert "ROWS_OF_OTHER_DOMAIN" in ran.stderr
            assert "'tiny'" in ran.stderr
        else:
            assert {row["domain"] for row in entries} == {"tiny"}


@pytest.mark.parametrize("arguments", [("decisions",), ("run", "tiny", "--generator", "G0A")])
def test_a_lost_key_is_not_made_anew_in_passing(synth: Synth, platform: Any, arguments: tuple[str, ...]) -> None:
    """Claim: with entries in the ledger a missing key is an error that says what to do; `ledger new-key` is the act."""
    key = platform.home.root / "restricted" / "fingerprint.key"
    key.unlink()
    rows = platform.rows()
    refused = synth(*arguments)
    assert refused.exit_code == 2
    assert "restore it from a backup" in refused.stderr
    assert (key.exists(), platform.rows()) == (False, rows)
    assert synth("ledger", "new-key").exit_code == 0
    assert len(key.read_bytes()) == 32
    again = synth("ledger", "new-key")
    assert again.exit_code == 2
    assert "is there" in again.stderr


def altered_decision(platform: Any) -> str:
    [file] = platform.folder("G0/decision").glob("*document.json")
    file.write_text(file.read_text("utf-8").replace("BLOCKED", "ELIGIBLE_CONFIRMED"), "utf-8")
    return file.name


def open_key(platform: Any) -> str:
    (platform.home.root / "restricted" / "fingerprint.key").chmod(0o644)
    return "run chmod 600 on it"


def broken_register(platform: Any) -> str:
    platform.home.cohorts.write_text("{", "utf-8")
    return "cohorts.json"


def broken_dagster(platform: Any) -> str:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{platform.home.dagster}/storage/history/runs.db{suffix}").unlink(missing_ok=True)
    (platform.home.dagster / "storage" / "history" / "runs.db").write_text("x" * 5000)
    return str(platform.home.dagster)


def broken_ledger_file(platform: Any) -> str:
    no_ledger(platform)
    (platform.home.root / "ledger.sqlite").write_text("x" * 5000)
    return "ledger.sqlite"


@pytest.mark.parametrize(
    ("harm", "arguments"),
    [
        (altered_decision, ["decisions"]),
        (open_key, ["decisions"]),
        (open_key, ["run", "tiny", "--generator", "G0A"]),
        (broken_register, ["cohort", "list"]),
        (broken_register, ["decisions"]),
        (broken_register, ["run", "tiny"]),
        (broken_dagster, ["run", "tiny"]),
        (broken_dagster, ["lineage", PACKAGE]),
        (broken_ledger_file, ["ledger", "verify"]),
        (broken_ledger_file, ["ledger", "show"]),
    ],
)
def test_broken_files_are_exit_code_2(
    synth: Synth, platform: Any, harm: Callable[[Any], str], arguments: list[str]
) -> None:
    """Claim: each is answered with exit code 2 and the file's name or the remedy, without class names."""
    named = harm(platform)
    result = synth(*arguments)
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert "Error" not in result.stderr


def test_a_cap_is_changed_by_command(synth: Synth, platform: Any) -> None:
    """Claim: the refusal of an edited cap names the command; that command changes it, and `verify` notes it."""
    platform.edit(lambda document: document["privacy"].update(budget={"epsilon": 30.0, "delta": 1e-5}))
    refused = synth("run", "tiny", "--generator", "G0A")
    assert refused.exit_code == 2
    command = "ledger cap tiny --epsilon 30 --delta 1e-05"
    assert f"synth {command}" in refused.stderr
    assert synth(*command.split()).exit_code == 0
    assert platform.ledger.budget("tiny").epsilon == 30
    verified = synth("ledger", "verify")
    assert verified.exit_code == 0
    assert "note: cap of domain tiny changed from epsilon 24" in verified.stdout


def test_a_port_in_use_is_exit_code_2(synth: Synth) -> None:
    """Claim: `ui` says so before it starts anything."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = synth("ui", "--port", port)
    assert result.exit_code == 2
    assert f"port {port}" in result.stderr
