"""From files to decisions through the real definitions, and what stands in the event log afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from checks.schema import SCHEMA
from synth_platform.contract.cohort_spec import CONTROLS, DP_GENERATORS
from synth_platform.definitions import build_definitions
from synth_platform.evaluation.controls import misjudged
from synth_platform.release.discovery import STAGES
from synth_platform.release.margins import MARGINS_STAGES

GRAPH = build_definitions().resolve_asset_graph()
# Governance assets belong to no cohort and have a job of their own: test_governance.
EVERY = sorted(k.to_user_string() for k in GRAPH.materializable_asset_keys if k.path[0] != "governance")
# So have lists of discoveries and censuses, with plans of their own: discovery/test_way, test_gwas, test_margins.
OTHERS = (*STAGES, *MARGINS_STAGES)
KEYS = [key for key in EVERY if key.split("/")[0] not in OTHERS]
# It reads whatever is stored under the plan by path; the audit's report names every document by its hash.
BY_PATH = "audit/evidence"
RELEASES = [f"{code}/release" for code in (*DP_GENERATORS, *OTHERS)]
# 15 % of copies are confirmed under the tiny cohort's wide limit of 0.72; the bundled cohort's is 0.55.
WIDE_LIMIT = {"S_MIX": ("copies must not be confirmed by membership",)}


def plan_of(asset: str) -> str | None:
    """The tests' plan where the asset has a plan dimension."""
    partitions = GRAPH.get(dg.AssetKey.from_user_string(asset)).partitions_def
    return "eps8" if isinstance(partitions, dg.MultiPartitionsDefinition) else None


@pytest.mark.parametrize("code", [*DP_GENERATORS, *CONTROLS])
def test_every_generator_ends_in_a_decision(finished: Any, code: str) -> None:
    """Claim: both jobs take a cohort to a decision on every registered generator, with reasons exactly if blocked."""
    decision = finished.read(f"{code}/decision", plan=plan_of(f"{code}/decision"))
    assert (decision["cohort"], decision["generator"]) == ("tiny", code)
    assert decision["decision"] in ("BLOCKED", "ELIGIBLE_POINT", "ELIGIBLE_CONFIRMED")
    assert (decision["decision"] == "BLOCKED") == bool(decision["reasons"])


@pytest.mark.parametrize("code", CONTROLS)
def test_controls_are_judged_as_they_must_be(finished: Any, code: str) -> None:
    """Claim: on the way through files, codecs and assets the controls keep their known verdicts, always BLOCKED."""
    decision = finished.read(f"{code}/decision", plan=None)
    assert misjudged(decision) == WIDE_LIMIT.get(code, ())
    assert "CONTROL_GENERATOR" in decision["reasons"]


def test_the_anchored_generator_is_released(finished: Any) -> None:
    """Claim: an eligible table leaves as one package, carrying exactly the entries that its statistics paid for."""
    assert finished.packages() == ["tiny-G0A-eps8"]
    paid = finished.metadata("statistics/G0A")["ledger_entries"]
    assert paid
    assert finished.metadata("G0A/release")["ledger_entries"] == paid
    assert {row["entry_id"] for row in finished.rows() if row["code"] and row["code"].startswith("G0A")} == set(paid)


@pytest.mark.parametrize("asset", EVERY)
def test_schema_checks_block(asset: str) -> None:
    """Claim: every asset but the releases carries a blocking schema check on its own partitions, the rejections table
    the contract check in its place."""
    key = dg.AssetKey.from_user_string(asset)
    name = "contract" if asset == "cohort/rejections" else "package_verifies" if asset in RELEASES else SCHEMA
    spec = GRAPH.get_check_spec(dg.AssetCheckKey(key, name))
    assert spec.blocking
    assert spec.partitions_def == GRAPH.get(key).partitions_def


@pytest.mark.parametrize("asset", KEYS)
def test_assets_say_what_they_are(finished: Any, asset: str) -> None:
    """Claim: every materialised asset has a code version, a zone, its keyed fingerprint and those of its inputs."""
    key = dg.AssetKey.from_user_string(asset)
    assert GRAPH.get(key).code_version
    if finished.latest(asset, plan_of(asset)) is None:
        assert asset == "G0/release", "only the release of a blocked table may be missing"
        return
    metadata = finished.metadata(asset, plan_of(asset))
    assert metadata["zone"] == "restricted"
    assert len(metadata["fingerprint"]) == 64
    parents = set() if asset == BY_PATH else GRAPH.get(key).parent_keys
    assert metadata["input_fingerprints"] == {
        parent.to_user_string(): finished.metadata(parent.to_user_string(), plan_of(parent.to_user_string()))[
            "fingerprint"
        ]
        for parent in parents
    }


@pytest.mark.parametrize("asset", [key for key in KEYS if key != "cohort/rejections" and key not in RELEASES])
def test_schema_checks_ran_as_errors(finished: Any, asset: str) -> None:
    """Claim: the schema check of every asset ran with severity ERROR, passed, and left a validation to look at."""
    key = dg.AssetKey.from_user_string(asset)
    plan = plan_of(asset)
    [record] = finished.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(key, SCHEMA), limit=2
    )
    evaluation = record.event.dagster_event.asset_check_evaluation_data
    assert evaluation.passed
    assert evaluation.severity == dg.AssetCheckSeverity.ERROR
    page = Path(str(evaluation.metadata["validation"].value))
    assert page.parts[-2 if plan is None else -3] == "tiny"
    assert "All expectations hold" in page.read_text(encoding="utf-8")


def test_controls_are_never_released() -> None:
    """Claim: there is no release asset of a control, so nothing can be asked to publish one."""
    released = {key.path[0] for key in GRAPH.materializable_asset_keys if key.path[-1] == "release"}
    assert released == {*DP_GENERATORS, *OTHERS}


def test_public_rows_cost_nothing(finished: Any) -> None:
    """Claim: S_PUBLIC stands with epsilon 0, bound 1/2 and no ledger entry; it is the only control that is OK."""
    ledger = finished.read("S_PUBLIC/decision", plan=None)["ledger"]
    assert ledger["status"] == "OK"
    assert (ledger["entries"], ledger["epsilon_rdp"], ledger["epsilon_pld"]) == ([], 0.0, 0.0)
    assert ledger["auroc_bound"] == 0.5
    for code in set(CONTROLS) - {"S_PUBLIC"}:
        assert finished.read(f"{code}/decision", plan=None)["ledger"]["status"] == "ABSENT"


def test_blocked_tables_are_not_published(finished: Any) -> None:
    """Claim: the release asset of a blocked table says why in the log and materialises nothing."""
    decision = finished.read("G0/decision")
    assert decision["decision"] == "BLOCKED"
    assert finished.latest("G0/release") is None
    run = finished.latest("G0/decision").run_id
    logged = [record.user_message for record in finished.instance.all_logs(run)]
    assert any("G0 is BLOCKED" in message and decision["reasons"][0] in message for message in logged)
