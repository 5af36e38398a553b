"""`synth` from registering a cohort to following its release back, as a steward and a governance officer use it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from synth_platform.cli.main import app

DECISION_KEYS = {
    "cohort", "generator", "plan", "epsilon", "delta", "mu", "utility", "endpoints", "closest_record", "membership",
    "inference", "power", "limits", "registration", "ledger", "schema", "decision", "reasons", "notes",
}  # fmt: skip
ENDPOINT_KEYS = {"tstr", "trtr", "preservation", "skill", "lift", "status"}
Synth = Callable[..., Result]


@pytest.fixture
def synth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Synth:
    """`synth` with a home of its own; no invocation may end in a traceback."""

    def invoke(*arguments: object, home: Path = tmp_path / "home") -> Result:
        monkeypatch.setenv("SYNTH_HOME", str(home))
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    return invoke


@pytest.fixture
def at(synth: Synth, finished: Any) -> Synth:
    """`synth` in the home of the finished run, for commands that only look or are refused."""
    return lambda *arguments: synth(*arguments, home=finished.home.root)


def test_a_cohort_from_its_folder_to_a_decision(steward: Any) -> None:
    """Claim: list, add, list and run of one cohort; `run --json` prints its decisions on standard output, its
    progress beside it, and ends with 0 because one table is eligible."""
    said = steward.said
    assert said["cohort list"].stdout.startswith("no cohort registered")
    assert "synth run tiny" in said[f"cohort add {steward.folder}"].stdout
    [listed] = json.loads(said["cohort list --json"].stdout)
    assert (listed["cohort"], listed["domain"], listed["folder"]) == ("tiny", "tiny", str(steward.folder))
    ran = said["run tiny --json"]
    assert ran.exit_code == 0
    decisions = {d["generator"]: d for d in json.loads(ran.stdout)}
    assert len(decisions) == 7
    assert decisions["G0A"]["decision"].startswith("ELIGIBLE")
    assert "statistics" in ran.stderr
    assert sorted(path.name for path in (steward.root / "released").iterdir()) == ["register.json", "tiny-G0A-eps8"]


def test_a_good_folder_is_accepted(at: Synth, steward: Any) -> None:
    """Claim: `cohort check --json` says accepted, without a finding."""
    checked = json.loads(at("cohort", "check", steward.folder, "--json").stdout)
    assert (checked["cohort"], checked["accepted"], checked["rejections"]) == ("tiny", True, [])


def test_decisions_have_the_documented_keys(at: Synth) -> None:
    """Claim: every decision of `synth decisions --json` has exactly the documented keys (docs/interfaces.md)."""
    found = json.loads(at("decisions", "--json").stdout)
    assert len(found) == 7
    for decision in found:
        assert set(decision) == DECISION_KEYS
        assert set(decision["endpoints"]) == {"c_index", "macro_f1", "auroc", "spearman"}
        assert all(set(endpoint) >= ENDPOINT_KEYS for endpoint in decision["endpoints"].values())
        assert set(decision["ledger"]) == {
            "status", "epsilon_rdp", "epsilon_pld", "mu", "auroc_bound", "entries", "reasons",
        }  # fmt: skip
        assert set(decision["schema"]) == {"violations"}
    assert "G0A" in at("decisions").stdout


def test_the_ledger_is_shown_verified_and_summed(at: Synth, finished: Any) -> None:
    """Claim: `ledger show` has every row of the chain, `budget` adds up to what was released, `verify` says sound."""
    rows = json.loads(at("ledger", "show", "--json").stdout)
    assert rows == finished.rows()
    assert {"input_fingerprint", "request_fingerprint"}.isdisjoint(rows[0])
    [budget] = json.loads(at("ledger", "budget", "--json").stdout)
    assert (budget["domain"], budget["cap"], budget["reserved"]) == ("tiny", 24.0, 0)
    assert budget["remaining"] == pytest.approx(24.0 - budget["spent_rdp"])
    verified = at("ledger", "verify", "--json")
    assert verified.exit_code == 0
    assert json.loads(verified.stdout)["ok"] is True
    assert at("ledger", "verify").stdout.startswith("sound")


def test_a_ledger_cut_below_a_release_is_broken(synth: Synth, platform: Any) -> None:
    """Claim: a ledger replaced by an empty one, anchor and all, does not verify against the packages it paid for."""
    for file in platform.home.root.glob("ledger.sqlite*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    verified = synth("ledger", "verify", home=platform.home.root)
    assert verified.exit_code == 1
    assert "BROKEN" in verified.stdout
    assert "that a release carries" in verified.stdout


def test_lineage_ends_at_private_tables_and_entries(at: Synth, finished: Any) -> None:
    """Claim: the tree behind a release names every asset upstream with the fingerprint in the event log, and on the
    statistics exactly the ledger entries of the package."""
    document = json.loads(at("lineage", "tiny-G0A-eps8", "--json").stdout)
    assert set(document) == {"release", "lineage", "ledger"}
    tree = document["lineage"]
    nodes: dict[str, dict[str, Any]] = {}

    def visit(node: dict[str, Any]) -> None:
        nodes[node["asset"]] = node
        for parent in node.get("inputs", ()):
            visit(parent)

    visit(tree)
    assert tree["asset"] == "G0A/release"
    assert {"statistics/G0A", "normalized/matrix", "cohort/clinical", "public/reference"} <= set(nodes)
    for name, node in nodes.items():
        plan = "eps8" if name.split("/")[0] in ("G0A", "G0", "statistics", "audit") else None
        assert node["fingerprint"] == finished.metadata(name, plan)["fingerprint"]
    package = json.loads((finished.home.released / "tiny-G0A-eps8" / "ledger.json").read_text("utf-8"))
    paid = [entry["entry_id"] for entry in package["entries"]]
    assert nodes["statistics/G0A"]["ledger_entries"] == paid
    assert document["ledger"] == [row for row in finished.rows() if row["entry_id"] in paid]
    assert "statistics/G0A" in at("lineage", "tiny-G0A-eps8").stdout


def test_past_the_budget_is_exit_code_1(synth: Synth, platform: Any) -> None:
    """Claim: a plan the domain cannot pay for ends with 1 and the figures, and spends nothing."""
    rows = platform.rows()
    ran = synth("run", "tiny", "--generator", "G0A", "--epsilon", 20, home=platform.home.root)
    assert ran.exit_code == 1
    assert "BUDGET_EXCEEDED" in ran.stderr
    assert platform.rows() == rows


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "nobody"], ["'nobody'", "tiny", "synth cohort add"]),
        (["run", "tiny", "--generator", "G9"], ["G9", "G0A", "S_PUBLIC"]),
        (["lineage", "tiny-G0-eps8"], ["tiny-G0-eps8", "tiny-G0A-eps8"]),
        (["lineage", "nonsense"], ["nonsense", "tiny-G0A-eps8"]),
        (["ledger", "budget", "--domain", "nowhere"], ["nowhere"]),
        (["ledger", "show", "--domain", "nowhere"], ["nowhere", "tiny"]),
        *((["run", "tiny", "--epsilon", e], ["epsilon must be > 0 and finite"]) for e in ("0", "-1", "inf", "nan")),
        *((["run", "tiny", "--epsilon", e], ["six decimals"]) for e in ("1e-9", "0.1234567")),
    ],
)
def test_unknown_names_are_exit_code_2(at: Synth, arguments: list[str], named: list[str]) -> None:
    """Claim: what does not exist is answered with exit code 2, its name, and what there is instead."""
    result = at(*arguments)
    assert result.exit_code == 2, result.output
    for word in named:
        assert word in result.stderr
