"""Published lists looked at again: a finished look without attacks, and what recalls one."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assets.reaudit import reaudit_job
from resources.home import HomeResource
from resources.register import Round, home_register, reaudit_home
from synth_platform.cli.main import app
from synth_platform.release.register import Release

SUBTYPE = "subtype-mu3-alpha0.05"
PACKAGE = f"tiny-discovery-{SUBTYPE}"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def look(lists: Any) -> Round:
    """What the job does, without its events."""
    home = HomeResource(root=str(lists.home.root))
    return reaudit_home(home, home_register(lists.home), lists.registry, lists.home.ledger_url)


def released(lists: Any) -> dict[str, Release]:
    return home_register(lists.home).releases()


def package(lists: Any) -> Path:
    return Path(lists.home.released / PACKAGE)


def synth(lists: Any, *arguments: str) -> Any:
    environment = {"SYNTH_HOME": str(lists.home.root)}
    return CliRunner().invoke(app, arguments, env=environment, catch_exceptions=False)


def test_a_sound_list_stays_published(lists: Any) -> None:
    """Claim (the others' control): a look is finished, with no evidence for or against, as there is nothing to attack;
    no list is hindered or taken for a package that nobody released; nothing is spent and no package touched."""
    rows, before = lists.rows(), {f.name: f.read_bytes() for f in package(lists).iterdir()}
    result = lists.definitions.resolve_job_def(reaudit_job.name).execute_in_process(
        instance=lists.instance, run_config=QUIET, raise_on_error=False
    )
    assert result.success, lists.failure(result)
    assert all(evaluation.passed for evaluation in result.get_asset_check_evaluations())
    again = look(lists)
    assert (again.recalled, again.standing_recalls, again.hindered) == ({}, {}, {})
    stands = {name: (release.status, release.looks, release.findings) for name, release in released(lists).items()}
    assert stands == dict.fromkeys(lists.packages(), ("PUBLISHED", 2, ()))
    with sqlite3.connect(lists.home.root / "restricted" / "register.sqlite") as connection:
        finished = connection.execute("SELECT log_e FROM release_looks WHERE state = 'finished'").fetchall()
    connection.close()
    assert [json.loads(log_e) for (log_e,) in finished] == [{}] * 6
    assert lists.rows() == rows
    assert {f.name: f.read_bytes() for f in package(lists).iterdir()} == before


def alter_file(lists: Any) -> None:
    file = package(lists) / "table.csv"
    file.write_text(file.read_text("utf-8").replace("true", "false"), "utf-8")


def forge_checksums(lists: Any) -> None:
    """Another picture with checksums to match: whole in itself, but not what was published."""
    shutil.copy(lists.home.released / "tiny-discovery-smoking-mu3-alpha0.05" / "discoveries.png", package(lists))
    files = sorted(file for file in package(lists).iterdir() if file.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (package(lists) / "SHA256SUMS").write_text("".join(lines), "utf-8")


def block(lists: Any) -> None:
    decision = lists.read("discovery/decision", plan=SUBTYPE)
    blocked = decision | {"decision": "BLOCKED", "reasons": ["SCHEMA_VIOLATION"]}
    lists.overwrite("discovery/decision", blocked, plan=SUBTYPE)


def longer(lists: Any) -> None:
    """The stored list calls everything a discovery, which is not what was published."""
    document = lists.read("discovery/discoveries", plan=SUBTYPE)
    for line in document["list"]:
        line["discovered"] = True
    lists.overwrite("discovery/discoveries", document, plan=SUBTYPE)


def cheaper(lists: Any) -> None:
    """The stored e-values claim less noise than was paid for; list and decision are as published."""
    document = lists.read("discovery/private_e_values", plan=SUBTYPE)
    lists.overwrite("discovery/private_e_values", document | {"scale": document["scale"] / 2}, plan=SUBTYPE)


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (alter_file, "CHECKSUMS"),
        (forge_checksums, "CHECKSUMS"),
        (lambda lists: shutil.rmtree(package(lists)), "WITHDRAWN"),
        (block, "DECISION"),
        (longer, "TABLE"),
        (cheaper, "AUDIT"),
    ],
    ids=["file", "forged checksums", "withdrawn", "decision", "list", "e-values"],
)
def test_a_fault_recalls_the_list_and_no_other(lists: Any, harm: Callable[[Any], object], code: str) -> None:
    """Claim: one fault, one code; the public file says RECALLED of this list alone, and its next release is refused."""
    harm(lists)
    assert look(lists).recalled == {PACKAGE: (code,)}
    statuses = json.loads((lists.home.released / "register.json").read_text("utf-8"))
    assert statuses == {name: "RECALLED" if name == PACKAGE else "PUBLISHED" for name in released(lists)}
    assert look(lists).standing_recalls == ({} if code == "WITHDRAWN" else {PACKAGE: (code,)})


def withdraw_agreement(lists: Any) -> None:
    lists.edit(lambda document: document.update(dua_tag="RESTRICTED"))


def tamper(lists: Any) -> None:
    with sqlite3.connect(lists.home.root / "ledger.sqlite") as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("UPDATE ledger SET scale = scale * 2 WHERE id = 2")
    connection.close()


@pytest.mark.parametrize(("harm", "code"), [(withdraw_agreement, "DUA"), (tamper, "LEDGER")], ids=["dua", "ledger"])
def test_what_all_rest_on_recalls_all(lists: Any, harm: Callable[[Any], None], code: str) -> None:
    harm(lists)
    assert look(lists).recalled == dict.fromkeys(lists.packages(), (code,))


def test_a_list_under_a_lost_contrast_is_left_open(lists: Any) -> None:
    """Claim: with its contrast struck out of cohort.yaml the look stays open, by name, and a person decides."""
    lists.edit(lambda document: document["discovery"]["contrasts"].pop("subtype"))
    found = look(lists)
    assert found.recalled == {}
    assert set(found.hindered) == {PACKAGE}
    assert released(lists)[PACKAGE].status == "PUBLISHED"


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (lambda lists: shutil.rmtree(lists.folder("discovery/audit", plan=SUBTYPE)), "NOT_AUDITED"),
        (lambda lists: shutil.rmtree(lists.folder("discovery/decision", plan=SUBTYPE)), "ARTEFACTS_UNREADABLE"),
        (lambda lists: shutil.rmtree(lists.folder("discovery/private_e_values", plan=SUBTYPE)), "ARTEFACTS_UNREADABLE"),
    ],
    ids=["audit", "decision", "e-values"],
)
def test_what_cannot_be_read_leaves_the_look_open(lists: Any, harm: Callable[[Any], object], code: str) -> None:
    harm(lists)
    found = look(lists)
    assert (found.recalled, found.hindered) == ({}, {PACKAGE: (code,)})
    assert (released(lists)[PACKAGE].status, released(lists)[PACKAGE].looks) == ("PUBLISHED", 0)


def test_a_recalled_list_does_not_leave_again(lists: Any) -> None:
    """Claim: neither under its name nor, as the same list, under another."""
    withdraw_agreement(lists)
    look(lists)
    lists.edit(lambda document: document.update(dua_tag="RELEASE_REVIEWED"))
    lists.withdraw()
    result = lists.discover("discovery/release", plan=SUBTYPE, check=False)
    assert f"RECALLED: release {PACKAGE} was recalled (DUA)" in lists.failure(result)
    assert lists.packages() == []


def test_from_a_shell(lists: Any) -> None:
    """Claim: `synth releases` lists them without a figure of a look, `synth reaudit` looks now: exit code 0 while
    nothing is wrong, 1 with the reason in words when something is."""
    listed = json.loads(synth(lists, "releases", "--json").stdout)
    assert [(one["name"], one["status"], one["looks"]) for one in listed] == [
        (name, "PUBLISHED", 0) for name in lists.packages()
    ]
    assert not any(isinstance(value, float) for one in listed for value in one.values())
    done = synth(lists, "reaudit", "--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["recalled"], document["hindered"]) == (0, {}, {})
    block(lists)
    done = synth(lists, "reaudit")
    assert done.exit_code == 1
    assert f"{PACKAGE}: the standing decision on its table is BLOCKED (DECISION)" in done.stdout
    assert "RECALLED" in synth(lists, "releases").stdout
