"""The independent audit on a real home: everything that was judged passes, every tampering is caught and named.

Whoever tampers here does it well: documents are sealed again, their locks and the hashes of the re-run gates made anew,
so that only recomputing can tell.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from resources.evidence import gather_evidence
from resources.home import HomeResource
from synth_platform.audit.ledger import row_hash
from synth_platform.audit.reading import digest, leaves
from synth_platform.audit.report import audit
from synth_platform.cli.main import app
from synth_platform.privacy.accounting import gaussian_epsilon
from synth_platform.release.conformance import conformance
from synth_platform.release.verdicts import unaudited

Document = dict[str, Any]
CODE, COPIES = "G0A", "S_COPY"


@pytest.fixture(scope="module")
def whole(finished) -> Document:
    """The evidence of the finished run."""
    return gather_evidence(HomeResource(root=str(finished.home.root)), finished.registry, "tiny", "eps8")


@pytest.fixture(scope="module")
def rules() -> Document:
    return conformance()


@pytest.fixture(scope="module")
def evidence(whole: Document) -> Document:
    """The evidence of one released table and one control, so that an audit takes a moment."""
    small = copy.deepcopy(whole)
    for code in set(small["generators"]) - {CODE, COPIES}:
        del small["generators"][code]
        for held in ("documents", "reruns"):
            small["locks"][held] = {n: v for n, v in small["locks"][held].items() if not n.startswith(f"{code}/")}
    return covered_up(small)


def covered_up(evidence: Document) -> Document:
    """Locks, re-runs, hash chain and body made to fit whatever the documents say now."""
    for code, generator in evidence["generators"].items():
        for name, document in generator["documents"].items():
            for held in ("documents", "reruns"):
                if f"{code}/{name}" in evidence["locks"][held]:
                    evidence["locks"][held][f"{code}/{name}"] = digest(document)
    before = "0" * 64
    for row in evidence["ledger"]["rows"]:
        row["previous_hash"] = before
        row["hash"] = before = row_hash(row)
    evidence["ledger"]["head"] = before
    return sealed(evidence)


def sealed(evidence: Document) -> Document:
    body = {key: value for key, value in evidence.items() if key != "body_sha256"}
    return body | {"body_sha256": digest(body)}


def at(document: Any, *path: str | int) -> Any:
    for key in path:
        document = document[key]
    return document


def put(*path: str | int, value: object) -> Callable[[Document], None]:
    def change(evidence: Document) -> None:
        at(evidence, *path[:-1])[path[-1]] = value

    return change


def other_grade(*path: str) -> Callable[[Document], None]:
    """The other grade of an eligible table: noise decides which of the two this run has."""

    def change(evidence: Document) -> None:
        inner = at(evidence, *path[:-1])
        inner[path[-1]] = ({"ELIGIBLE_POINT", "ELIGIBLE_CONFIRMED"} - {inner[path[-1]]}).pop()

    return change


def document(code: str, name: str, *path: str | int, value: object) -> Callable[[Document], None]:
    return put("generators", code, "documents", name, *path, value=value)


def of_entries(**cells: object) -> Callable[[Document], None]:
    """Change the rows of the first ledger entry that the released table rests on."""

    def change(evidence: Document) -> None:
        first = at(evidence, "generators", CODE, "state", "entries", 0)
        for row in at(evidence, "ledger", "rows"):
            if row["entry_id"] == first:
                row.update(cells)

    return change


def flipped(evidence: Document) -> None:
    """A copy of training rows that was judged to be safe, in its gate and in its decision alike."""
    documents = evidence["generators"][COPIES]["documents"]
    for where in (documents["closest_record_gate"], documents["closest_record_gate"]["summary"]):
        where["status"] = "PASS"
    documents["decision"]["closest_record"]["status"] = "PASS"
    documents["decision"]["reasons"].remove("CLOSEST_RECORD_FAIL")


def forged(evidence: Document) -> None:
    """A copy of training rows that was decided to be eligible."""
    evidence["generators"][COPIES]["documents"]["decision"] |= {"decision": "ELIGIBLE_CONFIRMED", "reasons": []}


def moved(code: str, name: str, *path: str | int, by: float) -> Callable[[Document], None]:
    def change(evidence: Document) -> None:
        inner = at(evidence, "generators", code, "documents", name, *path[:-1])
        inner[path[-1]] = round(inner[path[-1]] + by, 6)

    return change


def truncated(*path: str | int) -> Callable[[Document], None]:
    def change(evidence: Document) -> None:
        at(evidence, "generators", CODE, "documents", *path).pop()

    return change


def cheaper(evidence: Document) -> None:
    """The plan's first entry is said to have had three times the noise: in the event, not in the scale."""
    first = at(evidence, "generators", CODE, "state", "entries", 0)
    for row in at(evidence, "ledger", "rows"):
        if row["entry_id"] == first:
            event = json.loads(row["event"])
            event["noise_multiplier"] *= 3
            row["event"] = json.dumps(event)


def dearer(evidence: Document) -> None:
    """The canaries are said to have met half the noise that was paid for: whatever they prove is below that."""
    audited = at(evidence, "generators", CODE, "documents", "mechanism_audit")
    for events in audited["evidence"]["charged"]:
        for event in events:
            event["noise_multiplier"] /= 2
    mu = audited["summary"]["mu_claimed"] * 2
    audited["summary"] |= {"mu_claimed": mu, "epsilon_claimed": gaussian_epsilon(mu, audited["summary"]["delta"])}


TAMPERED: dict[str, tuple[str, Callable[[Document], None]]] = {
    "flipped status": (f"G3/{COPIES}/closest_record_gate/status", flipped),
    "flipped status, known": (f"G4/{COPIES}/known/closest_record", flipped),
    "flipped utility": (
        f"G3/{CODE}/utility_gate/auroc/status",
        document(CODE, "utility_gate", "summary", "endpoints", "auroc", "status", value="FAIL_SKILL"),
    ),
    "changed score": (
        f"G3/{CODE}/membership_gate/A1/auroc",
        document(CODE, "membership_gate", "evidence", "scores", "A1", "members", 0, value=9.0),
    ),
    "changed class score": (
        f"G3/{CODE}/utility_gate/auroc/trtr",
        document(CODE, "utility_gate", "evidence", "arms", "real", "scores", 0, value=[99.0, -99.0, 99.0]),
    ),
    "changed risk": (
        f"G3/{CODE}/utility_gate/c_index/tstr",
        document(CODE, "utility_gate", "evidence", "arms", "synthetic_2", "risk", 3, value=1e3),
    ),
    "changed importance": (
        f"G3/{CODE}/utility_gate/spearman/trtr",
        document(CODE, "utility_gate", "evidence", "arms", "real", "importance", 0, value=1e6),
    ),
    "changed distance": (
        f"G3/{COPIES}/closest_record_gate/duplicates",
        document(COPIES, "closest_record_gate", "evidence", "synthetic_to_train", 0, value=5.0),
    ),
    "changed guess": (
        f"G3/{CODE}/inference_gate/singling_out/train",
        document(CODE, "inference_gate", "evidence", "singled_out", "train", value=[1] * 137),
    ),
    "better bound": (
        f"G3/{CODE}/membership_gate/A2/upper",
        moved(CODE, "membership_gate", "summary", "attacks", "A2", "upper", by=-0.01),
    ),
    "changed canary": (
        f"G3/{CODE}/mechanism_audit/mu_lower_bound",
        document(CODE, "mechanism_audit", "summary", "mu_lower_bound", value=0.01),
    ),
    "canaries of another cost": (f"G3/{CODE}/mechanism_audit/charged", dearer),
    "canaries of another plan": (
        f"G3/{CODE}/mechanism_audit/plan/epsilon",
        document(CODE, "mechanism_audit", "evidence", "epsilon", value=1.0),
    ),
    "forged decision": (f"G4/{COPIES}/decision/grade", forged),
    "forged decision, unpaid": (f"G4/{COPIES}/decision/paid", forged),
    "forged release": (
        f"G4/{CODE}/package/decision/decision",
        other_grade("packages", CODE, "decision", "decision"),
    ),
    "forged package file": (
        f"G4/{CODE}/package/table.csv/sha256",
        put("packages", CODE, "files", "table.csv", value="0" * 64),
    ),
    "published cost": (
        f"G4/{CODE}/package/ledger/epsilon_pld",
        put("packages", CODE, "ledger", "cost", "epsilon_pld", value=1.0),
    ),
    "changed ledger noise": ("/noise_multiplier", of_entries(scale=1.0)),
    "under-reported noise multiplier": ("/noise_multiplier", cheaper),
    "under-reported cost": (
        f"G2/{CODE}/ledger/epsilon_pld",
        document(CODE, "decision", "ledger", "epsilon_pld", value=0.5),
    ),
    "seeded noise": (f"G2/{CODE}/ledger/status", of_entries(noise_source="seeded")),
    "hidden private access": (
        f"G2/{COPIES}/ledger/status",
        put("generators", COPIES, "state", "unledgered", value=[]),
    ),
    "truncated scores": (
        f"G3/{CODE}/membership_gate/A1/scores.A1.members",
        truncated("membership_gate", "evidence", "scores", "A1", "members"),
    ),
    "truncated distances": (
        f"G3/{CODE}/closest_record_gate/synthetic_to_train",
        truncated("closest_record_gate", "evidence", "synthetic_to_train"),
    ),
    "truncated test features": (
        f"G3/{CODE}/utility_gate/test_features",
        truncated("utility_gate", "evidence", "test_features"),
    ),
    "smaller table": (f"G3/{CODE}/tables/1", put("generators", CODE, "tables", "1", value=20)),
    "looser limit": (
        f"G3/{CODE}/membership_gate/membership_limit",
        document(CODE, "membership_gate", "evidence", "membership_limit", value=0.9),
    ),
    "removed document": (
        f"G1/{CODE}/membership_gate/present",
        lambda evidence: at(evidence, "generators", CODE, "documents").pop("membership_gate"),
    ),
    "free text": (
        "G1/generators/codes",
        document(CODE, "decision", "notes", value=["seen by Dr Smith on the ward"]),
    ),
    "another cohort": (f"G4/{CODE}/decision/cohort", document(CODE, "decision", "cohort", value="other")),
}


def failures(evidence: Document, rules: Document) -> list[str]:
    return [check.name for check in audit(evidence, rules).failures]


def test_everything_that_was_judged_passes(whole: Document, rules: Document) -> None:
    report = audit(whole, rules, expected={"cohort": "tiny", "plan": "eps8"})
    assert report.ok, report.failures
    counts = report.counts
    assert {"hash", "registration", "free_text"} <= set(counts["G1"])
    assert {"ledger_chain", "rdp", "pld", "release_rule", "schema_case"} <= set(counts["G2"])
    assert {"auroc", "delong", "c_index", "macro_f1", "spearman", "clopper_pearson", "jackknife"} <= set(counts["G3"])
    assert {"known_verdict", "decision", "rerun", "package"} <= set(counts["G4"])
    names = [check.name for check in report.checks]
    assert len(names) == len(set(names)), "a name stands for one check"


def test_the_small_evidence_passes(evidence: Document, rules: Document) -> None:
    assert failures(evidence, rules) == []


@pytest.mark.parametrize("what", TAMPERED)
def test_every_tampering_is_caught_and_named(what: str, evidence: Document, rules: Document) -> None:
    name, tamper = TAMPERED[what]
    changed = copy.deepcopy(evidence)
    tamper(changed)
    found = failures(covered_up(changed), rules)
    assert any(failure == name or (name.startswith("/") and failure.endswith(name)) for failure in found), found


def test_the_mechanism_audit_of_another_generator_is_named(whole: Document, rules: Document) -> None:
    """At one plan two generators cost nearly the same: the document itself says whose canaries it is about."""
    changed = copy.deepcopy(whole)
    documents = {code: changed["generators"][code]["documents"] for code in ("G0", "G0A")}
    documents["G0A"]["mechanism_audit"] = copy.deepcopy(documents["G0"]["mechanism_audit"])
    assert "G3/G0A/mechanism_audit/generator" in failures(covered_up(changed), rules)


def test_evidence_of_another_cohort_or_plan_is_named(evidence: Document, rules: Document) -> None:
    report = audit(evidence, rules, expected={"cohort": "other", "plan": "eps1"})
    assert {"G1/scope/cohort", "G1/scope/plan"} == {check.name for check in report.failures}


def test_a_document_of_another_registration_is_named(evidence: Document, rules: Document) -> None:
    changed = copy.deepcopy(evidence)
    at(changed, "generators", CODE, "documents", "utility_gate")["registration"] = "0" * 64
    assert f"G1/{CODE}/utility_gate/registration" in failures(covered_up(changed), rules)


def test_a_document_that_the_gate_does_not_say_again_is_named(evidence: Document, rules: Document) -> None:
    """Every figure may be possible: that this table gives them is told by running the gate again, to the byte."""
    changed = copy.deepcopy(evidence)
    changed["locks"]["reruns"][f"{CODE}/utility_gate"] = "0" * 64
    assert failures(sealed(changed), rules) == [f"G4/{CODE}/utility_gate/rerun"]


def test_an_unsealed_change_breaks_the_body(evidence: Document, rules: Document) -> None:
    changed = copy.deepcopy(evidence)
    changed["generators"][CODE]["violations"] += 1
    assert "G1/body" in failures(changed, rules)


def numbers(evidence: Document) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(kind, path) of numbers in documents: all summary figures, and an even sample of every array."""
    for code, generator in evidence["generators"].items():
        for name, held in generator["documents"].items():
            paths = [
                path for path, value in leaves(held) if isinstance(value, (int, float)) and not isinstance(value, bool)
            ]
            summary = [path for path in paths if path[0] != "evidence"]
            arrays = [path for path in paths if path[0] == "evidence"]
            yield from (("figure", (code, name, *path)) for path in summary)
            yield from (("array", (code, name, *path)) for path in arrays[:: max(1, len(arrays) // 40)])


def with_changed(evidence: Document, path: tuple[str, ...]) -> Document:
    changed = copy.deepcopy(evidence)
    code, name, *inside = path
    inner = changed["generators"][code]["documents"][name]
    for key in inside[:-1]:
        inner = inner[int(key)] if isinstance(inner, list) else inner[key]
    last = int(inside[-1]) if isinstance(inner, list) else inside[-1]
    inner[last] += 1e-5 if isinstance(inner[last], float) else 1
    return changed


def test_any_changed_number_breaks_the_lock_of_its_document(evidence: Document, rules: Document) -> None:
    """Sealed again, but not locked again: the document is not the one that was stored, whatever its figures say."""
    for _, path in list(numbers(evidence))[::80]:
        code, name, *_ = path
        assert f"G1/{code}/{name}/sha256" in failures(sealed(with_changed(evidence, path)), rules)


def test_any_changed_figure_is_recomputed(evidence: Document, rules: Document) -> None:
    """Even where locks, re-runs and body were made to fit: each figure follows from arrays or other documents."""
    figures = [path for kind, path in numbers(evidence) if kind == "figure"]
    unnoticed = [p for p in figures[::37] if not failures(covered_up(with_changed(evidence, p)), rules)]
    assert unnoticed == []


def test_the_report_is_of_the_documents_a_release_rests_on(finished) -> None:
    report = finished.read("audit/report")
    decision = finished.read(f"{CODE}/decision")
    assert report["scope"] == {"cohort": "tiny", "plan": "eps8", "domain": "tiny"}
    power = finished.read("gates/power", plan=None)
    assert unaudited({f"{CODE}/decision": decision, "gates/power": power}, report) == []
    changed = {f"{CODE}/decision": {**decision, "decision": "BLOCKED"}, "gates/power": {**power, "status": "?"}}
    assert unaudited(changed, report) == list(changed)


def test_the_check_names_what_fails_and_no_figure(platform) -> None:
    """A verdict that is edited where it lies is found by the next audit, and nothing is released on it."""
    gate = platform.read(f"{CODE}/closest_record_gate")
    figure = gate["summary"]["train_closer"]
    gate["summary"]["train_closer"] = round(figure + 0.123456, 6)
    platform.overwrite(f"{CODE}/closest_record_gate", gate)
    result = platform.run("audit/evidence", "audit/report", check=False)
    [evaluation] = [c for c in result.get_asset_check_evaluations() if c.check_name == "audit_passes"]
    assert not evaluation.passed
    assert f"G3/{CODE}/closest_record_gate/train_closer (share)" in evaluation.description
    assert f"G4/{CODE}/closest_record_gate/rerun (rerun)" in evaluation.description
    assert str(figure) not in evaluation.description
    assert str(gate["summary"]["train_closer"]) not in evaluation.description


def test_the_command_builds_evidence_anew(platform) -> None:
    def synth(*arguments: str) -> Any:
        environment = {"SYNTH_HOME": str(platform.home.root)}
        return CliRunner().invoke(app, ["audit", *arguments], env=environment, catch_exceptions=False)

    said = synth("tiny", "--json")
    assert said.exit_code == 0, said.output
    [report] = json.loads(said.stdout)
    assert (report["status"], report["stored_report"]) == ("PASS", "CURRENT")

    decision = platform.read(f"{CODE}/decision")
    platform.overwrite(f"{CODE}/decision", {**decision, "notes": []})
    said = synth()
    assert said.exit_code == 1
    assert f"FAILED G4/{CODE}/decision/notes" in said.stdout
    assert f"FAILED {CODE}/decision: not the document that audit/report is about" in said.stdout


def test_a_number_that_no_figure_shows_is_still_another_document(platform) -> None:
    """Claim: a changed array element that leaves every figure and check as it was ends `synth audit` with 1, by name;
    a file altered under its hash is named as damaged, with every other one, and is no bad input."""
    environment = {"SYNTH_HOME": str(platform.home.root)}
    document = platform.read(f"{CODE}/mechanism_audit")
    document["evidence"]["canaries"][0]["members"][0] += 1e-6
    platform.overwrite(f"{CODE}/mechanism_audit", document)
    said = CliRunner().invoke(app, ["audit", "tiny"], env=environment, catch_exceptions=False)
    assert said.exit_code == 1
    assert f"FAILED {CODE}/mechanism_audit: not the document that audit/report is about" in said.stdout

    for name in ("membership_gate", "utility_gate"):
        [file] = [f for f in platform.folder(f"{CODE}/{name}").iterdir() if f.name != "content.json"]
        file.write_bytes(file.read_bytes().replace(b"PASS", b"pass"))
    said = CliRunner().invoke(app, ["audit", "tiny"], env=environment, catch_exceptions=False)
    assert said.exit_code == 1
    assert said.stdout.count("FAILED G1/artefacts (hash)") == 2
