"""The release asset trusts nothing it was handed: whatever was altered since the decision stands in its way."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationTargetMaterializationData

from checks.schema import SCHEMA
from checks.verdicts import VERDICT


def refused(platform: Any) -> str:
    """Why G0A/release failed; nothing may have left."""
    platform.withdraw()
    result = platform.run("G0A/release", check=False)
    assert not result.success
    assert platform.packages() == []
    return str(platform.failure(result))


def test_a_release_can_be_made_again(platform: Any) -> None:
    """Claim (the others' control): nothing altered, nothing in the way; the same package, byte for byte."""
    before = {file.name: file.read_bytes() for file in (platform.home.released / "tiny-G0A-eps8").iterdir()}
    platform.withdraw()
    platform.run("G0A/release")
    after = {file.name: file.read_bytes() for file in (platform.home.released / "tiny-G0A-eps8").iterdir()}
    assert before == after


def evaluate(platform: Any, asset: str, check: str, *, passed: bool, record: Any) -> None:
    """Report a check evaluation for one materialisation, as the unauthenticated webserver would let anybody do."""
    platform.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey.from_user_string(asset),
            check_name=check,
            passed=passed,
            metadata={},
            target_materialization_data=AssetCheckEvaluationTargetMaterializationData(
                storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp
            ),
            partition=str(platform.partition()),
        )
    )


def test_a_failed_check_stands_in_the_way(platform: Any) -> None:
    """Claim: one failed evaluation for the latest materialisation is enough, whatever was said before it."""
    evaluate(platform, "G0A/membership_gate", VERDICT, passed=False, record=platform.latest("G0A/membership_gate"))
    assert "G0A/membership_gate: verdict: failed" in refused(platform)


def test_a_check_of_an_older_materialisation_does_not_count(platform: Any) -> None:
    """Claim: a materialisation without its own evaluation blocks, even with a forged newer pass for the old one."""
    old = platform.latest("G0A/synthetic")
    platform.instance.report_runless_asset_event(
        dg.AssetMaterialization(["G0A", "synthetic"], partition=str(platform.partition()))
    )
    evaluate(platform, "G0A/synthetic", SCHEMA, passed=True, record=old)
    assert "G0A/synthetic: schema: not evaluated for the latest materialisation" in refused(platform)


def test_a_table_drawn_after_its_verdicts_does_not_leave(platform: Any) -> None:
    """Claim: gates and decision speak of the tables they read; others, though schema-checked, are not released."""
    platform.edit(lambda document: document["synthetic"].update(rows=201))
    platform.run("G0A/synthetic")
    message = refused(platform)
    for judged in ("G0A/utility_gate", "G0A/closest_record_gate", "G0A/membership_gate", "G0A/decision"):
        assert f"{judged}: made from another G0A/synthetic" in message


def test_the_same_table_drawn_again_may_leave(platform: Any) -> None:
    """Claim: materialising again what is unchanged does not spoil a release, because content is compared, not time."""
    platform.run("G0A/synthetic")
    platform.withdraw()
    platform.run("G0A/release")
    assert platform.packages() == ["tiny-G0A-eps8"]


@pytest.mark.parametrize("asset", ["synthetic", "decision", "utility_gate"])
def test_an_altered_file_is_named(platform: Any, asset: str) -> None:
    """Claim: a byte changed in a stored artefact stops the release with the file's name."""
    folder = platform.folder(f"G0A/{asset}")
    file = max((f for f in folder.iterdir() if f.name != "content.json"), key=lambda f: f.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    message = refused(platform)
    assert "ArtefactError" in message
    assert file.name in message


def promote(document: dict[str, Any]) -> dict[str, Any]:
    """A blocked decision as its author would like it."""
    return document | {
        "decision": "ELIGIBLE_CONFIRMED",
        "reasons": [],
        "utility": {"status": "PASS_CONFIRMED"},
        "ledger": document["ledger"] | {"status": "OK", "reasons": []},
    }


def test_a_decision_edited_to_eligible_is_refused(platform: Any) -> None:
    """Claim: neither the verdict written into the stored decision, hashes and all, nor forged passes release G0."""
    assert platform.read("G0/decision")["decision"] == "BLOCKED"
    platform.overwrite("G0/decision", promote(platform.read("G0/decision")))
    for asset, check in (("G0/decision", "eligible"), ("G0/utility_gate", VERDICT)):
        evaluate(platform, asset, check, passed=True, record=platform.latest(asset))
    platform.withdraw()
    result = platform.run("G0/release", check=False)
    assert not result.success
    assert platform.packages() == []


def test_a_gate_edited_to_pass_is_refused(platform: Any) -> None:
    """Claim: a gate and the decision on it, rewritten alike with their hashes, are not what was materialised."""
    gate, decision = platform.read("G0A/membership_gate"), platform.read("G0A/decision")
    for summary in (gate["summary"], decision["membership"]):
        summary["attacks"]["A1"]["auroc"] = 0.5
    platform.overwrite("G0A/membership_gate", gate)
    platform.overwrite("G0A/decision", decision)
    assert "G0A/membership_gate: is not what was materialised" in refused(platform)


def statistic_files(platform: Any) -> list[Any]:
    """Stored releases of G0A's entries."""
    wanted = platform.metadata("statistics/G0A")["ledger_entries"]
    prints = [row["artefact_fingerprint"] for row in platform.rows() if row["entry_id"] in wanted]
    return [platform.home.restricted / "statistic_releases" / f"{p}.safetensors" for p in prints if p]


def flip(file: Any) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))


@pytest.mark.parametrize("harm", [flip, lambda file: file.unlink()], ids=["altered", "missing"])
def test_a_harmed_statistic_is_refused(platform: Any, harm: Callable[[Any], None]) -> None:
    """Claim: the release rests on statistics that are still what the ledger committed."""
    files = statistic_files(platform)
    assert files
    harm(files[-1])
    assert "no longer follows from its artefacts and the ledger" in refused(platform)


def tamper(platform: Any, statement: str) -> None:
    with sqlite3.connect(platform.home.root / "ledger.sqlite") as connection:
        for trigger in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger[0]}")
        table = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()[0]
        connection.execute(statement.format(table=table))
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {table} SET scale = scale * 2 WHERE id = 2",
        "DELETE FROM {table} WHERE id = (SELECT MAX(id) FROM {table})",
    ],
    ids=["altered", "cut"],
)
def test_a_tampered_ledger_is_refused(platform: Any, statement: str) -> None:
    """Claim: with a row altered or the tail cut off, nothing is released."""
    tamper(platform, statement)
    assert not platform.ledger.verify().ok
    assert "no longer follows from its artefacts and the ledger" in refused(platform)


def test_a_cohort_no_longer_reviewed_is_refused(platform: Any) -> None:
    """Claim: the data use agreement is read when the table leaves, not only when it was judged."""
    platform.edit(lambda document: document.update(dua_tag="RESTRICTED"))
    assert "no longer follows from its artefacts and the ledger" in refused(platform)


def test_a_registration_changed_since_the_verdicts_is_refused(platform: Any) -> None:
    """Claim: verdicts hold for the cohort.yaml they were made under. With other seeds another table would leave."""
    before = platform.edit(lambda document: None).registration
    changed = platform.edit(lambda document: document["synthetic"].update(seeds=[2, 1, 3, 4, 5]))
    assert changed.registration != before
    assert "cohort.yaml changed since G0A was judged; materialise its gates again" in refused(platform)


def test_a_further_plan_or_title_spoils_no_release(platform: Any) -> None:
    """Claim: what no verdict depends on may change: a new plan, another title."""
    platform.edit(lambda document: document["plans"].update(eps9={"epsilon": 9.0, "delta": 1e-5}))
    platform.edit(lambda document: document.update(title="Another title"))
    platform.withdraw()
    platform.run("G0A/release")
    assert platform.packages() == ["tiny-G0A-eps8"]


def test_an_altered_package_is_noticed(platform: Any) -> None:
    """Claim: `package_verifies` fails, by file name, for a package that is no longer what was published."""
    evaluated = platform.check("G0A/release", "package_verifies")
    assert evaluated.passed
    flip(platform.home.released / "tiny-G0A-eps8" / "table.csv")
    evaluated = platform.check("G0A/release", "package_verifies")
    assert not evaluated.passed
    assert "FILE_ALTERED: table.csv" in evaluated.description


def test_metadata_that_names_a_foreign_entry_is_noticed(platform: Any) -> None:
    """Claim: `ledger_reconciled` fails when the event log names an entry that the ledger does not hold."""
    assert platform.check("statistics/G0A", "ledger_reconciled").passed
    platform.instance.report_runless_asset_event(
        dg.AssetMaterialization(
            ["statistics", "G0A"], partition=str(platform.partition()), metadata={"ledger_entries": ["E-of-nobody"]}
        )
    )
    evaluated = platform.check("statistics/G0A", "ledger_reconciled")
    assert not evaluated.passed
    assert "entry E-of-nobody is not in the ledger" in evaluated.description
