"""The release of a list trusts nothing it was handed: whatever was altered since stands in its way, by name."""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationTargetMaterializationData
from upath import UPath

from checks.audit import AUDIT_PASSES
from checks.schema import SCHEMA
from checks.verdicts import ELIGIBLE
from resources.artefacts import artefact_fingerprint
from resources.home import HomeResource
from resources.ledger import statistic_store
from resources.private import fingerprint_key
from synth_platform.discovery.documents import discoveries_document
from synth_platform.privacy.fingerprint import canonical_json, sha256_hex
from synth_platform.release import discovery_rederive
from synth_platform.release.rederive import NotRederivedError

Document = dict[str, Any]
SUBTYPE, SMOKING = "subtype-mu3-alpha0.05", "smoking-mu3-alpha0.05"
DOCUMENTS = ("private_e_values", "discoveries", "decision")
CHECKS = [(name, SCHEMA) for name in (*DOCUMENTS, "audit")] + [("decision", ELIGIBLE), ("audit", AUDIT_PASSES)]


def refused(lists: Any, plan: str = SUBTYPE) -> str:
    """Why the list's release failed; nothing may have left."""
    lists.withdraw()
    result = lists.discover("discovery/release", plan=plan, check=False)
    assert not result.success
    assert lists.packages() == []
    return str(lists.failure(result))


def covered_up(lists: Any, plan: str = SUBTYPE) -> None:
    """Everything around the documents as it would read, were they honest: the audit's report is of them and passes,
    all are reported as made from one another, every check as passed."""
    stored = {name: lists.read(f"discovery/{name}", plan=plan) for name in (*DOCUMENTS, "audit")}
    hashes = {f"discovery/{name}": sha256_hex(canonical_json(stored[name])) for name in DOCUMENTS}
    lists.overwrite("discovery/audit", stored["audit"] | {"status": "PASS", "documents": hashes}, plan=plan)
    key = fingerprint_key(HomeResource(root=str(lists.home.root)))
    prints = {
        f"discovery/{name}": artefact_fingerprint(UPath(lists.folder(f"discovery/{name}", plan=plan)), key)
        for name in (*DOCUMENTS, "audit")
    }
    for asset, fingerprint in prints.items():
        metadata = dict(lists.latest(asset, plan=plan).asset_materialization.metadata)
        inputs = {name: prints.get(name, old) for name, old in metadata["input_fingerprints"].value.items()}
        metadata |= {"fingerprint": fingerprint, "input_fingerprints": dg.MetadataValue.json(inputs)}
        lists.instance.report_runless_asset_event(
            dg.AssetMaterialization(asset.split("/"), partition=str(lists.partition(plan)), metadata=metadata)
        )
    for name, check in CHECKS:
        evaluate(lists, f"discovery/{name}", check, passed=True, plan=plan)


def evaluate(lists: Any, asset: str, check: str, *, passed: bool, plan: str = SUBTYPE) -> None:
    """Report a check evaluation for the latest materialisation, as the unauthenticated webserver would let anybody."""
    record = lists.latest(asset, plan=plan)
    lists.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey.from_user_string(asset),
            check_name=check,
            passed=passed,
            metadata={},
            target_materialization_data=AssetCheckEvaluationTargetMaterializationData(
                storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp
            ),
            partition=str(lists.partition(plan)),
        )
    )


def altered(lists: Any, name: str, change: Callable[[Document], None], plan: str = SUBTYPE) -> None:
    """Write another document in the place of a stored one, hashes and all."""
    document = copy.deepcopy(lists.read(f"discovery/{name}", plan=plan))
    before = canonical_json(document)
    change(document)
    assert canonical_json(document) != before
    lists.overwrite(f"discovery/{name}", document, plan=plan)


def test_a_release_can_be_made_again(lists: Any) -> None:
    """Claim (the others' control): nothing altered, nothing in the way, though the event log was written anew; the same
    package, byte for byte."""
    folder = lists.home.released / f"tiny-discovery-{SUBTYPE}"
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    covered_up(lists)
    lists.withdraw()
    lists.discover("discovery/release", plan=SUBTYPE)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


# --- altered, and nothing else ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_altered_document_is_not_what_was_materialised(lists: Any, name: str) -> None:
    """Claim: a document rewritten with its hashes is named, and so is the audit that was of another one."""
    altered(lists, name, lambda document: document.update(plan=SMOKING))
    said = refused(lists)
    assert f"discovery/{name}: is not what was materialised" in said
    assert f"discovery/{name}: the audit is of another one" in said


@pytest.mark.parametrize("name", ["discoveries", "audit"])
def test_an_altered_file_is_named(lists: Any, name: str) -> None:
    [file] = lists.folder(f"discovery/{name}", plan=SUBTYPE).glob("*document.json")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    said = refused(lists)
    assert "ArtefactError" in said
    assert file.name in said


def test_every_failed_check_stands_in_the_way(lists: Any) -> None:
    """Claim: each of the checks is required; a failed evaluation of the latest materialisation is enough."""
    for name, check in CHECKS:
        evaluate(lists, f"discovery/{name}", check, passed=False)
    said = refused(lists)
    for name, check in CHECKS:
        assert f"discovery/{name}: {check}: failed" in said


# --- altered with everything around it -------------------------------------------------------------------------------


def louder(document: Document) -> None:
    """The last of the list is discovered, by an e-value that nobody was told."""
    document["list"][-1] |= {"log_e": document["list"][0]["log_e"] - 1e-3, "discovered": True}


def generous(document: Document) -> None:
    """The same e-values; everything selected is called a discovery."""
    for line in document["list"]:
        line["discovered"] = True
    document["discoveries"] = len(document["list"])


def renamed(document: Document) -> None:
    document["list"][0]["feature"] = "TP53"


def other_level(document: Document) -> None:
    document["alpha"] = 0.01


def shorter(document: Document) -> None:
    del document["list"][-1]


def louder_e_value(document: Document) -> None:
    document["log_e"][0] += 1.0


def better_level(document: Document) -> None:
    document["fdr"]["level"] = 0.01


@pytest.mark.parametrize(
    ("name", "change"),
    [("private_e_values", louder_e_value), ("discoveries", generous), ("decision", better_level)],
    ids=DOCUMENTS,
)
def test_an_altered_document_does_not_follow(lists: Any, name: str, change: Callable[[Document], None]) -> None:
    """Claim: whatever a document says beyond the answers that were paid for is refused, though every document after it,
    the audit's report and the event log were made to fit; the first that differs is named."""
    altered(lists, name, change)
    if name == "private_e_values":
        e_values = lists.read("discovery/private_e_values", plan=SUBTYPE)
        lists.overwrite("discovery/discoveries", discoveries_document(e_values, 0.05), plan=SUBTYPE)
    covered_up(lists)
    assert f"discovery/{name} does not follow from the answers the ledger paid for" in refused(lists)


@pytest.fixture(scope="module")
def derive(discovered: Any) -> Callable[[dict[str, Document]], None]:
    """`require_list_rederived` on documents in the place of the stored ones, the cohort's files read once."""
    plan = discovered.spec().discovery_plan(SUBTYPE)
    asked = discovery_rederive.asked_of_files(discovered.spec(), discovered.registry.folder("tiny"), plan)
    key = fingerprint_key(HomeResource(root=str(discovered.home.root)))

    def run(documents: dict[str, Document]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(discovery_rederive, "asked_of_files", lambda *_: asked)
            discovery_rederive.require_list_rederived(
                spec=discovered.spec(),
                folder=discovered.registry.folder("tiny"),
                stage="discovery",
                plan=plan,
                documents=documents,
                ledger=discovered.ledger,
                store=statistic_store(discovered.home),
                key=key,
            )

    return run


def stored(discovered: Any) -> dict[str, Document]:
    return {name: copy.deepcopy(discovered.read(f"discovery/{name}", plan=SUBTYPE)) for name in DOCUMENTS}


def test_what_is_stored_follows(discovered: Any, derive: Any) -> None:
    """Claim (the next test's control)."""
    derive(stored(discovered))


CHANGES: dict[str, list[Callable[[Document], None]]] = {
    "private_e_values": [
        lambda d: d["log_e"].__setitem__(0, d["log_e"][0] * (1 + 2**-50)),
        lambda d: d.update(selected=[*d["selected"][1:], d["selected"][0]]),
        lambda d: d.update(positions=[*d["positions"][1:], d["positions"][0]]),
        lambda d: d.update(scale=d["scale"] / 2),
        lambda d: d.update(hypotheses=d["hypotheses"] - 1),
        lambda d: d.update(entries=d["entries"][1:]),
        lambda d: d.update(unledgered=["a look at the rows"]),
        lambda d: d["mu_parts"].update(values=0.5),
        lambda d: d["statistic"].update(sensitivity=0.1),
        lambda d: d["compared"].update(case=["S2"]),
        lambda d: d.update(comment="checked"),
    ],
    "discoveries": [louder, renamed, other_level, shorter, lambda d: d.update(log_threshold_of_one=0.0)],
    "decision": [
        lambda d: d["ledger"].update(epsilon_pld=1.0),
        lambda d: d.update(mu=1.0, epsilon=1.0),
        lambda d: d.update(registration="0" * 64),
        lambda d: d.update(notes=["CONFIRMED"]),
        lambda d: d["ledger"].update(entries=d["ledger"]["entries"][1:]),
    ],
}


@pytest.mark.parametrize(
    ("name", "change"), [(name, change) for name, changes in CHANGES.items() for change in changes]
)
def test_nothing_else_follows(discovered: Any, derive: Any, name: str, change: Callable[[Document], None]) -> None:
    """Claim: no field of any document may be another one, to the last bit."""
    documents = stored(discovered)
    change(documents[name])
    with pytest.raises(NotRederivedError, match=f"discovery/{name} does not follow from the answers"):
        derive(documents)


def test_another_plans_documents_are_refused(lists: Any) -> None:
    """Claim: the smokers' list in the subtypes' place, whole and honest in itself, is not this plan's."""
    for name in DOCUMENTS:
        lists.overwrite(f"discovery/{name}", lists.read(f"discovery/{name}", plan=SMOKING), plan=SUBTYPE)
    covered_up(lists)
    assert "discovery/private_e_values does not follow" in refused(lists)


def promote(document: Document) -> None:
    """A blocked decision as its author would like it."""
    document.update(decision="ELIGIBLE_FORMAL", reasons=[])
    document["ledger"].update(status="OK", reasons=[])


def test_a_blocked_list_edited_to_eligible_is_refused(lists: Any) -> None:
    """Claim: the data use agreement is read when the list leaves, whatever the stored decision says."""
    lists.edit(lambda document: document.update(dua_tag="RESTRICTED"))
    lists.discover("discovery/decision", plan=SUBTYPE)
    assert lists.read("discovery/decision", plan=SUBTYPE)["reasons"] == ["DUA_NOT_REVIEWED"]
    altered(lists, "decision", promote)
    covered_up(lists)
    assert "discovery/decision does not follow" in refused(lists)


def test_a_seeded_list_edited_to_eligible_is_refused(copy_of: Any) -> None:
    """Claim: e-values that a seeded source drew are none that anybody paid for, whatever was rewritten around them."""
    plan = "subtype-mu1-alpha0.05"
    seeded = copy_of(seeded=5)
    seeded.discover(*(f"discovery/{name}" for name in (*DOCUMENTS, "audit")), plan=plan)
    altered(seeded, "private_e_values", lambda document: document.update(seeded=False), plan=plan)
    altered(seeded, "decision", promote, plan=plan)
    covered_up(seeded, plan=plan)
    said = refused(seeded, plan=plan)
    assert "discovery/private_e_values: E_SIZE: the ledger holds no committed answer to this query" in said


def test_a_list_of_other_rows_is_refused(lists: Any) -> None:
    """Claim: the answers must be those of the rows that the cohort's files give now: other rows of the same world,
    under the same registration, are other rows."""
    plan, before = lists.spec().discovery_plan(SUBTYPE), lists.spec()
    after = lists.edit(lambda document: document["source"]["options"].update(row_seed=7))
    assert after.registration_of(plan) == before.registration_of(plan)
    assert "the ledger holds no committed answer to this query of these rows" in refused(lists)


def test_a_contrast_changed_since_is_refused(lists: Any) -> None:
    """Claim: a list is of the contrast as it is registered; with other cases it would be of other queries."""
    lists.edit(lambda document: document["discovery"]["contrasts"]["subtype"].update(case=["S2"]))
    assert "the ledger holds no committed answer" in refused(lists)


def test_what_a_list_does_not_depend_on_may_change(lists: Any) -> None:
    """Claim: a description, another contrast and the gates of synthetic tables spoil no list."""
    lists.edit(lambda document: document["discovery"]["contrasts"]["subtype"].update(description="Luminal"))
    lists.edit(lambda document: document["discovery"]["contrasts"].pop("survival"))
    lists.edit(lambda document: document["gates"].update(membership_limit=0.9))
    lists.withdraw()
    lists.discover("discovery/release", plan=SUBTYPE)
    assert lists.packages() == [f"tiny-discovery-{SUBTYPE}"]


# --- ledger and answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", ["altered", "missing"])
def test_a_harmed_answer_is_refused(lists: Any, harm: str) -> None:
    entry = lists.read("discovery/private_e_values", plan=SUBTYPE)["entries"][-1]
    [print_] = {row["artefact_fingerprint"] for row in lists.rows() if row["entry_id"] == entry} - {None}
    file = lists.home.restricted / "statistic_releases" / f"{print_}.safetensors"
    file.unlink() if harm == "missing" else file.write_bytes(file.read_bytes()[:-1] + b"x")
    said = refused(lists)
    assert entry in said
    assert harm in said


@pytest.mark.parametrize(
    "statement",
    ["UPDATE ledger SET scale = scale * 2 WHERE id = 2", "DELETE FROM ledger WHERE id = (SELECT MAX(id) FROM ledger)"],
    ids=["altered", "cut"],
)
def test_a_tampered_ledger_is_refused(lists: Any, statement: str) -> None:
    tamper(lists, statement)
    assert "does not verify" in refused(lists)


def tamper(lists: Any, statement: str) -> None:
    with sqlite3.connect(lists.home.root / "ledger.sqlite") as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement)
    connection.close()


# --- what stands after publication -----------------------------------------------------------------------------------


def test_an_altered_package_is_noticed(lists: Any) -> None:
    """Claim: `package_verifies` passes, and fails by file name for a package that is no longer what was published."""
    assert lists.check("discovery/release", "package_verifies", plan=SUBTYPE).passed
    table = lists.home.released / f"tiny-discovery-{SUBTYPE}" / "table.csv"
    table.write_text(table.read_text("utf-8").replace("true", "false"), "utf-8")
    evaluated = lists.check("discovery/release", "package_verifies", plan=SUBTYPE)
    assert (evaluated.passed, "FILE_ALTERED: table.csv" in evaluated.description) == (False, True)
    assert lists.check("discovery/release", "package_verifies", plan=SMOKING).passed


def test_a_decision_that_no_longer_stands_is_noticed(lists: Any) -> None:
    lists.edit(lambda document: document.update(dua_tag="RESTRICTED"))
    lists.discover("discovery/decision", plan=SUBTYPE)
    evaluated = lists.check("discovery/release", "package_verifies", plan=SUBTYPE)
    said = f"the standing decision is BLOCKED: DUA_NOT_REVIEWED; withdraw tiny-discovery-{SUBTYPE}"
    assert (evaluated.passed, evaluated.description) == (False, said)


def test_metadata_that_name_a_foreign_entry_are_noticed(lists: Any) -> None:
    """Claim: `ledger_reconciled` passes, and fails when the event log names an entry that the ledger does not hold."""
    assert lists.check("discovery/private_e_values", "ledger_reconciled", plan=SUBTYPE).passed
    partition = str(lists.partition(SUBTYPE))
    lists.instance.report_runless_asset_event(
        dg.AssetMaterialization(
            ["discovery", "private_e_values"], partition=partition, metadata={"ledger_entries": ["E-of-nobody"]}
        )
    )
    evaluated = lists.check("discovery/private_e_values", "ledger_reconciled", plan=SUBTYPE)
    assert (evaluated.passed, "entry E-of-nobody is not in the ledger" in evaluated.description) == (False, True)
