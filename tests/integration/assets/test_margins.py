"""A census from its file to packages by the command line alone, under both policies, and what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import polars as pl
import pytest
import yaml
from filelock import FileLock

from resources.artefacts import write_artefact
from resources.home import SynthHome
from synth_platform.contract.census_spec import CensusSpec, load_census_spec
from synth_platform.definitions import MARGINS_JOB
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.reading.published import read_tables
from synth_platform.margins.replicates import replicate
from synth_platform.margins.violations import violations
from synth_platform.privacy.noise import CryptographicNoise
from synth_platform.release.folder import verify_package
from tests.integration.assets.conftest import QUIET, Platform, Said, Session, said
from tests.parish import CENSUS, KEPT, NOISY, SDC, Document, people, write_census

PACKAGES = {SDC: "parish-margins-sdc", NOISY: "parish-dp_margins-eps2"}
RUN = f"run {CENSUS} --json"


def edit(folder: Path, change: Callable[[Document], Any]) -> None:
    """Change census.yaml, as a steward would between two runs."""
    document = yaml.safe_load((folder / "census.yaml").read_text(encoding="utf-8"))
    change(document)
    (folder / "census.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


@pytest.fixture(scope="session")
def counted_home(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A home with the plans of the census; made once for all test processes. Only to be read."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    root = base / "counted" / "home"
    folder, record = root / "census", base / "counted" / "said.json"
    with FileLock(base / "counted.lock"):
        if not record.exists():
            write_census(folder)
            commands = (f"cohort check {folder} --json", f"cohort add {folder}", "cohort list", RUN)
            record.write_text(json.dumps({c: asdict(said(c, root)) for c in commands}), "utf-8")
    return Session(root, folder, {c: Said(**s) for c, s in json.loads(record.read_text("utf-8")).items()})


@pytest.fixture(scope="session")
def decisions(counted_home: Session) -> dict[str, Document]:
    """What `synth run --json` said, by plan."""
    done = counted_home.said[RUN]
    assert done.exit_code == 0, done.stderr
    return {document["plan"]: document for document in json.loads(done.stdout)}


@pytest.fixture
def harmed(counted_home: Session, decisions: Document, tmp_path: Path) -> Session:
    """A copy of that home that a test may harm."""
    assert decisions
    root = tmp_path / "home"
    shutil.copytree(counted_home.root, root)
    register = root / "cohorts.json"
    register.write_text(register.read_text("utf-8").replace(str(counted_home.root), str(root)), "utf-8")
    return Session(root, root / "census", {})


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing noise is an error."""

    def drawn(*_: Any) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(CryptographicNoise, "discrete_gaussian", drawn)


def spec_of(home: Session) -> CensusSpec:
    return load_census_spec(home.folder / "census.yaml")


# --- from a file to packages ----------------------------------------------------------------------------------------


def test_a_census_is_checked_added_and_listed(counted_home: Session) -> None:
    checked = json.loads(counted_home.said[f"cohort check {counted_home.folder} --json"].stdout)
    assert checked == {
        "cohort": CENSUS,
        "accepted": True,
        "source": "microdata",
        "variables": ["age", "sex", "married", "work", "servants"],
        "cells": 5 * 2 * 2 * 3 * 3,
        "margins": 10,
        "structural_zeros": 1,
        "plans": {SDC: "sdc", KEPT: "sdc", NOISY: "dp"},
        "declared": None,
    }
    assert f"synth run {CENSUS}" in counted_home.said[f"cohort add {counted_home.folder}"].stdout
    assert CENSUS in counted_home.said["cohort list"].stdout


def test_each_policy_says_what_it_promises(decisions: dict[str, Document]) -> None:
    """Claim: coarsening carries no ε and no ledger entry, noise carries both; a failed disclosure gate blocks."""
    sdc, kept, noisy = decisions[SDC], decisions[KEPT], decisions[NOISY]
    assert (sdc["decision"], sdc["policy"], sdc["assurance"]) == ("ELIGIBLE_SDC", "sdc", "SDC")
    assert (sdc["ledger"], sdc["epsilon"], sdc["mu"], sdc["disclosure"]["status"]) == (None, None, None, "PASS")
    assert (kept["decision"], kept["reasons"], kept["package"]) == ("BLOCKED", ["DISCLOSURE_FAIL"], None)
    assert (noisy["decision"], noisy["policy"], noisy["assurance"]) == ("ELIGIBLE_FORMAL", "dp", "DP")
    assert (noisy["epsilon"], noisy["delta"], noisy["disclosure"]) == (2.0, 1e-5, None)
    assert noisy["ledger"]["status"] == "OK"
    assert noisy["ledger"]["epsilon_pld"] <= 2.0


def test_only_noise_is_in_the_ledger(counted_home: Session, decisions: dict[str, Document]) -> None:
    rows = Platform.at(counted_home.root).rows()
    committed = [row for row in rows if row["state"] == "committed"]
    assert {row["entry_id"] for row in committed} == set(decisions[NOISY]["ledger"]["entries"])
    [entry] = committed
    assert (entry["code"], entry["neighbouring"]) == ("M_COUNTS", "add_remove")
    assert entry["sensitivity"] == pytest.approx(np.sqrt(10))


@pytest.mark.parametrize("plan", [SDC, NOISY])
def test_a_package_is_whole_and_its_margins_can_be_read_again(counted_home: Session, plan: str) -> None:
    """Claim: checksums hold, tables keep the recipe's domain and its structural zero, and no released count of the
    coarsened margins is below the limit but those of the declared zero."""
    package = counted_home.root / "released" / PACKAGES[plan]
    verify_package(package)
    platform = Platform.at(counted_home.root)
    stored = platform.read(f"{'margins/coarsened' if plan == SDC else 'dp_margins/measured'}", plan, CENSUS)
    margins = stored if isinstance(stored, MarginSet) else stored.margins
    assert violations(pl.read_parquet(package / "table.parquet"), margins.domain, margins.zeros) == 0
    assert (package / "table_2.parquet").exists() == (plan == SDC)
    assert (package / "ledger.json").exists() == (plan == NOISY)
    readme = (package / "README.md").read_text("utf-8")
    assert ("not differential privacy" in readme) == (plan == SDC)
    if plan == SDC:
        for margin in margins:
            assert (margin.counts[margins.possible(margin)] >= 10).all()
            assert not margin.counts[~margins.possible(margin)].any()


def test_released_margins_are_tables_that_the_command_reads(counted_home: Session, tmp_path: Path) -> None:
    package = counted_home.root / "released" / PACKAGES[SDC]
    folder = tmp_path / "tables"
    folder.mkdir()
    for file in package.iterdir():
        if file.name.startswith("margin_") or file.name == "domain.json":
            shutil.copy(file, folder)
    stored = Platform.at(counted_home.root).read("margins/coarsened", SDC, CENSUS)
    again = read_tables(folder, stored.zeros, totals="differ")
    assert [m.names for m in again] == [m.names for m in stored]
    assert all(np.array_equal(a.counts, b.counts) for a, b in zip(again, stored, strict=True))


def test_nothing_of_a_person_is_outside_the_restricted_zone(counted_home: Session) -> None:
    """Claim: no name, no exact count of people and no label that the recipe merged leaves, in no file and no event."""
    told = [
        (str(path), path.read_bytes())
        for path in sorted(counted_home.root.rglob("*"))
        if path.is_file() and path.relative_to(counted_home.root).parts[0] not in ("restricted", "census")
    ]
    assert told
    for name, content in told:
        for secret in (rb"PERSON\d{5}", rb"shepherd", rb"(?<![\w.])2911(?![\w.])"):
            if secret == b"shepherd" and name.endswith(("README.md", "card.json")):
                continue  # the recipe, which is public, names what it groups
            assert not re.search(secret, content), (name, secret)


def test_every_asset_is_there_and_the_graph_says_its_policy(counted_home: Session) -> None:
    platform = Platform.at(counted_home.root)
    for name in ("coarsened", "disclosure_gate", "model", "synthetic", "utility_gate", "decision", "audit", "release"):
        assert platform.latest(f"margins/{name}", SDC, CENSUS) is not None, name
    for name in ("measured", "model", "synthetic", "utility_gate", "decision", "audit", "release"):
        assert platform.latest(f"dp_margins/{name}", NOISY, CENSUS) is not None, name
    assert platform.latest("margins/release", KEPT, CENSUS) is None
    assert platform.metadata("margins/release", SDC, CENSUS)["policy"] == "sdc"
    assert platform.metadata("dp_margins/release", NOISY, CENSUS)["assurance"].startswith("DP: ")


@pytest.mark.parametrize("plan", [SDC, NOISY])
def test_a_package_is_followed_back(counted_home: Session, decisions: dict[str, Document], plan: str) -> None:
    traced = json.loads(said(f"lineage {PACKAGES[plan]} --json", counted_home.root).stdout)
    paid = decisions[plan]["ledger"]["entries"] if plan == NOISY else []
    assert {row["entry_id"] for row in traced["ledger"]} == set(paid)


def test_the_audit_and_the_register_agree(counted_home: Session) -> None:
    done = said(f"audit {CENSUS} --json", counted_home.root)
    assert done.exit_code == 0, done.stdout
    assert {report["status"] for report in json.loads(done.stdout)} == {"PASS"}
    releases = json.loads(said("releases --json", counted_home.root).stdout)
    assert {(one["name"], one["status"]) for one in releases} == {(name, "PUBLISHED") for name in PACKAGES.values()}


# --- again, and what is refused -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_noise")
def test_the_same_again_is_free_and_the_same(harmed: Session, decisions: dict[str, Document]) -> None:
    before = Platform.at(harmed.root).rows()
    done = said(RUN, harmed.root)
    assert done.exit_code == 0, done.stderr
    again = {document["plan"]: document for document in json.loads(done.stdout)}
    same = {plan: document | {"package": None} for plan, document in decisions.items()}
    assert {plan: document | {"package": None} for plan, document in again.items()} == same
    assert Platform.at(harmed.root).rows() == before


def test_releases_are_looked_at_again(harmed: Session) -> None:
    """Claim: a re-audit finds nothing, recalls a package with an altered margin, and one whose agreement is gone."""
    assert said("reaudit --json", harmed.root).exit_code == 0
    package = harmed.root / "released" / PACKAGES[SDC]
    [margin] = [file for file in package.iterdir() if file.name.startswith("margin_01")]
    margin.chmod(0o600)
    margin.write_text(margin.read_text("utf-8").replace("0\n", "1\n"), "utf-8")
    edit(harmed.folder, lambda document: document.update(dua_tag="UNDER_REVIEW"))
    done = json.loads(said("reaudit --json", harmed.root).stdout)
    assert done["recalled"] == {PACKAGES[SDC]: ["CHECKSUMS"], PACKAGES[NOISY]: ["DUA"]}


def test_margins_that_do_not_follow_from_the_file_are_not_released(harmed: Session) -> None:
    """Claim: somebody who writes finer margins into the restricted zone gets no release of them."""
    platform = Platform.at(harmed.root)
    shutil.rmtree(harmed.root / "released" / PACKAGES[SDC])
    stored = platform.read("margins/coarsened", SDC, CENSUS)
    finer = stored.with_margins(tuple(m.became(m.counts + (m.counts > 0), "finer") for m in stored))
    write_artefact(SynthHome(harmed.root).artefact(_key("margins/coarsened"), CENSUS, SDC), finer)
    result = _run(platform, "margins/release")
    assert not result.success
    assert "margins/coarsened: is not what was materialised" in Platform.failure(result)
    assert not (harmed.root / "released" / PACKAGES[SDC]).exists()


def test_other_rows_are_noticed_before_a_release(harmed: Session) -> None:
    """Claim: a file that was exchanged after the tables were made blocks their release, by name."""
    platform = Platform.at(harmed.root)
    shutil.rmtree(harmed.root / "released" / PACKAGES[SDC])
    people().head(1500).write_csv(harmed.folder / "people.csv")
    result = _run(platform, "margins/release")
    assert not result.success
    assert "margins/coarsened does not follow from the steward's files" in Platform.failure(result)


def test_what_may_leave_of_utility_is_registered(harmed: Session) -> None:
    """Claim: publication that was changed after the decision blocks the release; the decision as it stood keeps the
    status of utility inside."""
    platform = Platform.at(harmed.root)
    published = json.loads((harmed.root / "released" / PACKAGES[SDC] / "decision.json").read_text("utf-8"))
    stored = platform.read("margins/decision", SDC, CENSUS)
    assert stored["utility"]["status"] in ("good", "acceptable", "poor")
    assert published == {**stored, "utility": None}
    shutil.rmtree(harmed.root / "released" / PACKAGES[SDC])
    edit(harmed.folder, lambda document: document.update(publication="aggregates"))
    result = _run(platform, "margins/release")
    assert not result.success
    assert "margins/decision does not follow from the steward's files" in Platform.failure(result)


def test_another_recipe_of_the_same_people_spends_the_same_budget(harmed: Session) -> None:
    """Claim: the same file under another name, another recipe and another sorting has no second budget."""
    shutil.copytree(harmed.folder, harmed.root / "census" / "again")
    folder = harmed.root / "census" / "again"
    people().sort("age", descending=True).write_csv(folder / "people.csv")

    def other(document: Document) -> None:
        document.update(name="village", privacy=document["privacy"] | {"domain": "village"})
        document["recipe"]["drop"] = ["name", "servants"]
        del document["recipe"]["variables"]["servants"]
        document["plans"] = {"eps1": {"policy": "dp", "epsilon": "1"}}

    edit(folder, other)
    assert said(f"cohort add {folder}", harmed.root).exit_code == 0
    done = said("run village --json", harmed.root)
    assert done.exit_code == 2
    assert CENSUS in done.stderr


def test_a_plan_beyond_the_cap_is_refused_whole(harmed: Session) -> None:
    edit(harmed.folder, lambda document: document["plans"].update(eps5={"policy": "dp", "epsilon": "5"}))
    before = Platform.at(harmed.root).rows()
    done = said(RUN, harmed.root)
    assert done.exit_code == 1
    assert "BUDGET_EXCEEDED" in done.stderr
    assert Platform.at(harmed.root).rows() == before


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda d: d["recipe"]["variables"]["sex"].update(categories=["female"]), ("people.csv", "sex")),
        (lambda d: d["recipe"]["drop"].append("region"), ("people.csv", "region")),
        (lambda d: d["source"].update(microdata="nobody.csv"), ("nobody.csv", "does not exist")),
    ],
)
def test_a_census_that_does_not_go_with_its_file_is_refused_by_name(
    harmed: Session, change: Callable[[Document], Any], names: tuple[str, ...]
) -> None:
    """Claim: file, column and what to do are told, no cell is."""
    edit(harmed.folder, change)
    for command in (f"cohort check {harmed.folder}", RUN):
        done = said(command, harmed.root)
        assert done.exit_code == 2, command
        assert all(name in done.stderr for name in names), done.stderr
        assert "male" not in done.stderr.replace("female", "")


def test_published_tables_alone_go_the_same_way(harmed: Session) -> None:
    """Claim: a folder of tables and one YAML file become a release; utility cannot be compared, and says so."""
    folder = harmed.root / "census" / "published"
    (folder / "tables").mkdir(parents=True)
    for file in (harmed.root / "released" / PACKAGES[SDC]).iterdir():
        if file.name.startswith("margin_") or file.name == "domain.json":
            shutil.copy(file, folder / "tables")
    document = {
        "name": "published",
        "kind": "census",
        "title": "Tables of a yearbook",
        "dua_tag": "RELEASE_REVIEWED",
        "source": {"tables": "tables", "totals": "differ"},
        "plans": {"sdc": {"policy": "sdc"}},
    }
    (folder / "census.yaml").write_text(yaml.safe_dump(document), "utf-8")
    assert said(f"cohort add {folder}", harmed.root).exit_code == 0
    done = said("run published --json", harmed.root)
    assert done.exit_code == 0, done.stderr
    [decision] = json.loads(done.stdout)
    assert (decision["decision"], decision["utility"]["status"]) == ("ELIGIBLE_SDC", "NOT_ASSESSED")
    table = replicate(Platform.at(harmed.root).read("margins/synthetic", "sdc", "published"))
    assert table.height > 0


def _key(name: str) -> dg.AssetKey:
    return dg.AssetKey.from_user_string(name)


def _run(platform: Platform, asset: str) -> dg.ExecuteInProcessResult:
    return platform.definitions.resolve_job_def(MARGINS_JOB).execute_in_process(
        instance=platform.instance,
        partition_key=platform.partition(SDC, CENSUS),
        asset_selection=[_key(asset)],
        run_config=QUIET,
        raise_on_error=False,
    )


def test_a_second_coarsening_of_the_same_people_is_not_released(harmed: Session) -> None:
    """Claim: two roundings of the same counts intersect, so another limit does not leave beside the first; the same
    margins do, as another plan with other replicates, and a package that was withdrawn has left all the same."""

    def finer(document: Document) -> None:
        document["plans"] = {"finer": {"policy": "sdc", "limit": "7"}}

    edit(harmed.folder, finer)
    refused = said(RUN, harmed.root)
    assert refused.exit_code == 2
    assert f"{PACKAGES[SDC]} left with other margins of the same census" in refused.stderr
    edit(harmed.folder, lambda document: document.update(plans={"more": {"policy": "sdc", "replicates": "3"}}))
    assert said(RUN, harmed.root).exit_code == 0
    assert (harmed.root / "released" / f"{CENSUS}-margins-more" / "table_3.parquet").exists()
    for package in (PACKAGES[SDC], f"{CENSUS}-margins-more"):
        shutil.rmtree(harmed.root / "released" / package)
    edit(harmed.folder, finer)
    assert said(RUN, harmed.root).exit_code == 2


def test_adaptive_margins_go_the_same_way(harmed: Session) -> None:
    """Claim: every round is in the ledger, the promise is kept, audit and re-derivation agree, and the same is free."""
    plans = {"chosen": {"policy": "dp", "epsilon": "1", "margins": "adaptive"}}
    edit(harmed.folder, lambda document: document.update(plans=plans))
    done = said(RUN, harmed.root)
    assert done.exit_code == 0, done.stderr
    [decision] = json.loads(done.stdout)
    assert decision["decision"] == "ELIGIBLE_FORMAL"
    assert decision["ledger"]["epsilon_pld"] <= 1.0
    codes = [entry.split("-")[0] for entry in decision["ledger"]["entries"]]
    assert codes == ["M_COUNTS", *["M_CHOICE", "M_COUNTS"] * 15]
    before = Platform.at(harmed.root).rows()
    assert json.loads(said(RUN, harmed.root).stdout) == [decision]
    assert Platform.at(harmed.root).rows() == before


def test_an_updated_file_recalls_nothing(harmed: Session) -> None:
    """Claim: people who came after a release make another table, which does not leave under its name; the release that
    left stands, and its re-audit says what was replaced."""
    pl.concat([people(), people().head(40)]).write_csv(harmed.folder / "people.csv")
    edit(harmed.folder, lambda document: document["plans"].pop(NOISY))
    refused = said(RUN, harmed.root)
    assert refused.exit_code != 0
    looked = json.loads(said("reaudit --json", harmed.root).stdout)
    assert looked["recalled"] == {}
    assert looked["hindered"][PACKAGES[SDC]] == ["TABLE_REPLACED"]
