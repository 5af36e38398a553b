"""`synth audit` recomputes every stored list, beside the tables of the same home and in the same form."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from resources.evidence import judged_lists
from synth_platform.cli.main import app

PLANS = tuple(f"{name}-mu3-alpha0.05" for name in ("smoking", "subtype", "survival"))
SUBTYPE = PLANS[1]


def synth_audit(lists: Any, *arguments: str) -> Any:
    environment = {"SYNTH_HOME": str(lists.home.root)}
    return CliRunner().invoke(app, ["audit", *arguments], env=environment, catch_exceptions=False)


def reports(lists: Any, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = synth_audit(lists, *arguments, "--json")
    return done.exit_code, {report["scope"]["plan"]: report for report in json.loads(done.stdout)}


def test_every_list_is_audited(discovered: Any) -> None:
    """Claim: by name and without one, each list passes, is the one that its stored audit saw, and nothing of the home
    is changed by looking; people get a table a list."""
    assert judged_lists(discovered.home, "tiny") == [("discovery", plan) for plan in PLANS]
    rows = discovered.rows()
    for arguments in ((), ("tiny",)):
        code, found = reports(discovered, *arguments)
        assert (code, tuple(found)) == (0, PLANS)
        for report in found.values():
            assert (report["status"], report["failed"], report["stored_report"], report["others"]) == (
                "PASS", 0, "CURRENT", [],
            )  # fmt: skip
            assert (report["scope"]["stage"], report["scope"]["cohort"]) == ("discovery", "tiny")
            assert report["passed"] > 100
    assert discovered.rows() == rows
    said = synth_audit(discovered)
    assert said.exit_code == 0
    for plan in PLANS:
        assert f"tiny · discovery · {plan}: PASS" in said.stdout


def change(name: str, **fields: Any) -> Callable[[Any], None]:
    def harm(lists: Any) -> None:
        document = lists.read(f"discovery/{name}", plan=SUBTYPE)
        lists.overwrite(f"discovery/{name}", document | fields, plan=SUBTYPE)

    return harm


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("private_e_values", change("private_e_values", scale=0.01)),
        ("discoveries", change("discoveries", discoveries=0)),
        ("decision", change("decision", mu=1.0)),
    ],
    ids=["e-values", "list", "decision"],
)
def test_an_altered_document_fails_by_name(lists: Any, name: str, harm: Callable[[Any], None]) -> None:
    """Claim: exit code 1 with the failed check and the document that is not what releases rest on; the others pass."""
    harm(lists)
    code, found = reports(lists)
    assert (code, found[SUBTYPE]["status"]) == (1, "FAIL")
    assert found[SUBTYPE]["failures"]
    assert (found[SUBTYPE]["stored_report"], found[SUBTYPE]["others"]) == ("OF_OTHER_DOCUMENTS", [f"discovery/{name}"])
    assert {plan: report["status"] for plan, report in found.items() if plan != SUBTYPE} == dict.fromkeys(
        set(PLANS) - {SUBTYPE}, "PASS"
    )


def test_a_document_that_changes_no_check_is_told_apart(lists: Any) -> None:
    """Claim: which hypothesis stands at which position is told by no evidence: with another name for one in both
    documents and no package every check passes, and exit code 1 says that they are not what the stored audit saw."""
    e_values = lists.read("discovery/private_e_values", plan=SUBTYPE)
    listed = lists.read("discovery/discoveries", plan=SUBTYPE)
    [line] = [line for line in listed["list"] if line["feature"] == e_values["selected"][0]]
    e_values["selected"][0] = line["feature"] = "TP53"
    lists.overwrite("discovery/private_e_values", e_values, plan=SUBTYPE)
    lists.overwrite("discovery/discoveries", listed, plan=SUBTYPE)
    lists.withdraw()
    code, found = reports(lists)
    assert (code, found[SUBTYPE]["status"]) == (1, "PASS")
    said = synth_audit(lists).stdout
    for name in ("private_e_values", "discoveries"):
        assert f"FAILED discovery/{name}: not the document that discovery/audit is about" in said
    assert "releases rest on the stored discovery/audit" in said


@pytest.mark.parametrize("name", ["discoveries", "private_e_values"])
def test_a_damaged_document_is_a_failed_check(lists: Any, name: str) -> None:
    """Claim: an altered or lost file fails its list as G1/artefacts, with the file's name; nothing else is believed."""
    [file] = lists.folder(f"discovery/{name}", plan=SUBTYPE).glob("*document.json")
    file.write_bytes(file.read_bytes()[:-1])
    code, found = reports(lists)
    [failure] = found[SUBTYPE]["failures"]
    assert (code, failure["name"], failure["kind"], file.name in failure["detail"]) == (1, "G1/artefacts", "hash", True)
    shutil.rmtree(lists.folder(f"discovery/{name}", plan=SUBTYPE))
    code, found = reports(lists)
    assert (code, found[SUBTYPE]["failures"][0]["name"]) == (1, "G1/artefacts")
    assert found[PLANS[0]]["status"] == "PASS"


def test_a_list_without_its_audit_is_noted(lists: Any) -> None:
    """Claim: a list whose stored audit is gone is audited all the same; a screen says that there is none."""
    shutil.rmtree(lists.folder("discovery/audit", plan=SUBTYPE))
    code, found = reports(lists)
    assert (code, found[SUBTYPE]["status"], found[SUBTYPE]["stored_report"]) == (0, "PASS", "MISSING")
    assert "there is no stored discovery/audit of it" in synth_audit(lists).stdout


def test_a_list_of_a_lost_contrast_fails(lists: Any) -> None:
    """Claim: a list that cohort.yaml no longer registers is named and fails; it is not passed over."""
    lists.edit(lambda document: document["discovery"]["contrasts"].pop("subtype"))
    code, found = reports(lists)
    assert code == 1
    [failure] = found[SUBTYPE]["failures"]
    assert "no discovery plan is called" in failure["detail"]


def test_nothing_judged_yet_says_what_to_do(new_platform: Any, discovering: Any) -> None:
    platform = new_platform()
    platform.add(discovering.folder)
    done = synth_audit(platform)
    assert (done.exit_code, "synth discover COHORT" in done.stderr) == (2, True)
