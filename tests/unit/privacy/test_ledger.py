"""The ledger's promises, on every database it runs on."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DatabaseError

from synth_platform.privacy.fingerprint import sha256_hex
from synth_platform.privacy.ledger import (
    BudgetExceeded,
    Ledger,
    LedgerBroken,
    LedgerError,
    NoBudget,
    RowsOfOtherDomain,
)
from synth_platform.privacy.ledger_chain import ANCHOR_LOST, row_hash
from synth_platform.privacy.ledger_records import ReserveRequest

DELTA = 1e-5


def request(
    *, domain: str = "brca", multiplier: float = 5.0, tag: str | None = None, **changes: object
) -> ReserveRequest:
    fields: dict[str, object] = {
        "domain": domain,
        "cohort": "tcga",
        "code": "G0_COUNTS",
        "event": GaussianDpEvent(multiplier),
        "sensitivity": 2.0,
        "scale": 2.0 * multiplier,
        "noise_source": "cryptographic",
        "request_fingerprint": token_hex(32) if tag is None else tag * 64,
        "input_fingerprint": sha256_hex(domain.encode()),
        "run_id": "run-1",
    }
    return ReserveRequest(**(fields | changes))


def gaussian_figure(count: int, multiplier: float) -> float:
    """8-1 §2.2's closed form for `count` Gaussian mechanisms."""
    rho = count / (2 * multiplier**2)
    return rho + 2 * math.sqrt(rho * math.log(1 / DELTA))


class LedgerContract:
    """What holds on every database; a subclass gives `url`, `drop_triggers` and `refused`."""

    drop_triggers: tuple[str, ...] = ()

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def anchor(self, tmp_path: Path) -> Path:
        return tmp_path / "anchor.head"

    @pytest.fixture
    def ledger(self, url: str, anchor: Path) -> Ledger:
        ledger = Ledger(url, anchor=anchor)
        ledger.set_budget("brca", 3.0, DELTA)
        return ledger

    def tamper(self, url: str, *statements: str) -> None:
        """What an administrator can do: the triggers are in the way of nobody who may drop them."""
        engine = create_engine(url)
        with engine.begin() as connection:
            for statement in (*self.drop_triggers, *statements):
                connection.execute(text(statement))
        engine.dispose()

    def test_an_entry_is_reserved_then_committed(self, ledger: Ledger) -> None:
        entry = ledger.reserve(request(tag="a"))
        assert (entry.state, entry.artefact_fingerprint) == ("reserved", None)
        assert ledger.find("a" * 64) is None
        assert ledger.pending("a" * 64) == (entry,)

        done = ledger.commit(entry.entry_id, "b" * 64)
        assert (done.state, done.artefact_fingerprint) == ("committed", "b" * 64)
        assert done.committed_at is not None
        assert done.committed_at >= entry.reserved_at
        assert ledger.find("a" * 64) == done
        assert ledger.pending("a" * 64) == ()
        assert ledger.entries() == ledger.entries("brca") == ledger.entries(ids=[entry.entry_id]) == (done,)
        assert done.event == GaussianDpEvent(5.0)

    def test_a_request_has_one_answer(self, ledger: Ledger) -> None:
        """A reservation that a crash left behind is no answer; a second committed one is named, and nothing goes on."""
        lost, first, second = (ledger.reserve(request(multiplier=20.0, tag="a")) for _ in range(3))
        ledger.commit(first.entry_id, token_hex(32))
        assert [entry.entry_id for entry in ledger.pending("a" * 64)] == [lost.entry_id, second.entry_id]
        assert ledger.find("a" * 64) == ledger.entries(ids=[first.entry_id])[0]
        ledger.commit(second.entry_id, token_hex(32))
        (problem,) = ledger.verify().problems
        assert f"{second.entry_id} answers a request that entry {first.entry_id} has answered" in problem.what
        with pytest.raises(LedgerBroken):
            ledger.find("a" * 64)

    def test_everything_survives_reopening(self, ledger: Ledger, url: str, anchor: Path) -> None:
        entry = ledger.commit(ledger.reserve(request()).entry_id, "b" * 64)
        again = Ledger(url, anchor=anchor)
        assert again.entries() == (entry,)
        assert again.head_hash() == ledger.head_hash()
        assert again.budget("brca").epsilon == 3.0

    def test_the_cap_binds_the_rdp_figure_of_everything_reserved(self, url: str, anchor: Path) -> None:
        """Four entries fit exactly, a fifth does not; none of them was ever committed."""
        ledger = Ledger(url, anchor=anchor)
        ledger.set_budget("brca", gaussian_figure(4, 7.3), DELTA)
        for _ in range(4):
            ledger.reserve(request(multiplier=7.3))
        before = ledger.head_hash()
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(request(multiplier=7.3))
        assert refusal.value.domain == "brca"
        assert refusal.value.cap == pytest.approx(gaussian_figure(4, 7.3))
        assert refusal.value.spent == pytest.approx(gaussian_figure(4, 7.3))
        assert refusal.value.asked == pytest.approx(gaussian_figure(1, 7.3))
        assert refusal.value.total == pytest.approx(gaussian_figure(5, 7.3))
        assert "BUDGET_EXCEEDED" in str(refusal.value)
        assert ledger.head_hash() == before

    @pytest.mark.parametrize(("slack", "fits"), [(-4e-7, True), (-2e-6, False)])
    def test_the_cap_is_compared_at_six_decimals(self, url: str, anchor: Path, slack: float, fits: bool) -> None:
        ledger = Ledger(url, anchor=anchor)
        ledger.set_budget("brca", round(gaussian_figure(1, 5.0), 6) + slack, DELTA)
        if fits:
            assert ledger.reserve(request(multiplier=5.0)).state == "reserved"
        else:
            with pytest.raises(BudgetExceeded):
                ledger.reserve(request(multiplier=5.0))

    # One property on two databases: examples share nothing, each brings domains of its own.
    @settings(
        max_examples=8,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(asked=st.lists(st.tuples(st.sampled_from(["a", "b"]), st.floats(2.0, 30.0)), max_size=7))
    def test_whatever_is_asked_in_whatever_order_the_cap_holds(
        self, url: str, anchor: Path, asked: list[tuple[str, float]]
    ) -> None:
        """Accepted if and only if 8-1's closed form of everything accepted before and this one is within the cap."""
        ledger, prefix = Ledger(url, anchor=anchor), token_hex(4)
        spent = {"a": 0.0, "b": 0.0}
        for domain, cap in (("a", 2.0), ("b", 1.0)):
            ledger.set_budget(prefix + domain, cap, DELTA)
        for domain, multiplier in asked:
            rho = spent[domain] + 1 / (2 * multiplier**2)
            total, cap = rho + 2 * math.sqrt(rho * math.log(1 / DELTA)), {"a": 2.0, "b": 1.0}[domain]
            try:
                ledger.reserve(request(domain=prefix + domain, multiplier=multiplier))
            except BudgetExceeded:
                assert total > cap
            else:
                assert total < cap + 1e-6
                spent[domain] = rho
        for domain, rho in spent.items():
            figure = ledger.compose(prefix + domain, DELTA).epsilon_rdp
            assert figure == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1 / DELTA)), abs=1e-9)
        assert ledger.verify().ok

    def test_domains_spend_apart(self, ledger: Ledger) -> None:
        ledger.set_budget("virtual", 3.0, DELTA)
        ledger.reserve(request(multiplier=2.2))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(request(multiplier=2.2))
        ledger.reserve(request(domain="virtual", multiplier=2.2))
        assert ledger.domains() == ("brca", "virtual")

    def test_the_same_rows_are_charged_to_one_domain(self, ledger: Ledger) -> None:
        """Else a copy of a cohort under another domain would have a cap of its own; cohorts may share a domain."""
        ledger.set_budget("copy", 3.0, DELTA)
        rows = "e" * 64
        ledger.reserve(request(multiplier=20.0, input_fingerprint=rows))
        ledger.reserve(request(multiplier=20.0, input_fingerprint=rows, cohort="renamed", tag="b"))
        before = ledger.head_hash()
        with pytest.raises(RowsOfOtherDomain, match=r"domain 'brca' already .cohort 'tcga'.") as refusal:
            ledger.reserve(request(domain="copy", multiplier=20.0, input_fingerprint=rows, tag="c"))
        assert rows not in str(refusal.value)
        assert ledger.head_hash() == before
        ledger.reserve(request(domain="copy", multiplier=20.0, tag="d"))
        assert ledger.verify().notices == ()

    def test_a_domain_without_a_budget_spends_nothing(self, ledger: Ledger) -> None:
        with pytest.raises(NoBudget, match="'census' has no budget"):
            ledger.reserve(request(domain="census"))
        with pytest.raises(NoBudget):
            ledger.budget("census")
        assert ledger.entries() == ()

    def test_a_changed_cap_is_explicit_and_visible(self, ledger: Ledger) -> None:
        rows = ledger.verify().rows
        ledger.set_budget("brca", 3.0, DELTA)
        assert ledger.verify().rows == rows, "the same budget again is no new row"
        with pytest.raises(LedgerError, match="explicit"):
            ledger.set_budget("brca", 9.0, DELTA)
        assert ledger.verify().notices == ()

        ledger.set_budget("brca", 9.0, DELTA, change=True)
        report = ledger.verify()
        assert report.ok
        (notice,) = report.notices
        assert notice.row == rows + 1
        assert "from epsilon 3" in notice.what
        assert "to epsilon 9" in notice.what
        assert [cap["epsilon"] for cap in ledger.budget_summary("brca")["caps"]] == [3.0, 9.0]

    @pytest.mark.parametrize(
        ("epsilon", "delta"), [(0.0, 1e-5), (math.inf, 1e-5), (math.nan, 1e-5), (1.0, 0.0), (1, 1)]
    )
    def test_a_cap_that_is_no_cap_is_refused(self, ledger: Ledger, epsilon: float, delta: float) -> None:
        with pytest.raises(LedgerError, match="budget"):
            ledger.set_budget("x", epsilon, delta)

    def test_committing_is_once_and_for_what_was_reserved(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerError, match="never reserved"):
            ledger.commit("G0_COUNTS-000000000000", "b" * 64)
        entry = ledger.reserve(request())
        assert ledger.commit(entry.entry_id, "b" * 64) == ledger.commit(entry.entry_id, "b" * 64)
        with pytest.raises(LedgerError, match="another artefact"):
            ledger.commit(entry.entry_id, "c" * 64)
        with pytest.raises(LedgerError, match="no such ledger entries: nobody"):
            ledger.entries(ids=["nobody"])

    def test_an_event_must_say_what_the_scale_says(self) -> None:
        """Else an entry could be charged for ten times the noise that is drawn."""
        with pytest.raises(ValueError, match="noise multiplier"):
            request(event=GaussianDpEvent(50.0))
        for bad in (0.0, -1.0, math.nan, math.inf):
            with pytest.raises(ValueError, match="positive and finite"):
                request(sensitivity=bad)

    def test_both_figures_and_mu(self, ledger: Ledger) -> None:
        """RDP against 8-1's closed form, PLD against dp_accounting's accountant, mu against its definition."""
        ids = [ledger.reserve(request(multiplier=m)).entry_id for m in (6.0, 8.0)]
        both = ledger.compose("brca", DELTA)
        rho = 1 / 72 + 1 / 128
        assert both.epsilon_rdp == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1 / DELTA)), rel=1e-12)
        accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
        for m in (6.0, 8.0):
            accountant.compose(GaussianDpEvent(m))
        assert both.epsilon_pld == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-3)
        assert both.mu == pytest.approx(math.sqrt(1 / 36 + 1 / 64), rel=1e-12)
        assert ledger.compose(ids[:1], DELTA).mu == pytest.approx(1 / 6, rel=1e-12)
        assert ledger.compose([], DELTA).epsilon_rdp == 0

    def test_a_sampled_plan_is_kept_as_one_event(self, ledger: Ledger) -> None:
        steps = SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(4.0)), 100)
        entry = ledger.reserve(request(event=steps))
        assert ledger.entries()[0].event == entry.event == steps
        assert ledger.compose("brca", DELTA).mu is None

    def test_what_the_command_line_prints(self, ledger: Ledger) -> None:
        entry = ledger.reserve(request(multiplier=6.0))
        ledger.commit(entry.entry_id, "b" * 64)
        ledger.reserve(request(multiplier=8.0, noise_source="seeded", tag="c"))
        printed = json.dumps(
            [ledger.table(), ledger.budget_summary("brca"), ledger.verify().as_dict()], allow_nan=False
        )
        assert sha256_hex(b"brca") not in printed, "input fingerprints stay inside"
        assert [row["state"] for row in ledger.table("brca")] == ["budget", "reserved", "committed", "reserved"]
        assert ledger.table("nobody") == []
        summary = ledger.budget_summary("brca")
        spent = ledger.compose("brca", DELTA)
        assert (summary["reserved"], summary["committed"], summary["seeded"]) == (1, 1, 1)
        assert (summary["cap"], summary["delta"]) == (3.0, DELTA)
        assert (summary["spent_rdp"], summary["spent_pld"], summary["mu"]) == (
            spent.epsilon_rdp, spent.epsilon_pld, spent.mu,
        )  # fmt: skip
        assert summary["remaining"] == pytest.approx(3.0 - spent.epsilon_rdp)

    def test_the_database_refuses_changes(self, ledger: Ledger, url: str) -> None:
        ledger.reserve(request())
        engine = create_engine(url)
        for statement in self.refused:
            with engine.connect() as connection, pytest.raises(DatabaseError, match="append-only"):
                connection.execute(text(statement))
        engine.dispose()
        assert ledger.verify().ok

    refused: tuple[str, ...] = ("UPDATE ledger SET epsilon = 99 WHERE id = 1", "DELETE FROM ledger WHERE id = 2")

    @pytest.mark.parametrize(
        ("statement", "row", "what"),
        [
            ("UPDATE ledger SET epsilon = 99 WHERE id = 1", 1, "altered"),
            ("UPDATE ledger SET scale = scale * 10 WHERE id = 2", 2, "altered"),
            ("UPDATE ledger SET event = replace(event, '5.0', '50.0') WHERE id = 2", 2, "altered"),
            ("UPDATE ledger SET noise_source = 'cryptographic ' WHERE id = 2", 2, "altered"),
            ("UPDATE ledger SET artefact_fingerprint = '0' WHERE id = 3", 3, "altered"),
            ("DELETE FROM ledger WHERE id = 2", 2, "missing"),
            ("DELETE FROM ledger WHERE id = 4", None, "4 rows were anchored, 3 are left"),
            ("DELETE FROM ledger", None, "4 rows were anchored, 0 are left"),
            ("UPDATE ledger SET hash = repeat('0', 64) WHERE id = 4", 4, "altered"),
        ],
    )
    def test_verify_names_what_was_touched(
        self, ledger: Ledger, url: str, statement: str, row: int | None, what: str
    ) -> None:
        entry = ledger.reserve(request(tag="a"))
        ledger.commit(entry.entry_id, "b" * 64)
        ledger.reserve(request(tag="c", multiplier=20.0))
        assert ledger.verify().ok
        self.tamper(url, statement)
        report = ledger.verify()
        assert not report.ok
        assert any(problem.row == row and what in problem.what for problem in report.problems), report.problems

    def test_a_broken_ledger_spends_and_answers_nothing(self, ledger: Ledger, url: str) -> None:
        entry = ledger.reserve(request())
        self.tamper(url, "UPDATE ledger SET event = replace(event, '5.0', '500.0') WHERE id = 2")
        with pytest.raises(LedgerBroken, match="row 2: content does not match"):
            ledger.reserve(request(tag="b", multiplier=50.0))
        with pytest.raises(LedgerBroken):
            ledger.commit(entry.entry_id, "b" * 64)
        with pytest.raises(LedgerBroken):
            ledger.find("a" * 64)
        with pytest.raises(LedgerBroken):
            ledger.budget_summary("brca")

    def test_a_cut_tail_is_found_by_the_anchor_or_by_a_release(self, url: str, anchor: Path) -> None:
        """The rest of the chain is whole in itself, so it needs somebody who remembers."""
        ledger = Ledger(url, anchor=anchor)
        ledger.set_budget("brca", 3.0, DELTA)
        ledger.reserve(request(tag="a", multiplier=20.0))
        ledger.reserve(request(tag="b", multiplier=20.0))
        released = ledger.head_hash()
        self.tamper(url, "DELETE FROM ledger WHERE id = 3")
        assert "anchored" in ledger.verify().problems[0].what
        anchor.unlink()
        assert [problem.what for problem in ledger.verify().problems] == [ANCHOR_LOST]
        (problem, _) = Ledger(url, anchor=anchor, known_heads=lambda: {"tcga-G0-eps1": released}).verify().problems
        assert released in problem.what
        assert "tcga-G0-eps1" in problem.what

    @pytest.mark.parametrize("harm", ["anchor", "release", "unreadable"])
    def test_what_verify_calls_broken_spends_nothing(self, url: str, anchor: Path, harm: str) -> None:
        """A lost anchor, a lost row and an unreadable release stop every operation, as a broken chain does."""
        heads: dict[str, str | None] = {}
        ledger = Ledger(url, anchor=anchor, known_heads=lambda: heads)
        ledger.set_budget("brca", 3.0, DELTA)
        entry = ledger.commit(ledger.reserve(request(tag="a", multiplier=20.0)).entry_id, "b" * 64)
        heads["tcga-G0-eps1"] = ledger.head_hash()
        pending = ledger.reserve(request(tag="c", multiplier=20.0))
        if harm == "anchor":
            anchor.unlink()
        elif harm == "unreadable":
            heads["tcga-G0-eps1"] = None
        else:
            self.tamper(url, "DELETE FROM ledger WHERE id > 1")
            anchor.write_text(json.dumps({"rows": 1, "hash": ledger.head_hash()}))
        assert not ledger.verify().ok
        operations: list[Callable[[], object]] = [
            lambda: ledger.reserve(request(tag="b", multiplier=20.0)),
            lambda: ledger.commit(pending.entry_id, "b" * 64),
            lambda: ledger.find("a" * 64),
            lambda: ledger.pending("c" * 64),
            lambda: ledger.entries(ids=[entry.entry_id]),
            lambda: ledger.compose("brca", DELTA),
            lambda: ledger.set_budget("other", 1.0, DELTA),
            lambda: ledger.budget("brca"),
            lambda: ledger.budget_summary("brca"),
        ]
        for operation in operations:
            with pytest.raises(LedgerBroken, match="synth ledger verify"):
                operation()

    def test_a_lost_anchor_is_made_anew_by_an_explicit_act_only(self, ledger: Ledger, url: str, anchor: Path) -> None:
        """Opening the ledger again does not make one; the act refuses a chain with any other problem."""
        ledger.reserve(request(tag="a", multiplier=20.0))
        anchor.unlink()
        with pytest.raises(LedgerBroken, match="head anchor is missing"):
            Ledger(url, anchor=anchor).reserve(request(tag="b", multiplier=20.0))
        ledger.anchor_anew()
        assert ledger.reserve(request(tag="b", multiplier=20.0)).state == "reserved"
        anchor.unlink()
        self.tamper(url, "DELETE FROM ledger WHERE id = 2")
        with pytest.raises(LedgerBroken, match="missing: the next row"):
            ledger.anchor_anew()
        assert not anchor.exists()

    def test_a_chain_that_was_hashed_anew_is_found_by_the_anchor(self, ledger: Ledger, url: str) -> None:
        ledger.reserve(request(multiplier=2.5))
        row = ledger.table()[1]
        forged = {**ledger._rows()[1], "scale": 10 * row["scale"]}
        self.tamper(url, f"UPDATE ledger SET scale = {forged['scale']!r}, hash = '{row_hash(forged)}' WHERE id = 2")
        (problem,) = ledger.verify().problems
        assert (problem.row, "anchored" in problem.what) == (2, True)

    def test_one_request_is_answered_at_a_time(self, ledger: Ledger, url: str, anchor: Path) -> None:
        other, entered = Ledger(url, anchor=anchor), threading.Event()

        def second() -> None:
            with other.exclusively("ab" * 32):
                entered.set()

        thread = threading.Thread(target=second)
        with ledger.exclusively("ab" * 32):
            thread.start()
            assert not entered.wait(0.3)
            with other.exclusively("cd" * 32):
                pass  # another request is not held up
        assert entered.wait(10)
        thread.join()


class TestOnSQLite(LedgerContract):
    drop_triggers = tuple(
        f"DROP TRIGGER IF EXISTS ledger_{name}" for name in ("no_update", "no_delete", "no_replace", "next_row")
    )
    refused = (
        *LedgerContract.refused,
        "INSERT OR REPLACE INTO ledger SELECT * FROM ledger WHERE id = 1",
        "INSERT OR REPLACE INTO ledger (id, entry_id, state, domain, time, previous_hash, hash) "
        "SELECT (SELECT MAX(id) + 1 FROM ledger), entry_id, state, domain, time, previous_hash, hash "
        "FROM ledger WHERE entry_id IS NOT NULL",
        "INSERT INTO ledger (id, state, domain, time, previous_hash, hash) VALUES (9, 'budget', 'x', '', '', '')",
    )

    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/zone/ledger.db"

    def tamper(self, url: str, *statements: str) -> None:
        super().tamper(url, *(s.replace("repeat('0', 64)", f"'{'0' * 64}'") for s in statements))

    def test_it_is_durable_and_anchored_by_default(self, url: str, tmp_path: Path) -> None:
        ledger = Ledger(url)
        ledger.set_budget("brca", 3.0, DELTA)
        anchored = json.loads((tmp_path / "zone" / "ledger.db.head").read_text())
        assert anchored == {"rows": 1, "hash": ledger.head_hash()}
        with ledger._engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2

    def test_text_that_is_no_text_is_reported_not_raised(self, ledger: Ledger, url: str) -> None:
        self.tamper(url, "UPDATE ledger SET domain = CAST(x'ff00fe' AS TEXT), epsilon = x'00' WHERE id = 1")
        assert ledger.verify().problems[0].row == 1

    @pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:"])
    def test_a_ledger_that_dies_with_its_process_is_refused(self, address: str) -> None:
        with pytest.raises(LedgerError, match="outlive"):
            Ledger(address)

    def test_other_files_and_databases_are_refused_by_name(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("not a database, but long enough to look at" * 10)
        with pytest.raises(LedgerError, match=r"notes\.txt"):
            Ledger(f"sqlite:///{tmp_path}/notes.txt")
        with pytest.raises(LedgerError, match=r"'mysql' is not supported|cannot open"):
            Ledger("mysql://localhost/ledger")

    def test_an_unreadable_anchor_is_an_error_by_name(self, ledger: Ledger, anchor: Path) -> None:
        anchor.write_text("{")
        with pytest.raises(LedgerError, match=r"anchor\.head"):
            ledger.reserve(request())


@pytest.mark.postgres
class TestOnPostgreSQL(LedgerContract):
    drop_triggers = tuple(
        f"DROP TRIGGER IF EXISTS {name} ON ledger" for name in ("ledger_no_change", "ledger_no_truncate")
    )
    refused = (*LedgerContract.refused, "TRUNCATE ledger")

    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url

    def test_a_password_is_never_shown(self, url: str) -> None:
        with pytest.raises(LedgerError) as failure:
            Ledger("postgresql+psycopg://synth:hunter2@127.0.0.1:1/postgres")
        assert "hunter2" not in str(failure.value)
        assert "***" in str(failure.value)
