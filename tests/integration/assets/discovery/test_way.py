"""Lists of private discoveries from a cohort's files to packages, and what may be read of them from outside."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import polars as pl
import pytest
from rich.console import Console
from scipy.special import expit
from scipy.stats import norm
from typer.testing import CliRunner

from checks.schema import SCHEMA
from synth_platform.cli.discoveries import read_list, show_list
from synth_platform.cli.main import app
from synth_platform.definitions import DISCOVERY_JOB
from synth_platform.discovery.plot import discoveries_png
from synth_platform.release.folder import verify_package

SUBTYPE, SMOKING, SURVIVAL = (f"{name}-mu3-alpha0.05" for name in ("subtype", "smoking", "survival"))
PLANS = (SMOKING, SUBTYPE, SURVIVAL)
STAGE = ("private_e_values", "comparison", "discoveries", "decision", "audit", "release")


def package(platform: Any, plan: str) -> Path:
    return Path(platform.home.released / f"tiny-discovery-{plan}")


def mu_of(entry: Mapping[str, Any]) -> float:
    """What one ledger entry costs, from its sensitivity and noise scale by the published formulas: Delta/sigma for
    Gaussian noise, sqrt(k) 2 Phi^-1(sigmoid(Delta/b)) for k selections by Gumbel noise."""
    ratio, event = entry["sensitivity"] / entry["scale"], entry["event"]
    if entry["code"] == "E_VALUES":
        assert event["noise_multiplier"] == pytest.approx(1 / ratio, rel=1e-12)
        return float(ratio)
    assert event.get("event", event)["eta"] == pytest.approx(2 * ratio, rel=1e-12)
    return float(np.sqrt(event.get("count", 1)) * 2 * norm.ppf(expit(ratio)))


@pytest.fixture(scope="module")
def told(discovering: Any) -> dict[str, dict[str, Any]]:
    """What `synth discover --json` said, by plan."""
    return {listed["plan"]: listed for listed in json.loads(discovering.said["discover tiny --json"].stdout)}


def test_the_job_makes_the_whole_stage(discovered: Any) -> None:
    """Claim: one job, from the closed matrix to the package, with every asset of the stage in it."""
    job = discovered.definitions.resolve_job_def(DISCOVERY_JOB)
    assert {key.to_user_string() for key in job.asset_layer.selected_asset_keys} == {f"discovery/{n}" for n in STAGE}
    for plan in PLANS:
        for name in STAGE:
            assert discovered.metadata(f"discovery/{name}", plan=plan)["zone"] == "restricted"


@pytest.mark.parametrize("name", STAGE)
def test_assets_say_what_they_are(discovered: Any, name: str) -> None:
    """Claim: every materialised asset has its keyed fingerprint and those of its inputs, and its schema check, or for a
    release that of its package, ran as an error and passed."""
    key = dg.AssetKey(["discovery", name])
    graph = discovered.definitions.resolve_asset_graph()
    metadata = discovered.metadata(f"discovery/{name}", plan=SUBTYPE)
    assert len(metadata["fingerprint"]) == 64
    parents = {} if name == "audit" else {parent.to_user_string(): parent for parent in graph.get(key).parent_keys}
    assert metadata["input_fingerprints"] == {
        asset: discovered.metadata(asset, plan=SUBTYPE if parent.path[0] == "discovery" else None)["fingerprint"]
        for asset, parent in parents.items()
    }
    check = dg.AssetCheckKey(key, "package_verifies" if name == "release" else SCHEMA)
    for record in discovered.instance.event_log_storage.get_asset_check_execution_history(check, limit=3):
        evaluation = record.event.dagster_event.asset_check_evaluation_data
        assert (evaluation.passed, evaluation.severity) == (True, dg.AssetCheckSeverity.ERROR)


def test_every_list_leaves_as_a_package(discovered: Any) -> None:
    assert discovered.packages() == [f"tiny-discovery-{plan}" for plan in PLANS]
    for plan in PLANS:
        verify_package(package(discovered, plan))
        assert {file.name for file in package(discovered, plan).iterdir()} == {
            "README.md", "SHA256SUMS", "decision.json", "discoveries.png", "ledger.json", "table.csv", "table.parquet",
        }  # fmt: skip


def test_the_sizes_that_a_check_finds_are_those_registered(discovering: Any) -> None:
    """Claim: `synth cohort check` counts the private rows of every contrast, and here they are as registered."""
    checked = json.loads(discovering.said["cohort check tiny --json"].stdout)
    assert checked["contrasts"] == {
        "subtype": {"registered": [162, 133], "found": [162, 133], "fits": True},
        "smoking": {"registered": [88, 207], "found": [88, 207], "fits": True},
        "survival": {"registered": [295], "found": [295], "fits": True},
    }


def test_signal_is_found_and_nothing_where_there_is_none(told: Any) -> None:
    """Claim: most features differ between subtypes, some tell survival, methylation does not tell smokers. In a
    thousand draws of the noise the first two always held and the third was never wrong at mu 3; a chance below .005
    remains for each."""
    found = {plan: len(listed["discoveries"]) for plan, listed in told.items()}
    assert found[SUBTYPE] >= 4
    assert found[SURVIVAL] >= 1
    assert found[SMOKING] == 0


@pytest.mark.parametrize("plan", PLANS)
def test_metadata_lead_to_the_ledger(discovered: Any, plan: str) -> None:
    """Claim: e-values, decision and release name the entries that paid, with their rows; the ledger holds exactly
    those, committed; together they cost the registered mu and no more, counted here from the formulas."""
    paid = discovered.read("discovery/private_e_values", plan=plan)["entries"]
    assert paid
    for name in ("private_e_values", "discoveries", "decision", "release"):
        assert discovered.metadata(f"discovery/{name}", plan=plan)["ledger_entries"] == paid
    for name in ("private_e_values", "decision", "release"):
        shown = [record.data for record in discovered.metadata(f"discovery/{name}", plan=plan)["ledger"].records]
        assert [(row["entry_id"], row["state"]) for row in shown] == [(entry, "committed") for entry in paid]
    states = {(row["entry_id"], row["state"]) for row in discovered.rows() if row["entry_id"] in paid}
    assert states == {(entry, state) for entry in paid for state in ("reserved", "committed")}
    published = json.loads((package(discovered, plan) / "ledger.json").read_text("utf-8"))
    assert [entry["entry_id"] for entry in published["entries"]] == paid
    cost = float(np.sqrt(sum(mu_of(entry) ** 2 for entry in published["entries"])))
    assert 3 * (1 - 1e-6) <= cost <= 3
    assert {entry["neighbouring"] for entry in published["entries"]} == {"replace_one"}


@pytest.mark.parametrize("plan", PLANS)
def test_a_reader_can_check_the_list(discovered: Any, plan: str) -> None:
    """Claim: the step-up rule of the README, applied to the published table by hand, gives the published list."""
    readme = (package(discovered, plan) / "README.md").read_text("utf-8")
    threshold = float(re.search(r"at or above\s+(\S+)\s+- log k", readme)[1])
    table = pl.read_parquet(package(discovered, plan) / "table.parquet")
    log_e = table["log_e"].to_numpy()
    assert (np.diff(log_e) <= 0).all()
    rejected = [k for k in range(1, len(log_e) + 1) if log_e[k - 1] >= threshold - np.log(k)]
    assert table["discovered"].sum() == max(rejected, default=0)
    assert table["discovered"].to_list() == sorted(table["discovered"].to_list(), reverse=True)
    assert table.equals(pl.read_csv(package(discovered, plan) / "table.csv"))


def test_what_the_command_tells(told: Any, discovered: Any) -> None:
    """Claim: `synth discover --json` lists contrast, mu, epsilon(delta), method, size, discoveries with their private
    log e-values, entries and decision, as the stored documents have them."""
    assert tuple(told) == PLANS
    for plan, listed in told.items():
        decision = discovered.read("discovery/decision", plan=plan)
        e_values = discovered.read("discovery/private_e_values", plan=plan)
        assert set(listed) == {
            "cohort", "contrast", "plan", "mu", "epsilon", "delta", "alpha", "statistic", "hypotheses", "method",
            "size", "discoveries", "selected", "entries", "decision", "reasons", "package",
        }  # fmt: skip
        assert (listed["mu"], listed["alpha"], listed["delta"], listed["method"]) == (3.0, 0.05, 1e-5, "adaptive")
        # Dong, Roth and Su 2022, Corollary 1: delta(epsilon) of 3-GDP.
        delta = norm.cdf(-listed["epsilon"] / 3 + 1.5) - np.exp(listed["epsilon"]) * norm.cdf(
            -listed["epsilon"] / 3 - 1.5
        )
        assert delta == pytest.approx(1e-5, rel=1e-6)
        lines = {line["feature"]: line["log_e"] for line in [*listed["discoveries"], *listed["selected"]]}
        assert lines == dict(zip(e_values["selected"], e_values["log_e"], strict=True))
        assert listed["size"] == len(lines) == e_values["size"]
        assert listed["entries"] == decision["ledger"]["entries"] == e_values["entries"]
        assert (listed["decision"], listed["reasons"]) == ("ELIGIBLE_FORMAL", [])
        assert listed["package"] == str(package(discovered, plan))
        assert listed["statistic"] == e_values["statistic"]["name"]
        assert listed["statistic"].startswith("log_rank" if plan == SURVIVAL else "mann_whitney")


# --- nothing before noise leaves the restricted zone -----------------------------------------------------------------


def outside(platform: Any) -> Iterator[tuple[Path, bytes]]:
    """Every file of the home outside the restricted zone: released packages, the ledger, Dagster's event log."""
    for file in sorted(platform.home.root.rglob("*")):
        if file.is_file() and platform.home.root / "restricted" not in file.parents:
            yield file, file.read_bytes()


def test_nothing_before_noise_is_outside_the_restricted_zone(discovered: Any, discovering: Any) -> None:
    """Claim: no log e-value before noise stands in a package, the ledger, an event, metadata, a log or what a command
    said, to five decimals. The search finds what is there: private log e-values do stand in packages and metadata."""
    said = "".join(s.stdout + s.stderr for s in discovering.said.values()).encode()
    texts = [content for _, content in outside(discovered)] + [said]
    for plan in PLANS:
        figures = list(discovered.read("discovery/comparison", plan=plan)["before_noise"].values())
        assert figures
        for figure in figures:
            assert not any(f"{figure:.6f}"[:-1].encode() in text for text in texts), plan
    noisy = discovered.read("discovery/private_e_values", plan=SUBTYPE)["log_e"][0]
    assert sum(repr(noisy).encode() in text for text in texts) == 2, "table.csv and what the command said"
    assert any(b"private_e_values" in content for file, content in outside(discovered) if "dagster" in file.parts)


def test_the_comparison_tells_nothing_in_metadata(discovered: Any) -> None:
    """Claim: how many discoveries came back is a function of private rows: the event log has a path to it, no figure;
    the document has them, and the picture with both lies in the restricted zone alone."""
    for plan in PLANS:
        metadata = discovered.metadata("discovery/comparison", plan=plan)
        assert set(metadata) == {"private_access", "picture", "zone", "fingerprint", "input_fingerprints", "path"}
        document = discovered.read("discovery/comparison", plan=plan)
        assert set(document) == {"contrast", "plan", "without_noise", "came_back", "only_private", "before_noise"}
        assert not any(isinstance(value, int | float) for value in metadata.values())
        picture = Path(str(metadata["picture"]))
        assert picture.is_relative_to(discovered.home.root / "restricted")
        listed = discovered.read("discovery/discoveries", plan=plan)
        title = f"{discovered.spec().title}: {plan}"
        left = (package(discovered, plan) / "discoveries.png").read_bytes()
        assert left == discoveries_png(listed, title)
        assert picture.read_bytes() == discoveries_png(listed, title, document["before_noise"]) != left


def test_the_comparison_counts(discovered: Any) -> None:
    """Claim: what came back and what only noise found add up to the private discoveries; the subtype's mostly do."""
    for plan in PLANS:
        document = discovered.read("discovery/comparison", plan=plan)
        listed = discovered.read("discovery/discoveries", plan=plan)
        assert document["came_back"] + document["only_private"] == listed["discoveries"]
        assert document["came_back"] <= document["without_noise"]
        assert set(document["before_noise"]) == {line["feature"] for line in listed["list"]}
    assert discovered.read("discovery/comparison", plan=SUBTYPE)["came_back"] >= 4


def test_no_row_key_and_no_private_fingerprint_in_a_package(discovered: Any) -> None:
    keyed = {row["input_fingerprint"] for row in discovered.ledger.chain() if row["input_fingerprint"]}
    assert len(keyed) == 1, "one name of the private rows, whatever the contrast"
    for plan in PLANS:
        for file in package(discovered, plan).iterdir():
            content = file.read_bytes()
            assert not re.search(rb"\bP-\d{6}\b", content), file.name
            assert not any(name.encode() in content for name in keyed), file.name
            assert str(discovered.home.root).encode() not in content, file.name


# --- from a shell ----------------------------------------------------------------------------------------------------


def synth(platform: Any, *arguments: str) -> Any:
    environment = {"SYNTH_HOME": str(platform.home.root)}
    return CliRunner().invoke(app, arguments, env=environment, catch_exceptions=False)


def nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for below in node.get("inputs", ()):
        yield from nodes(below)


def test_lineage_reaches_the_ledger(discovered: Any) -> None:
    """Claim: from a list's package back to its e-values, the entries they name, and the cohort's files."""
    done = synth(discovered, "lineage", f"tiny-discovery-{SUBTYPE}", "--json")
    document = json.loads(done.stdout)
    paid = discovered.read("discovery/private_e_values", plan=SUBTYPE)["entries"]
    tree = {node["asset"]: node for node in nodes(document["lineage"]) if "inputs" in node}
    assert {"discovery/private_e_values", "discovery/audit", "normalized/matrix", "cohort/clinical"} <= set(tree)
    assert tree["discovery/private_e_values"]["ledger_entries"] == paid
    assert tree["discovery/private_e_values"]["partition"] == f"tiny|{SUBTYPE}"
    assert (tree["normalized/matrix"]["partition"], tree["normalized/matrix"]["ledger_entries"]) == ("tiny", [])
    assert all(node["fingerprint"] for node in tree.values() if node["asset"] != "cohort/rejections")
    assert {row["entry_id"] for row in document["ledger"]} == set(paid)
    assert {row["state"] for row in document["ledger"]} == {"reserved", "committed"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--contrast", "stage"], "has no contrast 'stage'; it registers smoking, subtype, survival"),
        (["--mu", "0"], "mu must be > 0"),
        (["--mu", "nan"], "mu must be > 0"),
        (["--mu", "inf"], "mu must be > 0"),
        (["--mu", "-1"], "mu must be > 0"),
        (["--mu", "0.12345678"], "at six decimals"),
        (["--alpha", "1"], "between 0 and 1"),
        (["--alpha", "0"], "between 0 and 1"),
        (["--size", "0"], "at least one hypothesis"),
        (["--mu", "1000"], "mu must be > 0 and at most 60"),
        (["--mu", "9"], "--mu: a list at mu = 9 costs epsilon = 83.69 at delta = 1e-05"),
        (["--contrast", "subtype", "--size", "10"], "--size: 10 of the 9 hypotheses of 'subtype' cannot be selected"),
        (["--size", "5"], "--size: 5 of the 4 hypotheses of 'smoking' cannot be selected; use fewer"),
    ],
)
def test_bad_input_is_exit_code_2(lists: Any, arguments: list[str], said: str) -> None:
    """Claim: each is named in words, without a traceback; nothing is run or spent."""
    rows, runs = lists.rows(), lists.instance.get_runs_count()
    done = synth(lists, "discover", "tiny", *arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.output
    assert (lists.rows(), lists.instance.get_runs_count()) == (rows, runs)


def test_a_cohort_without_contrasts_says_so(lists: Any) -> None:
    lists.edit(lambda document: document.pop("discovery"))
    done = synth(lists, "discover", "tiny")
    assert (done.exit_code, "write discovery.contrasts into its cohort.yaml" in done.stderr) == (2, True)


def test_a_blocked_list_is_exit_code_1_and_no_package(lists: Any) -> None:
    """Claim: where nothing of a cohort may leave, a list is made, decided and audited, and stays; that it will be so is
    said before anything is run."""
    lists.edit(lambda document: document.update(dua_tag="RESTRICTED"))
    lists.withdraw()
    done = synth(lists, "discover", "tiny", "--contrast", "subtype", "--json")
    [listed] = json.loads(done.stdout)
    assert (done.exit_code, listed["decision"]) == (1, "BLOCKED")
    assert (listed["reasons"], listed["package"], lists.packages()) == (["DUA_NOT_REVIEWED"], None, [])
    assert lists.read("discovery/audit", plan=SUBTYPE)["status"] == "PASS"
    assert done.stderr.startswith("warning: dua_tag of 'tiny' is RESTRICTED, not RELEASE_REVIEWED: its lists will be")


def test_a_reviewed_cohort_is_not_warned_of(discovering: Any) -> None:
    assert "warning" not in discovering.said["discover tiny --json"].stderr


def test_what_people_read(discovered: Any) -> None:
    """Claim: without --json a table with the cost, the decision and the package; `cohort list` names the contrasts."""
    screen = Console(file=io.StringIO(), width=200)
    show_list(screen, read_list(discovered.home, discovered.spec(), SURVIVAL))
    said = screen.file.getvalue()
    for words in ("discoveries of 5 at FDR 0.05", "mu 3 (epsilon 16.7 at delta 1e-05)", "ELIGIBLE_FORMAL", "E_VALUES-"):
        assert words in said
    assert "smoking subtype survival" in synth(discovered, "cohort", "list").stdout
