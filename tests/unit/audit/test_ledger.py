"""A real ledger passes; each way of touching it is named, also after every hash of the chain was made again."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from dp_accounting import GaussianDpEvent

from synth_platform.audit.findings import Findings
from synth_platform.audit.ledger import audit_ledger, row_hash
from synth_platform.privacy.ledger import Ledger, ReserveRequest

Rows = list[dict[str, Any]]
REGISTERED = {"cohort": "c", "domain": "d", "budget": {"epsilon": 4.0, "delta": 1e-5}, "g0": {"clip": 4.5}}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two committed entries and a pending one."""
    ledger = Ledger(f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.db'}")
    ledger.set_budget("d", 4.0, 1e-5)
    ids = []
    for code, sensitivity, scale in (("G0_COUNTS", 1.0, 5.0), ("G0_SUMS", 4.5, 40.5), ("G0_MOMENT", 20.25, 202.5)):
        request = ReserveRequest(
            domain="d",
            cohort="c",
            code=code,
            event=GaussianDpEvent(scale / sensitivity),
            sensitivity=sensitivity,
            scale=scale,
            noise_source="cryptographic",
            request_fingerprint=code,
            input_fingerprint="rows",
            run_id="run",
        )
        ids.append(ledger.reserve(request).entry_id)
    for entry_id in ids[:2]:
        ledger.commit(entry_id, "a" * 64)
    rows = ledger.chain()
    return {"rows": rows, "head": rows[-1]["hash"], "statistics": dict.fromkeys(ids[:2], "a" * 64), "verified": True}


def failures(document: dict[str, Any]) -> list[str]:
    found = Findings()
    with found.section("G2/ledger"):
        audit_ledger(found, document, REGISTERED)
    return [check.name for check in found.checks if not check.passed]


def resealed(rows: Rows) -> Rows:
    """The chain of these rows, numbered and hashed as if they had been written so."""
    before = "0" * 64
    for number, row in enumerate(rows, start=1):
        row |= {"id": number, "previous_hash": before}
        row["hash"] = before = row_hash(row)
    return rows


def test_a_real_ledger_passes(document: dict[str, Any]) -> None:
    assert failures(document) == []


def set_both(code: str, **cells: object) -> Callable[[Rows], None]:
    """Change a reservation and its commit alike."""

    def change(rows: Rows) -> None:
        for row in rows:
            row.update(cells if row["code"] == code else {})

    return change


def multiplier(value: float) -> str:
    return json.dumps({"noise_multiplier": value, "type": "GaussianDpEvent"}, sort_keys=True, separators=(",", ":"))


TOUCHED: dict[str, tuple[str, Callable[[Rows], None]]] = {
    "noise scale": ("noise_multiplier", set_both("G0_SUMS", scale=4.05)),
    "under-reported cost": ("noise_multiplier", set_both("G0_SUMS", event=multiplier(90.0))),
    "sensitivity of the counts": ("sensitivity", set_both("G0_COUNTS", sensitivity=0.1, event=multiplier(50.0))),
    "neighbouring relation": ("neighbouring", set_both("G0_SUMS", neighbouring="replace")),
    "spent past the cap": ("cap/spent", set_both("G0_MOMENT", scale=2.025, event=multiplier(0.1))),
    "raised cap": ("cap/epsilon", lambda rows: rows[0].update(epsilon=9.0)),
    "another statistic": ("statistic", set_both("G0_SUMS", artefact_fingerprint="b" * 64)),
    "an event nobody can account": ("event.type", set_both("G0_SUMS", event='{"type":"Magic"}')),
    "an event that is no JSON": ("event", set_both("G0_SUMS", event="{")),
    "a commit that differs": ("row-6/state", lambda rows: rows[5].update(run_id="other")),
    "a commit of nothing": ("row-6/state", lambda rows: rows[5].update(entry_id="unknown")),
    "two reservations": ("row-3/state", lambda rows: rows[2].update(entry_id=rows[1]["entry_id"])),
}


@pytest.mark.parametrize("touched", TOUCHED)
def test_a_ledger_that_was_written_anew_is_named(touched: str, document: dict[str, Any]) -> None:
    name, change = TOUCHED[touched]
    changed = copy.deepcopy(document)
    change(changed["rows"])
    changed["head"] = resealed(changed["rows"])[-1]["hash"]
    assert any(name in failure for failure in failures(changed)), failures(changed)


@pytest.mark.parametrize("column", ["scale", "event", "input_fingerprint", "time", "domain", "epsilon"])
def test_a_touched_cell_breaks_its_rows_hash(column: str, document: dict[str, Any]) -> None:
    changed = copy.deepcopy(document)
    changed["rows"][2][column] = "x"
    assert "G2/ledger/row-3/hash" in failures(changed)


def test_a_cut_row_breaks_the_chain(document: dict[str, Any]) -> None:
    changed = copy.deepcopy(document)
    del changed["rows"][2]
    assert {"G2/ledger/row-3/id", "G2/ledger/row-3/link"} <= set(failures(changed))
