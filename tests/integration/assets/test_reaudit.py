"""Published releases looked at again: what recalls one, what only hinders, and what a killed re-audit leaves."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from assets.reaudit import reaudit_job
from checks.recalls import looked_at_check
from resources import register as register_module
from resources.home import HomeResource
from resources.register import HomeHoldings, Round, home_register, reaudit_home
from synth_platform.audit import report as audit_module
from synth_platform.cli.main import app
from synth_platform.normalize.replicates import encode_replicates, native_table
from synth_platform.release.reaudit import package_checksum
from synth_platform.release.register import Release, ReleaseRegister, Terms
from synth_platform.release.register_schema import RegisterError
from synth_platform.trials.stage import Stage

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
PACKAGE = "tiny-G0A-eps8"


def job(platform: Any) -> dg.ExecuteInProcessResult:
    """Run the re-audit job, as the schedule does."""
    definition = platform.definitions.resolve_job_def(reaudit_job.name)
    result = definition.execute_in_process(instance=platform.instance, run_config=QUIET, raise_on_error=False)
    assert result.success, platform.failure(result)
    return result


def look(platform: Any) -> Round:
    """What the job does, without its events."""
    home = HomeResource(root=str(platform.home.root))
    return reaudit_home(home, register(platform), platform.registry, platform.home.ledger_url)


def checks(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {f"{e.asset_key.path[-1]}: {e.check_name}": e for e in result.get_asset_check_evaluations()}


def register(platform: Any) -> ReleaseRegister:
    return home_register(platform.home)


def released(platform: Any) -> Release:
    return register(platform).releases()[PACKAGE]


def statuses(platform: Any) -> Any:
    return json.loads((platform.home.released / "register.json").read_text("utf-8"))


def test_a_sound_release_stays_published(platform: Any) -> None:
    """Claim (the others' control): what was published is registered, looked at to the end and stays; every look has
    another seed; the package itself is not touched."""
    assert (released(platform).status, released(platform).looks) == ("PUBLISHED", 0)
    before = {file.name: file.read_bytes() for file in (platform.home.released / PACKAGE).iterdir()}
    passed = checks(job(platform))
    look(platform)
    assert all(evaluation.passed for evaluation in passed.values()), passed
    assert (released(platform).status, released(platform).looks) == ("PUBLISHED", 2)
    assert released(platform).findings == ()
    assert statuses(platform) == {PACKAGE: "PUBLISHED"}
    assert before == {file.name: file.read_bytes() for file in (platform.home.released / PACKAGE).iterdir()}
    with sqlite3.connect(platform.home.root / "restricted" / "register.sqlite") as connection:
        rows = connection.execute("SELECT seed, log_e FROM release_looks WHERE state = 'finished'").fetchall()
    connection.close()
    assert len({seed for seed, _ in rows}) == 2
    assert all(set(json.loads(log_e)) == set(platform.spec().gates.attacks) for _, log_e in rows)


# --- faults: each recalls at once, by name ---------------------------------------------------------------------------


def package(platform: Any) -> Path:
    return Path(platform.home.released / PACKAGE)


def forge(platform: Any) -> Path:
    """A copy of the package in which training rows stand for eight synthetic ones, with checksums to match."""
    forged = package(platform).with_name("tiny-G0A-eps8-final")
    shutil.copytree(package(platform), forged)
    table = pl.read_parquet(forged / "table.parquet")
    copies = native_table(platform.read("S_COPY/synthetic", plan=None), platform.spec().synthetic.seeds[0])
    rows = copies.select(table.columns).head(8).cast(dict(table.schema))
    pl.concat([table.head(table.height - 8), rows]).write_parquet(forged / "table.parquet")
    list_checksums(forged)
    return forged


def enter(platform: Any, folder: Path) -> None:
    """What the release asset does, by hand."""
    gates = platform.spec().gates
    register(platform).record(
        name=folder.name,
        cohort="tiny",
        generator="G0A",
        plan="eps8",
        checksum=package_checksum(folder),
        table=hashlib.sha256((folder / "table.parquet").read_bytes()).hexdigest(),
        terms=Terms(gates.attacks, gates.neighbours, gates.membership_limit),
    )


def list_checksums(folder: Path) -> None:
    files = sorted(file for file in folder.iterdir() if file.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (folder / "SHA256SUMS").write_text("".join(lines), "utf-8")


def alter_table(platform: Any) -> None:
    file = package(platform) / "table.csv"
    file.write_bytes(file.read_bytes()[:-1] + b"9")


def forge_checksums(platform: Any) -> None:
    """Another README with checksums to match: whole in itself, but not what was published."""
    (package(platform) / "README.md").write_text("another one", "utf-8")
    list_checksums(package(platform))


def tamper(platform: Any, statement: str) -> None:
    with sqlite3.connect(platform.home.root / "ledger.sqlite") as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement)
    connection.close()


def change_tag(platform: Any) -> None:
    platform.edit(lambda document: document.update(dua_tag="RESTRICTED"))


def forge_evidence(platform: Any) -> None:
    stored = platform.read("audit/evidence")
    decision = stored["evidence"]["generators"]["G0A"]["documents"]["decision"]
    decision["decision"] = ({"ELIGIBLE_POINT", "ELIGIBLE_CONFIRMED"} - {decision["decision"]}).pop()
    platform.overwrite("audit/evidence", stored)


def block(platform: Any) -> None:
    decision = platform.read("G0A/decision")
    platform.overwrite("G0A/decision", decision | {"decision": "BLOCKED", "reasons": ["MEMBERSHIP_FAIL"]})


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (alter_table, "CHECKSUMS"),
        (lambda p: (package(p) / "SHA256SUMS").unlink(), "CHECKSUMS"),
        (forge_checksums, "CHECKSUMS"),
        (lambda p: p.withdraw(), "WITHDRAWN"),
        (lambda p: tamper(p, "UPDATE ledger SET scale = scale * 2 WHERE id = 2"), "LEDGER"),
        (lambda p: tamper(p, "DELETE FROM ledger WHERE id = (SELECT MAX(id) FROM ledger)"), "LEDGER"),
        (change_tag, "DUA"),
        (block, "DECISION"),
        (forge_evidence, "AUDIT"),
    ],
    ids=[
        "table",
        "no checksums",
        "forged checksums",
        "withdrawn",
        "ledger row",
        "ledger tail",
        "agreement",
        "decision",
        "evidence",
    ],
)
def test_a_fault_recalls_at_once(platform: Any, harm: Callable[[Any], object], code: str) -> None:
    """Claim: one fault, one code; the public file says RECALLED and nothing was attacked for it. The next re-audit does
    not look at the release any more, and speaks of it until its package is taken out of the released zone."""
    look(platform)
    harm(platform)
    assert look(platform).recalled == {PACKAGE: (code,)}
    assert (released(platform).status, released(platform).reasons) == ("RECALLED", (code,))
    assert statuses(platform) == {PACKAGE: "RECALLED"}
    assert look(platform).standing_recalls == ({} if code == "WITHDRAWN" else {PACKAGE: (code,)})
    assert released(platform).looks == 2


def test_a_package_that_nobody_released_is_named(platform: Any) -> None:
    """Claim: a forged package, whole in itself and as eligible as the one it copies, becomes no release by lying in
    the released zone: every re-audit names it, the check fails, and it can be taken out."""
    forged = forge(platform)
    assert look(platform).hindered == {forged.name: ("UNREGISTERED",)}
    failed = checks(job(platform))["register: looked_at"]
    assert (failed.passed, "nobody released this here" in str(failed.description)) == (False, True)
    assert statuses(platform) == {PACKAGE: "PUBLISHED"}
    shutil.rmtree(forged)
    assert look(platform).hindered == {}


def test_a_table_that_was_not_judged_is_recalled(platform: Any) -> None:
    """Claim: even a release that the register knows is held to the stored synthetic table, value by value."""
    forged = forge(platform)
    enter(platform, forged)
    assert look(platform).recalled == {forged.name: ("TABLE",)}
    assert statuses(platform) == {PACKAGE: "PUBLISHED", forged.name: "RECALLED"}


def test_a_plan_that_was_run_again_otherwise_is_no_forgery(platform: Any) -> None:
    """Claim: another stored table under another registration leaves the look open, and a person decides."""
    platform.edit(lambda document: document["synthetic"].update(rows=platform.spec().synthetic.rows + 1))
    table = platform.read("G0A/synthetic")
    platform.overwrite("G0A/synthetic", table.filter(table["sampling_seed"] != table["sampling_seed"][0]))
    assert look(platform).hindered == {PACKAGE: ("TABLE_REPLACED",)}


@pytest.mark.parametrize("recalled", [False, True], ids=["published", "recalled"])
def test_a_lost_register_is_refused(platform: Any, recalled: bool) -> None:
    """Claim: a register that is gone takes neither a release nor a recall with it: the re-audit fails by name and the
    public file stays as it is."""
    if recalled:
        change_tag(platform)
        look(platform)
    before = statuses(platform)
    for file in (platform.home.root / "restricted").glob("register.sqlite*"):
        file.unlink()
    for _ in range(2):
        with pytest.raises(RegisterError, match=rf"register\.json lists {PACKAGE} .*restore"):
            look(platform)
    done = synth(platform, "releases")
    assert (done.exit_code, "Traceback" in done.output, f"lists {PACKAGE}" in done.output) == (2, False, True)
    assert statuses(platform) == before == {PACKAGE: "RECALLED" if recalled else "PUBLISHED"}


def test_a_recalled_table_leaves_under_no_other_name(platform: Any) -> None:
    """Claim: another spelling of the plan's epsilon is refused before anything is spent, and another key registered
    for the same promise makes the same table, which the register refuses before it is written."""
    rows = len(platform.rows())
    change_tag(platform)
    look(platform)
    platform.edit(lambda document: document.update(dua_tag="RELEASE_REVIEWED"))
    plan = platform.spec().plan("eps8")
    platform.edit(lambda d: d["plans"].update({"again": {"epsilon": plan.epsilon, "delta": plan.delta}}))
    result = platform.run(plan="again", check=False)
    assert f"RECALLED: this very table, as {PACKAGE}, was recalled (DUA)" in platform.failure(result)
    assert (platform.packages(), len(platform.rows())) == ([PACKAGE], rows)


def test_nothing_is_published_under_a_recalled_name(platform: Any) -> None:
    """Claim: a recall outlives the withdrawal of the package, whatever is judged afterwards."""
    change_tag(platform)
    look(platform)
    platform.edit(lambda document: document.update(dua_tag="RELEASE_REVIEWED"))
    platform.withdraw()
    result = platform.run("G0A/release", check=False)
    assert not result.success
    assert f"RECALLED: release {PACKAGE} was recalled (DUA)" in platform.failure(result)
    assert platform.packages() == []


def test_a_recall_is_loud(platform: Any) -> None:
    """Claim: the check fails with the release and the reason in words, the log has it as an error, and the package no
    longer verifies."""
    assert platform.check("G0A/release", "package_verifies").passed
    change_tag(platform)
    result = job(platform)
    recall = checks(result)["register: no_recall"]
    assert (recall.passed, recall.severity) == (False, dg.AssetCheckSeverity.ERROR)
    said = f"{PACKAGE} is RECALLED: the data use agreement of its cohort is no longer reviewed for release (DUA)"
    assert said in recall.description
    assert any(e.level >= 40 and said in e.user_message for e in platform.instance.all_logs(result.run_id))
    evaluated = platform.check("G0A/release", "package_verifies")
    assert (evaluated.passed, said in evaluated.description) == (False, True)


def test_one_damaged_package_recalls_no_other(platform: Any) -> None:
    """Claim: a package without its ledger.json makes the whole ledger unverifiable for new spending, but is no fault of
    another release."""
    other = package(platform).with_name("tiny-G0A-eps9")
    shutil.copytree(package(platform), other)
    enter(platform, other)
    look(platform)
    (other / "ledger.json").unlink()
    assert not platform.ledger.verify().ok
    look(platform)
    assert statuses(platform) == {PACKAGE: "PUBLISHED", "tiny-G0A-eps9": "RECALLED"}


def test_leaking_rows_are_recalled_by_the_attacks(platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: where the training rows are the published rows themselves, every attack tells them from the others, and
    the evidence recalls the release within two looks, with LEAKAGE."""
    real, reference = (
        platform.read("normalized/attacked", plan=None),
        platform.read("public/reference", plan=None),
    )
    table = platform.read("G0A/synthetic")
    published = encode_replicates(table, platform.spec(), reference.encoder)[0]
    train = np.flatnonzero(real.split == "train")
    x = real.x.copy()
    x[train] = published.x[: len(train)]
    leaking = (platform.spec(), reference, replace(real, x=x))
    monkeypatch.setattr(HomeHoldings, "rows", lambda *_: leaking)
    look(platform)
    look(platform)
    assert released(platform).reasons == ("LEAKAGE",)


# --- notes and hindrances: nothing is recalled for what cannot be read -----------------------------------------------


def test_another_eligible_decision_is_noted(platform: Any) -> None:
    """Claim: a further note in cohort.yaml, judged again, supersedes the package's decision without recalling it."""
    decision = platform.read("G0A/decision")
    platform.overwrite("G0A/decision", decision | {"notes": [*decision["notes"], "NO_PRIVATE_LIFT"]})
    assert look(platform).recalled == {}
    assert "SUPERSEDED" in released(platform).findings


def test_a_lost_anchor_is_noted(platform: Any) -> None:
    (platform.home.root / "ledger.sqlite.head").unlink()
    look(platform)
    assert (released(platform).status, "ANCHOR_LOST" in released(platform).findings) == ("PUBLISHED", True)


def test_an_audit_that_changed_its_mind_recalls_nothing(platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: where the audit does not confirm the very evidence that its stored report confirmed, a person has to look:
    the look stays open, and the release is not recalled for an update of the audit."""
    failing = replace(audit_module.audit({}, {}), evidence_sha256=platform.read("audit/report")["evidence_sha256"])
    monkeypatch.setattr(register_module, "audit", lambda *_, **__: failing)
    assert look(platform).hindered == {PACKAGE: ("AUDIT_DISAGREES",)}


def swap_members(platform: Any) -> None:
    """Splits dealt out anew: the attacks would look for members among rows that were none."""
    rows = platform.read("normalized/attacked", plan=None)
    split = np.random.default_rng(0).permutation(rows.split)
    platform.overwrite("normalized/attacked", replace(rows, split=split), plan=None)


def test_rows_are_held_to_what_the_ledger_charged(platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: where the cohort's files and the stored rows were exchanged together, the ledger still names the members
    it charged."""
    true = register_module.stage_of_files

    def exchanged(*place: Any) -> Stage:
        stage = true(*place)
        return replace(stage, rows=replace(stage.rows, split=np.random.default_rng(0).permutation(stage.rows.split)))

    monkeypatch.setattr(register_module, "stage_of_files", exchanged)
    stage = exchanged(platform.spec(), platform.registry.folder("tiny"))
    platform.overwrite("normalized/attacked", stage.attacked, plan=None)
    assert look(platform).hindered == {PACKAGE: ("ROWS_REPLACED",)}


def test_a_look_follows_the_terms_of_the_publication(platform: Any) -> None:
    """Claim: attacks struck out of cohort.yaml after the release are used all the same."""
    platform.edit(lambda document: document["gates"].update(attacks=["A2"], neighbours=1))
    look(platform)
    with sqlite3.connect(platform.home.root / "restricted" / "register.sqlite") as connection:
        [(log_e,)] = connection.execute("SELECT log_e FROM release_looks WHERE state = 'finished'").fetchall()
    connection.close()
    assert set(json.loads(log_e)) == set(released(platform).terms.attacks) > {"A2"}


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (lambda p: shutil.rmtree(p.folder("normalized/attacked", plan=None)), "ARTEFACTS_UNREADABLE"),
        (lambda p: shutil.rmtree(p.folder("audit/evidence")), "NOT_AUDITED"),
        (swap_members, "ROWS_REPLACED"),
        (lambda p: (p.registry.folder("tiny") / "cohort.yaml").write_text("{", "utf-8"), "COHORT_UNREADABLE"),
        (lambda p: (p.home.root / "ledger.sqlite").write_bytes(b"no database" * 100), "LEDGER_UNREADABLE"),
    ],
    ids=["rows", "evidence", "other rows", "cohort", "ledger"],
)
def test_what_cannot_be_read_leaves_the_look_open(
    platform: Any, harm: Callable[[Any], object], code: str, tmp_path: Path
) -> None:
    """Claim: the release is named with the reason, nothing is recalled and no look is counted; once it can be read
    again the same look is finished."""
    kept = tmp_path / "kept"
    shutil.copytree(platform.home.root, kept)
    look(platform)
    harm(platform)
    if code == "LEDGER_UNREADABLE":
        for beside in platform.home.root.glob("ledger.sqlite-*"):
            beside.unlink()
    assert look(platform).hindered == {PACKAGE: (code,)}
    assert (released(platform).status, released(platform).looks) == ("PUBLISHED", 1)
    failed = looked_at_check({PACKAGE: [code]}, dg.AssetKey("register"))
    assert (failed.passed, f"({code})" in str(failed.description)) == (False, True)
    for name in ("ledger.sqlite", "cohort_folder/cohort.yaml"):
        shutil.copy(kept / name, platform.home.root / name)
    for folder in (platform.folder("normalized/attacked", plan=None), platform.folder("audit/evidence")):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(kept / folder.relative_to(platform.home.root), folder)
    assert look(platform).hindered == {}
    assert released(platform).looks == 2


# --- killed half-way -------------------------------------------------------------------------------------------------

DIES_WHILE_ATTACKING = """
import os, signal, sys
from pathlib import Path
from resources.home import SynthHome
from synth_platform.definitions import build_definitions
from synth_platform.release import reaudit

reaudit.look_log_e = lambda *rows, **options: os.kill(os.getpid(), signal.SIGKILL)
home = SynthHome(Path(sys.argv[1])).prepare()
build_definitions().resolve_job_def("reaudit").execute_in_process(instance=home.instance())
"""


def test_a_killed_re_audit_is_continued_and_counted_once(platform: Any) -> None:
    """Claim: SIGKILL while attacking leaves a started look; the next re-audit does that look, with its seed, and counts
    one; the one after it counts two."""
    died = subprocess.run(
        [sys.executable, "-c", DIES_WHILE_ATTACKING, str(platform.home.root)], capture_output=True, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    assert released(platform).looks == 0
    cut_short = register(platform).start_look(PACKAGE)
    look(platform)
    assert released(platform).looks == 1
    with sqlite3.connect(platform.home.root / "restricted" / "register.sqlite") as connection:
        rows = connection.execute("SELECT look, state, seed FROM release_looks ORDER BY id").fetchall()
    connection.close()
    assert rows == [(1, "started", f"{cut_short.seed:032x}"), (1, "finished", f"{cut_short.seed:032x}")]
    look(platform)
    assert released(platform).looks == 2


# --- from a shell ----------------------------------------------------------------------------------------------------


def synth(platform: Any, *arguments: str) -> Any:
    environment = {"SYNTH_HOME": str(platform.home.root)}
    return CliRunner().invoke(app, arguments, env=environment, catch_exceptions=False)


def test_from_a_shell(platform: Any) -> None:
    """Claim: `synth reaudit` looks now, exit code 0 while nothing is wrong and 1 with the reason when something is;
    `synth releases` lists the register without any figure of a look."""
    assert PACKAGE in synth(platform, "releases").stdout
    done = synth(platform, "reaudit", "--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["recalled"], document["hindered"]) == (0, {}, {})
    [listed] = json.loads(synth(platform, "releases", "--json").stdout)
    assert (listed["name"], listed["status"], listed["looks"]) == (PACKAGE, "PUBLISHED", 1)
    assert listed == document["releases"][0]
    assert not any(isinstance(value, float) for value in listed.values())
    change_tag(platform)
    done = synth(platform, "reaudit")
    assert done.exit_code == 1
    assert "no longer reviewed for release (DUA)" in done.stdout
    assert "RECALLED" in synth(platform, "releases").stdout


def test_no_figure_of_a_look_reaches_the_event_log(platform: Any) -> None:
    """Claim: log e-values are functions of private rows: they stand in the register and nowhere in an event."""
    result = job(platform)
    with sqlite3.connect(platform.home.root / "restricted" / "register.sqlite") as connection:
        [(log_e,)] = connection.execute("SELECT log_e FROM release_looks WHERE state = 'finished'").fetchall()
    connection.close()
    events = "\n".join(entry.to_json() for entry in platform.instance.all_logs(result.run_id))
    assert PACKAGE in events
    for figure in json.loads(log_e).values():
        assert f"{figure:.4f}"[:-1] not in events
