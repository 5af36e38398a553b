"""A statistic is paid for once and given back for ever; nothing private leaves on the way."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.ledger import BudgetExceeded, LedgerBroken, NoBudget
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.private_errors import PrivateComputationError
from synth_platform.privacy.private_table import Access
from synth_platform.privacy.row_independence import RowDependence
from synth_platform.privacy.statistic_store import StoredReleaseError
from synth_platform.privacy.within_row import WithinRow


def test_a_statistic_is_a_noisy_sum_with_its_entry(zone: Any) -> None:
    """Noise of 10 around the exact sum, beyond six standard deviations with probability 6e-9."""
    x = np.random.default_rng(5).uniform(-1, 1, size=(40, 3))
    table = zone.table(x)
    release = table.measure(zone.query(), zone.curator())
    assert np.abs(release.values - x.sum(axis=0)).max() < 60
    assert (release.values != x.sum(axis=0)).all()
    (entry,) = zone.ledger.entries()
    assert (entry.entry_id, entry.artefact_fingerprint) == (release.entry_id, release.fingerprint)
    assert (entry.code, entry.sensitivity, entry.scale, entry.event.noise_multiplier) == ("SUM", 2.0, 10.0, 5.0)
    assert (entry.domain, entry.cohort, entry.noise_source) == ("brca", "tcga", "cryptographic")
    assert table.accesses == (Access("measure", "SUM", release.entry_id),)


def test_the_reservation_is_there_before_the_noise(zone: Any) -> None:
    """Invariant 2: whoever kills the process while it draws finds the entry in the ledger."""
    seen = []

    class Watching(SeededNoise):
        def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
            seen.append([entry.state for entry in zone.ledger.entries()])
            return super().discrete_gaussian(sigma, size)

    zone.table().measure(zone.query(), zone.curator(Watching(1)))
    assert seen == [["reserved"]]
    assert [entry.state for entry in zone.ledger.entries()] == ["committed"]


def test_the_same_request_is_given_back_and_costs_nothing(zone: Any, counting: Any) -> None:
    first = zone.table().measure(zone.query(), zone.curator(counting))
    head, drawn = zone.ledger.head_hash(), counting.drawn
    again = zone.table().measure(zone.query(), zone.curator(counting))
    np.testing.assert_array_equal(again.values, first.values)
    assert dataclasses.replace(again, values=first.values) == first
    assert (zone.ledger.head_hash(), counting.drawn) == (head, drawn) == (head, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"sigma": 11.0},
        {"sensitivity": 1.9},
        {"code": "OTHER"},
        {"dimension": 4},
        {"parameters": {"clip": 2.5}},
        {"name": "other"},
    ],
)
def test_another_query_is_another_request(zone: Any, change: dict[str, Any]) -> None:
    table, curator = zone.table(), zone.curator()
    assert curator.request_fingerprint(table, zone.query()) != curator.request_fingerprint(table, zone.query(**change))


def test_what_else_makes_another_request(zone: Any) -> None:
    """One changed cell, another draw, cohort, domain, noise source or fingerprint key; each alone."""
    base = zone.curator().request_fingerprint(zone.table(), zone.query())
    x = np.random.default_rng(5).uniform(-1, 1, size=(40, 3))
    x[17, 1] = np.nextafter(x[17, 1], 2)
    others = [
        zone.curator().request_fingerprint(zone.table(x), zone.query()),
        zone.curator().request_fingerprint(zone.table(), zone.query(), draw=1),
        zone.curator(cohort="metabric").request_fingerprint(zone.table(), zone.query()),
        zone.curator(domain="virtual").request_fingerprint(zone.table(), zone.query()),
        zone.curator(SeededNoise(1)).request_fingerprint(zone.table(), zone.query()),
    ]
    zone.key = FingerprintKey(bytes(32))
    others.append(zone.curator().request_fingerprint(zone.table(), zone.query()))
    assert len({base, *others}) == 7


def test_a_further_draw_is_asked_for_and_paid_for(zone: Any) -> None:
    table, curator = zone.table(), zone.curator()
    first, second = table.measure(zone.query(), curator), table.measure(zone.query(), curator, draw=1)
    assert first.entry_id != second.entry_id
    assert (first.values != second.values).all()
    rho = 2 / 50
    assert zone.ledger.compose("brca", 1e-5).epsilon_rdp == pytest.approx(rho + 2 * (rho * np.log(1e5)) ** 0.5)


def test_past_the_cap_nothing_is_drawn_but_paid_releases_stay(zone: Any, counting: Any) -> None:
    table, curator = zone.table(), zone.curator(counting)
    paid = table.measure(zone.query(sigma=6.0), curator)
    drawn = counting.drawn
    with pytest.raises(BudgetExceeded):
        table.measure(zone.query(sigma=5.9), curator)
    with pytest.raises(NoBudget):
        table.measure(zone.query(), zone.curator(counting, domain="virtual"))
    assert counting.drawn == drawn
    assert table.measure(zone.query(sigma=6.0), curator).entry_id == paid.entry_id


def stored_file(zone: Any) -> Path:
    (file,) = (zone.home / "statistics").glob("*")
    return Path(file)


def test_an_altered_release_is_an_error_by_name(zone: Any, counting: Any) -> None:
    release = zone.table().measure(zone.query(), zone.curator(counting))
    file = stored_file(zone)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(StoredReleaseError, match=f"{release.fingerprint}.*{release.entry_id} was altered"):
        zone.table().measure(zone.query(), zone.curator(counting))
    file.write_bytes(content[:50])
    with pytest.raises(StoredReleaseError, match="altered"):
        zone.table().measure(zone.query(), zone.curator(counting))
    file.unlink()
    with pytest.raises(StoredReleaseError, match=f"{release.fingerprint}.*{release.entry_id} is missing"):
        zone.table().measure(zone.query(), zone.curator(counting))
    assert counting.drawn == 3
    assert len(zone.ledger.entries()) == 1


def test_a_release_of_another_entry_is_not_passed_off(zone: Any) -> None:
    """Every stored file is genuine, but this one belongs to another entry."""
    zone.table().measure(zone.query(), zone.curator())
    entry = zone.ledger.entries()[0]
    with pytest.raises(StoredReleaseError, match="belongs to entry"):
        zone.store.load(dataclasses.replace(entry, entry_id="SUM-000000000000"))
    with pytest.raises(StoredReleaseError, match="never committed"):
        zone.store.load(dataclasses.replace(entry, artefact_fingerprint=None))


def test_a_half_written_release_is_never_seen(zone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up while the release is written: no file under its name, the entry stays reserved."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    # The ledger's own fsync is SQLite's; only files written from here fail.
    monkeypatch.setattr("synth_platform.privacy.ledger.advance_anchor", lambda *_: None)
    with pytest.raises(OSError, match="No space"):
        zone.table().measure(zone.query(), zone.curator())
    assert not list((zone.home / "statistics").glob("*.safetensors"))
    assert [entry.state for entry in zone.ledger.entries()] == ["reserved"]


def test_a_lost_reservation_is_explained(zone: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(SeededNoise):
        def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        zone.table().measure(zone.query(), zone.curator(Failing(1)))
    (lost,) = zone.ledger.entries()
    curator = zone.curator(SeededNoise(1))
    with caplog.at_level(logging.WARNING):
        release = zone.table().measure(zone.query(), curator)
    (note,) = curator.notes
    assert caplog.messages == [note]
    for word in (lost.entry_id, lost.reserved_at, lost.run_id, "stays spent"):
        assert word in note
    assert release.entry_id != lost.entry_id
    assert curator.ask(zone.table(), zone.query()).entry_id == release.entry_id
    assert len(curator.notes) == 1, "an answered request needs no explanation"


def test_contributions_that_look_across_rows_are_refused_and_cost_nothing(zone: Any, counting: Any) -> None:
    query = zone.query(lambda matrix: matrix.x - matrix.x.mean(axis=0), name="centred")
    with pytest.raises(RowDependence, match=r"tests\.centred"):
        zone.table().measure(query, zone.curator(counting))
    with pytest.raises(TypeError, match="within_row"):
        dataclasses.replace(zone.query(), contribution=WithinRow("tests.identity", lambda matrix: matrix.x))
    assert (zone.ledger.entries(), counting.drawn) == ((), 0)


def test_contributions_of_another_shape_are_refused_without_saying_n(zone: Any) -> None:
    with pytest.raises(ValueError, match=r"\[rows, 4\]") as failure:
        zone.table().measure(zone.query(dimension=4), zone.curator())
    assert "40" not in str(failure.value)
    with pytest.raises(ValueError, match=r"\[rows, 3\]"):
        zone.table().measure(zone.query(lambda matrix: matrix.x[:, 0], name="column"), zone.curator())
    assert zone.ledger.entries() == ()


def test_a_failing_contribution_costs_nothing_and_quotes_nothing(zone: Any) -> None:
    def quoting(matrix: Any) -> np.ndarray:
        raise ValueError(f"cannot bin {matrix.x[0, 0]!r}")

    with pytest.raises(
        PrivateComputationError, match=r"tests\.quoting failed on private rows with ValueError"
    ) as failure:
        zone.table().measure(zone.query(quoting, name="quoting"), zone.curator())
    assert "bin" not in str(failure.value)
    assert zone.ledger.entries() == ()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_rows_are_answered_like_any(zone: Any, n: int) -> None:
    """8-1 §2.2: the empty data set is a neighbour of one row and must give a release of the same shape."""
    release = zone.table(np.full((n, 3), 0.5)).measure(zone.query(), zone.curator())
    assert release.values.shape == (3,)
    assert np.abs(release.values).max() < 61


def test_nothing_that_is_written_tells_n_or_a_value(zone: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Two cohorts of other size and values: what is written differs in ids, keyed names, hashes and times only."""
    may_differ = {"id", "entry_id", "request_fingerprint", "input_fingerprint", "artefact_fingerprint", "time",
                  "previous_hash", "hash"}  # fmt: skip
    written = []
    with caplog.at_level(logging.DEBUG, logger="synth_platform"):
        for x in (np.full((40, 3), 0.123456789), np.full((977, 3), -0.987654321)):
            release = zone.table(x).measure(zone.query(), zone.curator())
            rows = [row for row in zone.ledger._rows() if row["entry_id"] == release.entry_id]
            written.append([{name: row[name] for name in row.keys() - may_differ} for row in rows])
            assert {len(row["input_fingerprint"]) for row in rows} == {64}
    assert written[0] == written[1]
    assert caplog.messages == []
    assert len({file.stat().st_size for file in (zone.home / "statistics").glob("*")}) == 1


def test_a_broken_ledger_gives_nothing(zone: Any, counting: Any) -> None:
    zone.table().measure(zone.query(), zone.curator(counting))
    (zone.home / "ledger.db.head").write_text('{"rows": 99, "hash": "0"}')
    with pytest.raises(LedgerBroken):
        zone.table().measure(zone.query(), zone.curator(counting))
    assert counting.drawn == 3
