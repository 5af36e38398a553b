"""Answers given once more: those that were paid for, found by the request alone, and no others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from synth_platform.privacy.noise import CryptographicNoise, SeededNoise
from synth_platform.privacy.replay import NotPaidError, Replay
from synth_platform.privacy.statistic_store import StoredReleaseError


@pytest.fixture
def replay(zone: Any) -> Replay:
    return Replay(zone.ledger, zone.store, "brca", "tcga", zone.table().fingerprint)


def test_the_answer_is_the_one_that_was_paid_for(zone: Any, replay: Replay, monkeypatch: Any) -> None:
    """Claim: the stored answer, value by value and with its entry, without rows, noise or a row in the ledger."""
    bought = zone.table().measure(zone.query(), zone.curator())
    rows = zone.ledger.table()
    monkeypatch.delattr(CryptographicNoise, "discrete_gaussian")
    answer = replay.ask(zone.query())
    assert np.array_equal(answer.values, bought.values)
    assert (answer.entry_id, answer.fingerprint, answer.source) == (
        bought.entry_id, bought.fingerprint, "cryptographic",
    )  # fmt: skip
    assert zone.ledger.table() == rows


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "OTHER"},
        {"sigma": 10.0000001},
        {"sensitivity": 1.9999999},
        {"parameters": {"clip": 2.0000001}},
        {"parameters": {}},
        {"name": "another_map"},
    ],
    ids=["code", "sigma", "sensitivity", "constant", "no constant", "map"],
)
def test_another_query_was_not_paid_for(zone: Any, replay: Replay, changes: dict[str, Any]) -> None:
    """Claim: any other public constant is another query; the error has its code and nothing else."""
    zone.table().measure(zone.query(), zone.curator())
    query = zone.query(**changes)
    with pytest.raises(NotPaidError) as refused:
        replay.ask(query)
    assert str(refused.value) == f"{query.code}: the ledger holds no committed answer to this query of these rows"


@pytest.mark.parametrize(
    "changes", [{"domain": "luad"}, {"cohort": "metabric"}, {"input_fingerprint": "0" * 64}], ids=min
)
def test_others_rows_were_not_paid_for(zone: Any, replay: Replay, changes: dict[str, str]) -> None:
    zone.table().measure(zone.query(), zone.curator())
    with pytest.raises(NotPaidError):
        replace(replay, **changes).ask(zone.query())


def test_one_record_more_is_other_rows(zone: Any, replay: Replay) -> None:
    """Claim: rows enter by their keyed name: what was paid for of one table is not given for another."""
    zone.table().measure(zone.query(), zone.curator())
    other = zone.table(np.random.default_rng(5).uniform(-1, 1, size=(41, 3)))
    with pytest.raises(NotPaidError):
        replace(replay, input_fingerprint=other.fingerprint).ask(zone.query())


def test_a_seeded_answer_is_none(zone: Any, replay: Replay) -> None:
    zone.table().measure(zone.query(), zone.curator(SeededNoise(3)))
    with pytest.raises(NotPaidError):
        replay.ask(zone.query())


def test_an_answer_that_was_never_committed_is_none(zone: Any, replay: Replay, monkeypatch: Any) -> None:
    """Claim: a reservation whose run died before its answer was stored is spent, and answers nothing."""
    monkeypatch.setattr(zone.ledger, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        zone.table().measure(zone.query(), zone.curator())
    assert zone.ledger.budget_summary("brca")["reserved"] == 1
    with pytest.raises(NotPaidError):
        replay.ask(zone.query())


@pytest.mark.parametrize("harm", ["altered", "missing"])
def test_a_harmed_answer_is_named(zone: Any, replay: Replay, harm: str) -> None:
    bought = zone.table().measure(zone.query(), zone.curator())
    [file] = (zone.home / "statistics").iterdir()
    file.unlink() if harm == "missing" else file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(StoredReleaseError, match=f"entry {bought.entry_id} (was|is) {harm}"):
        replay.ask(zone.query())
