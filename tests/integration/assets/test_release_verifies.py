"""The release asset trusts nothing it was handed: whatever was altered since the decision stands in its way."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import dagster as dg
import numpy as np
import polars as pl
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationTargetMaterializationData
from upath import UPath

from assets.releases import COHORT_CHECKS, required_checks
from checks.schema import SCHEMA
from checks.verdicts import VERDICT
from resources.artefacts import CONTENT, artefact_fingerprint
from resources.home import HomeResource
from resources.ledger import LedgerResource, NoiseResource
from resources.private import fingerprint_key
from synth_platform.contract.tables import of_split, to_wide
from synth_platform.evaluation.gates import GATES, INFERENCE_GATE
from synth_platform.generators.registry import sample
from synth_platform.normalize.replicates import SEED, draw_replicates
from synth_platform.privacy.fingerprint import KEY_BYTES, FingerprintKey, canonical_json, sha256_hex
from synth_platform.release.assess import assess
from synth_platform.release.rederive import NotRederivedError, require_rederived
from synth_platform.release.verdicts import verdict_names
from synth_platform.sources.virtual import draw_cohort

PLAN_KEY = "eps8"


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


def evaluate(platform: Any, asset: str, check: str, *, passed: bool, record: Any, plan: str | None = PLAN_KEY) -> None:
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
            partition=str(platform.partition(plan)),
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
    said = refused(platform)
    assert "cohort.yaml changed since G0A was judged (" in said
    assert "membership_gate" in said


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


def test_a_package_whose_decision_no_longer_stands_is_noticed(platform: Any) -> None:
    """Claim: `package_verifies` fails when the latest decision is BLOCKED, or another one than the package holds."""
    platform.edit(lambda document: document["gates"].update(membership_limit=0.9))
    platform.run("gates/power", plan=None)
    platform.run(*VERDICTS, "G0A/decision")
    evaluated = platform.check("G0A/release", "package_verifies")
    assert not evaluated.passed
    assert "the standing decision is not the one in tiny-G0A-eps8" in evaluated.description
    platform.edit(lambda document: document.update(dua_tag="RESTRICTED"))
    platform.run("G0A/decision", "G0A/release")
    assert platform.packages() == ["tiny-G0A-eps8"]
    evaluated = platform.check("G0A/release", "package_verifies")
    assert not evaluated.passed
    assert "the standing decision is BLOCKED: DUA_NOT_REVIEWED; withdraw tiny-G0A-eps8" in evaluated.description


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


# --- everything in the restricted zone rewritten alike ---------------------------------------------------------------


def report_as_made(platform: Any, *artefacts: str) -> None:
    """Report rewritten artefacts as materialised from one another, with every check on G0A passed."""
    key = fingerprint_key(HomeResource(root=str(platform.home.root)))

    def plan_of(asset: str) -> str | None:
        return PLAN_KEY if (platform.folder(asset) / CONTENT).exists() else None

    def stored(asset: str) -> str:
        return artefact_fingerprint(UPath(platform.folder(asset, plan=plan_of(asset))), key)

    for asset in artefacts:
        plan = plan_of(asset)
        metadata = dict(platform.latest(asset, plan=plan).asset_materialization.metadata)
        inputs = {source: stored(source) for source in metadata["input_fingerprints"].value}
        platform.instance.report_runless_asset_event(
            dg.AssetMaterialization(
                asset.split("/"),
                partition=str(platform.partition(plan)),
                metadata=metadata | {"fingerprint": stored(asset), "input_fingerprints": dg.MetadataValue.json(inputs)},
            )
        )
    for check in (*required_checks("G0A", platform.spec()), *COHORT_CHECKS):
        asset = check.asset_key.to_user_string()
        plan = plan_of(asset)
        evaluate(platform, asset, check.name, passed=True, record=platform.latest(asset, plan=plan), plan=plan)


def with_private_rows(platform: Any, tables: pl.DataFrame) -> pl.DataFrame:
    """The first rows of every table replaced by private rows, under the keys of generated ones."""
    drawn = to_wide(of_split(draw_cohort(platform.spec()), "train"))
    count = drawn.height
    columns = [name for name in tables.columns if name not in (SEED, "row_key")]
    forged = []
    for seed in platform.spec().synthetic.seeds:
        table = tables.filter(pl.col(SEED) == seed)
        private = pl.concat([table[:count].select(SEED, "row_key"), drawn.select(columns)], how="horizontal")
        forged.append(pl.concat([private.select(table.columns).cast(dict(table.schema)), table[count:]]))
    return pl.concat(forged)


def judged_again(platform: Any) -> None:
    """Gates and decision as they would read over what is stored now, were every verdict a good one."""
    spec, tables = platform.spec(), platform.read("G0A/synthetic")
    reference, real, attacked = (
        platform.read(name, plan=None)
        for name in ("public/reference", "normalized/batch_corrected", "normalized/attacked")
    )
    good = platform.read("G0A/decision")
    documents = {name: platform.read(f"G0A/{name}") for name in verdict_names("G0A")}
    for gate in (*GATES, INFERENCE_GATE):
        document = json.loads(json.dumps(gate.judge(spec, reference, real, attacked, tables)))
        document["status"] = document["summary"]["status"] = documents[gate.name]["status"]
        # The scores would contradict the promise: the forger keeps the old ones.
        document["evidence"] = documents[gate.name]["evidence"]
        platform.overwrite(f"G0A/{gate.name}", document)
        documents[gate.name] = document
    home = HomeResource(root=str(platform.home.root))
    ledger = LedgerResource(url=platform.home.ledger_url, home=home, noise=NoiseResource())
    decision = assess(
        spec=spec,
        code="G0A",
        plan_key=PLAN_KEY,
        tables=tables,
        state=platform.read("G0A/checkpoint"),
        verdicts=documents,
        power=platform.read("gates/power", plan=None),
        ledger=ledger.ledger(),
        store=ledger.store(),
    ).as_dict()
    assert decision["decision"] == good["decision"]
    platform.overwrite("G0A/decision", json.loads(json.dumps(decision)))
    audited(platform)


def audited(platform: Any) -> None:
    """The audit's report as it would read, had it found nothing wrong with the documents that lie there now."""
    report = platform.read("audit/report")
    for name in (*verdict_names("G0A"), "decision"):
        report["documents"][f"G0A/{name}"] = sha256_hex(canonical_json(platform.read(f"G0A/{name}")))
    report["documents"]["gates/power"] = sha256_hex(canonical_json(platform.read("gates/power", plan=None)))
    platform.overwrite("audit/report", report)


VERDICTS = tuple(f"G0A/{name}" for name in verdict_names("G0A"))
JUDGED = ("gates/power", "G0A/synthetic", *VERDICTS, "G0A/decision", "audit/report")


def test_private_rows_in_the_tables_do_not_leave_whatever_was_rewritten_with_them(platform: Any) -> None:
    """Claim: private rows under generated keys, with verdicts, decision, materialisations and checks to match and the
    ledger untouched, are refused, because the table does not follow from the statistics the ledger paid for."""
    platform.overwrite("G0A/synthetic", with_private_rows(platform, platform.read("G0A/synthetic")))
    judged_again(platform)
    report_as_made(platform, *JUDGED)
    assert "G0A/synthetic does not follow from the statistics the ledger paid for" in refused(platform)


def test_private_donors_in_the_checkpoint_do_not_leave(platform: Any) -> None:
    """Claim: the same one stage earlier: the tables follow from a state that does not follow from the ledger."""
    spec, state = platform.spec(), platform.read("G0A/checkpoint")
    real = platform.read("normalized/batch_corrected", plan=None).where_split("train")
    donors = state.arrays["donor.x"].copy()
    donors[: len(real)] = real.x
    forged = replace(state, arrays={**state.arrays, "donor.x": donors})
    encoder = platform.read("public/reference", plan=None).encoder
    tables = draw_replicates(
        lambda seed: sample(forged, rows=spec.synthetic.rows, seed=seed), encoder, spec.synthetic.seeds
    )
    platform.overwrite("G0A/checkpoint", forged)
    platform.overwrite("G0A/synthetic", tables)
    judged_again(platform)
    report_as_made(platform, "G0A/checkpoint", *JUDGED)
    assert "G0A/checkpoint does not follow from the statistics the ledger paid for" in refused(platform)


def test_private_rows_in_the_public_reference_do_not_leave(platform: Any) -> None:
    """Claim: the same at the root: an encoder that turns every generated row into a private one is not the encoder of
    the steward's public rows, which are read again."""
    spec, reference = platform.spec(), platform.read("public/reference", plan=None)
    standardisation = reference.encoder.standardisation
    patient = platform.read("normalized/batch_corrected", plan=None).where_split("train").x[:1]
    narrow = replace(
        standardisation, mean=standardisation.invert(patient)[0], scale=np.full_like(standardisation.scale, 1e-6)
    )
    encoder = replace(reference.encoder, standardisation=narrow)
    state = platform.read("G0A/checkpoint")
    tables = draw_replicates(
        lambda seed: sample(state, rows=spec.synthetic.rows, seed=seed), encoder, spec.synthetic.seeds
    )
    assert not tables.equals(platform.read("G0A/synthetic"))
    platform.overwrite("public/reference", replace(reference, encoder=encoder), plan=None)
    platform.overwrite("G0A/synthetic", tables)
    judged_again(platform)
    report_as_made(platform, "statistics/G0A", "G0A/checkpoint", *JUDGED)
    assert "public/reference does not follow from the public rows of the cohort's files" in refused(platform)


@pytest.mark.parametrize("stored", ["normalized/batch_corrected", "normalized/attacked"])
def test_forged_private_rows_are_refused(platform: Any, stored: str) -> None:
    """Claim: the rows that gates compare with are those of the steward's files: with the holdout rows replaced by
    training rows no judge would find anything."""
    real = platform.read(stored, plan=None)
    x = real.x.copy()
    outside = np.flatnonzero(real.split != "train")
    x[outside] = x[np.resize(np.flatnonzero(real.split == "train"), len(outside))]
    platform.overwrite(stored, replace(real, x=x), plan=None)
    judged_again(platform)
    report_as_made(platform, *JUDGED)
    assert f"{stored} does not follow from the rows of the cohort's files" in refused(platform)


def test_statistics_of_other_rows_are_refused(platform: Any) -> None:
    """Claim: the statistics must have been asked of the rows in the cohort's files, by the ledger's keyed name of them:
    under any other name the same statistics are refused."""
    home = HomeResource(root=str(platform.home.root))
    ledger = LedgerResource(url=platform.home.ledger_url, home=home, noise=NoiseResource())
    derive = partial(
        require_rederived,
        spec=platform.spec(),
        folder=platform.registry.folder("tiny"),
        code="G0A",
        plan_key=PLAN_KEY,
        reference=platform.read("public/reference", plan=None),
        tables=platform.read("G0A/synthetic"),
        state=platform.read("G0A/checkpoint"),
        verdicts={name: platform.read(f"G0A/{name}") for name in verdict_names("G0A")},
        power=platform.read("gates/power", plan=None),
        real=platform.read("normalized/batch_corrected", plan=None),
        attacked=platform.read("normalized/attacked", plan=None),
        ledger=ledger.ledger(),
        store=ledger.store(),
    )
    derive(key=fingerprint_key(home))
    with pytest.raises(NotRederivedError, match="no committed answer to this query of these rows"):
        derive(key=FingerprintKey(b"k" * KEY_BYTES))


def test_a_verdict_rewritten_with_its_decision_is_refused(platform: Any) -> None:
    """Claim: an honest table does not leave under another verdict than the one its gates give."""
    gate, decision = platform.read("G0A/closest_record_gate"), platform.read("G0A/decision")
    gate["summary"]["excess"] = decision["closest_record"]["excess"] = 0.01
    platform.overwrite("G0A/closest_record_gate", gate)
    platform.overwrite("G0A/decision", decision)
    audited(platform)
    report_as_made(platform, *JUDGED)
    assert "G0A/closest_record_gate does not follow from the statistics the ledger paid for" in refused(platform)


def test_power_that_was_written_by_hand_is_refused(platform: Any) -> None:
    """Claim: what the gates can tell is as little believed as what they said: it is looked at, audited, made again."""
    power = platform.read("gates/power", plan=None)
    power["evidence"]["seeds"][0] += 1
    platform.overwrite("gates/power", power, plan=None)
    said = refused(platform)
    assert "gates/power: is not what was materialised" in said
    assert "gates/power: the audit report is of another one" in said
    audited(platform)
    report_as_made(platform, *JUDGED)
    assert "gates/power does not follow from the rows of the cohort's files" in refused(platform)


def test_canaries_of_another_generator_are_refused(platform: Any) -> None:
    """Claim: G0's mechanism audit in G0A's place, with report and materialisations to match, releases nothing."""
    platform.overwrite("G0A/mechanism_audit", platform.read("G0/mechanism_audit"))
    audited(platform)
    report_as_made(platform, *JUDGED)
    assert "G0A/mechanism_audit is of another generator or plan" in refused(platform)
