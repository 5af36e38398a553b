"""No entry, no release: what the ledger does not pay for makes the formal status ABSENT."""

from __future__ import annotations

import inspect
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
import pytest

from synth_platform.contract.cohort_spec import DP_GENERATORS
from synth_platform.definitions import build_definitions
from synth_platform.generators.build import make_generator
from synth_platform.normalize.closed import encode_closed
from synth_platform.privacy.ledger_chain import row_hash
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.release.assess import formal_verdict
from synth_platform.release.verdicts import verdict_names

GRAPH = build_definitions().resolve_asset_graph()
Rows = list[dict[str, Any]]


def behind(asset: str) -> set[str]:
    """Every asset upstream of `asset`."""
    found: set[dg.AssetKey] = set()
    waiting = [dg.AssetKey.from_user_string(asset)]
    while waiting:
        parents = set(GRAPH.get(waiting.pop()).parent_keys) - found
        found |= parents
        waiting += parents
    return {key.to_user_string() for key in found}


PAID = {
    code: [f"{code}/{name}" for name in ("synthetic", "checkpoint")] + [f"statistics/{code}"] for code in DP_GENERATORS
}


@pytest.mark.parametrize("code", DP_GENERATORS)
def test_one_door_from_private_rows_to_a_table(finished: Any, code: str) -> None:
    """Claim: from the private tables to a synthetic one there is one path, closed tables up to the statistics asset and
    ledgered artefacts from there on; whatever else stands behind the table was made of public rows."""
    path = behind(f"{code}/synthetic") | {f"{code}/synthetic"}
    closed = {name for name in path if not name.startswith((code, "statistics")) and is_closed(finished, name)}
    assert closed == {
        "normalized/matrix",
        *(f"cohort/{t}" for t in ("manifest", "expression", "methylation", "clinical")),
    }
    ledgered = set(PAID[code])
    assert path - closed - ledgered == {"public/reference", "public/rows"}
    for name in ledgered:
        readers = {p.to_user_string() for p in GRAPH.get(dg.AssetKey.from_user_string(name)).parent_keys}
        assert bool(readers & closed) == (name == f"statistics/{code}")
    for name in ("public/reference", "public/rows"):
        assert not behind(name) & closed


def is_closed(platform: Any, asset: str) -> bool:
    return isinstance(platform.read(asset, plan=None), PrivateTable)


@pytest.mark.parametrize("asset", [asset for assets in PAID.values() for asset in assets])
def test_every_paid_asset_names_what_paid(finished: Any, asset: str) -> None:
    """Claim: each asset between the private rows and the table carries the ids of all entries its generator asked for,
    and each of them is needed: without any single one the status is ABSENT."""
    code = asset.removeprefix("statistics/").split("/")[0]
    paid = [
        row["entry_id"] for row in finished.rows() if row["state"] == "committed" and row["code"].split("_")[0] == code
    ]
    entries = finished.metadata(asset)["ledger_entries"]
    assert len(entries) >= 3
    assert sorted(entries) == sorted(paid)


@pytest.mark.parametrize("code", DP_GENERATORS)
def test_every_single_entry_is_needed(platform: Any, code: str) -> None:
    """Claim: a ledger that is sound but lacks one entry, whichever, does not pay for the generator."""
    state = platform.read(f"{code}/checkpoint")
    verdicts = {name: platform.read(f"{code}/{name}") for name in verdict_names(code)}
    store = platform.definitions.resources["ledger"].store()

    def verdict() -> Any:
        return formal_verdict(platform.spec(), "eps8", state, verdicts, platform.ledger, store)

    assert verdict().status == "OK"
    original = read_rows(platform)
    for entry in state.entries:
        rebuild(platform, [row for row in original if row["entry_id"] != entry])
        assert platform.ledger.verify().ok
        assert verdict().status == "ABSENT"
        assert verdict().reasons == (f"ENTRY_MISSING:{entry}",)


def read_rows(platform: Any) -> Rows:
    with sqlite3.connect(platform.home.root / "ledger.sqlite") as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute(f"SELECT * FROM {table_of(connection)} ORDER BY id")]
    connection.close()
    return rows


def table_of(connection: sqlite3.Connection) -> str:
    return str(connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()[0])


def rebuild(platform: Any, rows: Rows) -> None:
    """Another ledger in the old one's place, chained and anchored as if it had never been otherwise, and no release
    there to say so."""
    platform.withdraw()
    for file in platform.home.root.glob("ledger.sqlite*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    assert platform.ledger.verify().rows == 0  # a new file with its table
    previous = platform.ledger.head_hash()
    with sqlite3.connect(platform.home.root / "ledger.sqlite") as connection:
        for number, old in enumerate(rows, start=1):
            row = old | {"id": number, "previous_hash": previous}
            row["hash"] = previous = row_hash(row)
            marks = ", ".join(f":{name}" for name in row)
            connection.execute(f"INSERT INTO {table_of(connection)} ({', '.join(row)}) VALUES ({marks})", row)
    connection.close()
    (platform.home.root / "ledger.sqlite.head").unlink()
    platform.ledger.anchor_anew()


def without_entries(rows: Rows) -> Rows:
    return [row for row in rows if row["state"] == "budget"]


def with_swapped_entries(rows: Rows) -> Rows:
    first, second = list(
        dict.fromkeys(row["entry_id"] for row in rows if row["code"] and row["code"].startswith("G0A"))
    )[:2]
    swap = {first: second, second: first}
    return [row | {"entry_id": swap.get(row["entry_id"], row["entry_id"])} for row in rows]


def uncommitted(rows: Rows) -> Rows:
    return [row for row in rows if row["state"] != "committed"]


@pytest.mark.parametrize("change", [without_entries, with_swapped_entries, uncommitted, lambda rows: []])
def test_another_ledger_does_not_pay(platform: Any, change: Callable[[Rows], Rows]) -> None:
    """Claim: with the entries gone, swapped, never committed or the ledger empty, though it verifies, the release is
    refused, and a new decision says ABSENT."""
    rebuild(platform, change(read_rows(platform)))
    assert platform.ledger.verify().ok
    result = platform.run("G0A/release", check=False)
    assert not result.success
    assert "no longer follows from its artefacts and the ledger" in platform.failure(result)
    platform.run("G0A/decision", "G0A/release")
    decision = platform.read("G0A/decision")
    assert (decision["ledger"]["status"], decision["decision"]) == ("ABSENT", "BLOCKED")
    assert "LEDGER_ABSENT" in decision["reasons"]
    assert platform.packages() == []


def test_a_generator_that_peeks_is_absent(platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: a generator that opens its training table beside its paid queries ends ABSENT, with the purpose named."""

    class Peeking:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def measure(self, ask: Any) -> Any:
            for found in inspect.getclosurevars(ask).nonlocals.values():
                if isinstance(found, PrivateTable):
                    found.open_for_gate("a look at the rows")
            return self._inner.measure(ask)

        def fit(self, releases: Any) -> Any:
            return self._inner.fit(releases)

    monkeypatch.setattr("assets.statistics.make_generator", lambda *arguments: Peeking(make_generator(*arguments)))
    platform.withdraw()
    platform.run("statistics/G0A", "G0A/checkpoint", "G0A/synthetic", "G0A/decision", "G0A/release")
    absent(platform, "UNLEDGERED_ACCESS:a look at the rows")


def test_a_peek_before_the_matrix_is_stored_is_absent(platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: an access stays on record when the closed table is stored and read again by another step: a stage that
    opens the rows on their way to the statistics makes everything after it ABSENT."""

    def peeking(tables: Mapping[str, PrivateTable[Any]], reference: Any) -> PrivateTable[Any]:
        tables["clinical"].open_for_gate("a look upstream")
        return encode_closed(tables, reference)

    monkeypatch.setattr("assets.normalized.encode_closed", peeking)
    platform.run("normalized/matrix", plan=None)
    platform.withdraw()
    platform.run("statistics/G0A", "G0A/checkpoint", "G0A/synthetic", "G0A/decision", "G0A/release")
    absent(platform, "UNLEDGERED_ACCESS:a look upstream")


def absent(platform: Any, reason: str) -> None:
    decision = platform.read("G0A/decision")
    assert (decision["ledger"]["status"], decision["decision"]) == ("ABSENT", "BLOCKED")
    assert reason in decision["ledger"]["reasons"]
    assert platform.packages() == []


def test_seeded_noise_never_leaves(copied: Any) -> None:
    """Claim: the same cohort under a seeded source is BLOCKED although every gate passes, and publishes nothing."""
    platform = copied(seeded=1)
    platform.withdraw()
    platform.ledger.set_budget("tiny", 60.0, 1e-5, change=True)
    platform.edit(lambda document: document["privacy"].update(budget={"epsilon": 60.0, "delta": 1e-5}))
    platform.run("gates/power", plan=None)
    platform.run(*PLAN)
    decision = platform.read("G0A/decision")
    gates = [decision[name]["status"] for name in ("utility", "closest_record", "membership")]
    assert [status.split("_")[0] for status in gates] == ["PASS", "PASS", "PASS"]
    assert decision["decision"] == "BLOCKED"
    assert decision["reasons"] == ["SEEDED_NOISE", "LEDGER_ABSENT"]
    assert platform.packages() == []


def test_a_data_use_agreement_must_be_reviewed(platform: Any) -> None:
    """Claim: another dua_tag blocks an otherwise eligible table, with its own code; nothing is published."""
    platform.withdraw()
    platform.edit(lambda document: document.update(dua_tag="RESTRICTED"))
    platform.run("G0A/decision", "G0A/release")
    decision = platform.read("G0A/decision")
    assert (decision["decision"], decision["reasons"]) == ("BLOCKED", ["DUA_NOT_REVIEWED"])
    assert platform.packages() == []


PLAN = (
    "statistics/G0A", "G0A/checkpoint", "G0A/synthetic", *(f"G0A/{name}" for name in verdict_names("G0A")),
    "G0A/decision", "G0A/release",
)  # fmt: skip
