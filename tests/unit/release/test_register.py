"""The release register's promises, on every database it runs on."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DatabaseError

from synth_platform.release.findings import HINDRANCES, NOTES, RECALLING, in_words, recalling
from synth_platform.release.register import ALPHA, Look, ReleaseRegister, Terms
from synth_platform.release.register_schema import RegisterError

STRONG, WEAK = {"A1": math.log(1000.0)}, {"A1": math.log(0.5), "A2": math.log(1.5)}


TERMS = Terms(attacks=("A1", "A3"), neighbours=4, membership_limit=0.55)


def record(
    register: ReleaseRegister,
    name: str = "tiny-G0A-eps1",
    checksum: str = "a" * 64,
    table: str = "",
    terms: Terms = TERMS,
) -> str:
    cohort, generator, plan = name.split("-")
    table = table or f"table of {name}"
    register.record(
        name=name, cohort=cohort, generator=generator, plan=plan, checksum=checksum, table=table, terms=terms
    )
    return name


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path}/restricted/register.sqlite"


@pytest.fixture
def statuses(tmp_path: Path) -> Path:
    (tmp_path / "released").mkdir()
    return tmp_path / "released" / "register.json"


@pytest.fixture
def register(url: str, statuses: Path) -> ReleaseRegister:
    return ReleaseRegister(url, statuses=statuses)


def test_what_is_published_stands_in_the_public_file(register: ReleaseRegister, statuses: Path) -> None:
    """Claim: name and status of every release and nothing else; no draft and no lock stays behind."""
    record(register)
    record(register, "tiny-G0-eps1")
    assert json.loads(statuses.read_text("utf-8")) == {"tiny-G0-eps1": "PUBLISHED", "tiny-G0A-eps1": "PUBLISHED"}
    assert [file.name for file in statuses.parent.iterdir()] == ["register.json"]


def test_the_same_package_again_changes_nothing(register: ReleaseRegister) -> None:
    name = record(register)
    before = register.releases()[name]
    record(register)
    assert register.releases()[name] == before


def test_another_package_under_a_withdrawn_name_is_the_same_release(register: ReleaseRegister) -> None:
    """Claim: its looks go on, so that publishing again does not reset the evidence."""
    name = record(register)
    register.finish_look(register.start_look(name), WEAK, [])
    record(register, checksum="b" * 64)
    release = register.releases()[name]
    assert (release.checksum, release.looks) == ("b" * 64, 1)
    assert register.start_look(name).number == 2


def test_the_terms_of_the_looks_are_those_of_the_first_publication(register: ReleaseRegister) -> None:
    name = record(register)
    record(register, checksum="b" * 64, terms=Terms(attacks=("A2",), neighbours=1, membership_limit=0.9))
    assert register.releases()[name].terms == TERMS


class TestLostRegister:
    @pytest.mark.parametrize("found", [[], ["DUA"]], ids=["published", "recalled"])
    def test_another_register_is_refused(self, tmp_path: Path, statuses: Path, found: Any) -> None:
        """Claim: where the public file lists a release that the database does not know, nothing is published, looked
        at or listed, and the public file stays as it is, whoever asks."""
        old = ReleaseRegister(f"sqlite:///{tmp_path}/old.sqlite", statuses=statuses)
        name = record(old)
        old.finish_look(old.start_look(name), WEAK, found)
        before = statuses.read_bytes()
        new = ReleaseRegister(f"sqlite:///{tmp_path}/new.sqlite", statuses=statuses)
        for refused in (
            lambda: record(new, "tiny-G0A-eps2"),
            lambda: new.require_open(name, "a table"),
            lambda: new.start_look(name),
            lambda: new.finish_look(Look(name, 1, 1), WEAK, []),
            new.releases,
            new.write_statuses,
        ):
            with pytest.raises(RegisterError, match=rf"register\.json lists {name} .*new\.sqlite, .*restore"):
                refused()
        assert statuses.read_bytes() == before

    def test_a_recall_that_the_database_does_not_know_is_refused(
        self, register: ReleaseRegister, statuses: Path
    ) -> None:
        """Claim: a database put back to before the recall does not take it back."""
        name = record(register)
        statuses.write_text(json.dumps({name: "RECALLED"}), "utf-8")
        with pytest.raises(RegisterError, match=rf"lists {name} otherwise"):
            register.write_statuses()
        statuses.write_text("{", "utf-8")
        with pytest.raises(RegisterError, match=r"register\.json cannot be read"):
            register.releases()


class TestLooks:
    def test_a_look_that_was_cut_short_is_continued_with_its_seed(
        self, register: ReleaseRegister, url: str, statuses: Path
    ) -> None:
        """Claim: whoever comes next, in this process or another, gets the same look until it is finished."""
        name = record(register)
        look = register.start_look(name)
        assert ReleaseRegister(url, statuses=statuses).start_look(name) == look
        register.finish_look(look, WEAK, [])
        after = register.start_look(name)
        assert (after.number, after.seed != look.seed) == (2, True)

    def test_a_look_is_counted_once(self, register: ReleaseRegister) -> None:
        """Claim: of two processes that did the same look, the second adds nothing, whatever it claims to have found."""
        name = record(register)
        look = register.start_look(name)
        register.finish_look(look, WEAK, [])
        register.finish_look(look, STRONG, ["CHECKSUMS"])
        release = register.releases()[name]
        assert (release.looks, release.status, release.findings) == (1, "PUBLISHED", ())

    def test_many_at_once_start_one_look_and_count_it_once(self, register: ReleaseRegister) -> None:
        name = record(register)
        looks: list[Look] = []
        together(8, lambda: looks.append(register.start_look(name)))
        assert len(set(looks)) == 1
        together(8, lambda: register.finish_look(looks[0], WEAK, []))
        assert register.releases()[name].looks == 1

    def test_seeds_are_fresh(self, register: ReleaseRegister) -> None:
        names = [record(register, f"tiny-G0A-eps{k}") for k in range(5)]
        assert len({register.start_look(name).seed for name in names}) == 5

    def test_an_unknown_release_is_refused(self, register: ReleaseRegister) -> None:
        with pytest.raises(RegisterError, match="no release 'nobody'"):
            register.start_look("nobody")


class TestRecalls:
    @pytest.mark.parametrize("reason", RECALLING)
    def test_every_fault_recalls_and_every_note_does_not(self, register: ReleaseRegister, reason: Any) -> None:
        name = record(register)
        register.finish_look(register.start_look(name), WEAK, list(NOTES))
        assert register.releases()[name].status == "PUBLISHED"
        register.finish_look(register.start_look(name), {}, [*NOTES, reason])
        release = register.releases()[name]
        assert (release.status, release.reasons) == ("RECALLED", (reason,))
        assert release.recalled_at is not None

    def test_a_recall_is_final(self, register: ReleaseRegister, statuses: Path) -> None:
        """Claim: neither good looks nor publishing again take it back, and the refusal says what to do."""
        name = record(register)
        register.finish_look(register.start_look(name), {}, ["DUA"])
        register.finish_look(register.start_look(name), WEAK, [])
        assert register.releases()[name].reasons == ("DUA",)
        for refused in (lambda: record(register, checksum="b" * 64), lambda: register.require_open(name, "other")):
            with pytest.raises(RegisterError, match=r"RECALLED: release tiny-G0A-eps1 .*DUA.* leaves again"):
                refused()
        assert json.loads(statuses.read_text("utf-8")) == {name: "RECALLED"}
        register.require_open("tiny-G0A-eps2", "another table")

    def test_a_recalled_table_leaves_under_no_name(self, register: ReleaseRegister) -> None:
        """Claim: neither the table recalled last nor one that was published under its name before comes back."""
        name = record(register, table="first")
        record(register, checksum="b" * 64, table="second")
        register.require_open("tiny-G0A-other", "first")
        register.finish_look(register.start_look(name), {}, ["DUA"])
        for table in ("first", "second"):
            refused = rf"RECALLED: this very table, as {name}, was recalled \(DUA\)"
            with pytest.raises(RegisterError, match=refused):
                register.require_open("tiny-G0A-other", table)
            with pytest.raises(RegisterError, match=refused):
                record(register, "tiny-G0A-other", table=table)
        record(register, "tiny-G0A-other", table="third")
        assert register.releases()["tiny-G0A-other"].status == "PUBLISHED"

    @pytest.mark.parametrize("junk", [1, 20])
    def test_releases_that_do_not_stand_dilute_nothing(self, register: ReleaseRegister, junk: int) -> None:
        """Claim: E = 21 recalls the one release that stands, however many others were published and withdrawn, and it
        is the withdrawal of the last that decides where the evidence came before it."""
        names = [record(register, f"tiny-G0-junk{k}") for k in range(junk)]
        leaking = record(register)
        register.finish_look(register.start_look(leaking), {"A1": math.log(2 * 21.0)}, [])
        for name in names:
            assert register.releases()[leaking].status == "PUBLISHED"
            register.finish_look(register.start_look(name), {}, ["WITHDRAWN"])
        assert register.releases()[leaking].reasons == ("LEAKAGE",)
        assert {register.releases()[name].reasons for name in names} == {("WITHDRAWN",)}

    def test_leakage_needs_one_over_alpha(self, register: ReleaseRegister) -> None:
        """Claim: the first look weighs a half, so e = 39 there is not enough at alpha = .05 and e = 41 is."""
        below, above = (record(register, f"tiny-G0A-eps{k}") for k in (1, 2))
        assert ALPHA == 0.05
        register.finish_look(register.start_look(below), {"A1": math.log(39.0)}, [])
        assert register.releases()[below].status == "PUBLISHED"
        register.finish_look(register.start_look(above), {"A1": math.log(4 / 0.05 * 1.01)}, [])
        assert register.releases()[above].reasons == ("LEAKAGE",)

    @pytest.mark.parametrize(("last", "status"), [(29.0, "PUBLISHED"), (31.0, "RECALLED")])
    def test_evidence_adds_up_over_looks_and_attacks(self, register: ReleaseRegister, last: float, status: str) -> None:
        """Claim: E = sum of (mean over attacks) / (s (s + 1)): 30/2 + 29/6 is below 20 and 30/2 + 31/6 above."""
        name = record(register)
        for e in (30.0, last):
            register.finish_look(register.start_look(name), {"A1": math.log(2 * e), "A2": -800.0}, [])
        assert register.releases()[name].status == status

    def test_a_leaking_table_is_recalled_under_every_name(self, register: ReleaseRegister) -> None:
        """Claim: a table that was published twice beforehand does not stay under its second name."""
        first, second, other = (record(register, f"tiny-G0A-{k}", table=t) for k, t in zip("abc", "ttu", strict=True))
        register.finish_look(register.start_look(first), STRONG, [])
        assert [register.releases()[name].reasons for name in (first, second, other)] == [("LEAKAGE",)] * 2 + [()]

    def test_e_bh_recalls_another_release_too(self, register: ReleaseRegister) -> None:
        """Claim: of two releases one alone needs E = 40 and both together 20 each, so that evidence against the second
        recalls the first as well."""
        first, second = (record(register, f"tiny-G0A-eps{k}") for k in (1, 2))
        register.finish_look(register.start_look(first), {"A1": math.log(60.0)}, [])
        assert register.releases()[first].status == "PUBLISHED"
        register.finish_look(register.start_look(second), {"A1": math.log(60.0)}, [])
        assert {r.reasons for r in register.releases().values()} == {("LEAKAGE",)}


def test_the_database_refuses_changes(register: ReleaseRegister, url: str) -> None:
    name = record(register)
    register.finish_look(register.start_look(name), WEAK, ["DUA"])
    engine = create_engine(url)
    for statement in (
        "UPDATE release_events SET event = 'PUBLISHED'",
        "DELETE FROM release_events",
        "UPDATE release_looks SET log_e = '{}'",
        "DELETE FROM releases",
    ):
        with engine.connect() as connection, pytest.raises(DatabaseError, match="append-only"):
            connection.execute(text(statement))
    engine.dispose()


@pytest.mark.parametrize(
    "statement",
    [
        "REPLACE INTO release_events SELECT id, release, 'PUBLISHED', checksum, table_sha256, reasons, time "
        "FROM release_events WHERE event = 'RECALLED'",
        "REPLACE INTO releases SELECT * FROM releases",
        "REPLACE INTO release_looks SELECT * FROM release_looks",
        "REPLACE INTO release_looks SELECT NULL, release, look, state, seed, '{}', findings, time FROM release_looks",
    ],
)
def test_nothing_takes_the_place_of_a_row(tmp_path: Path, statuses: Path, statement: str) -> None:
    """Claim: SQLite's REPLACE, which fires no trigger on DELETE, neither undoes a recall nor edits a look."""
    register = ReleaseRegister(f"sqlite:///{tmp_path}/register.sqlite", statuses=statuses)
    name = record(register)
    register.finish_look(register.start_look(name), WEAK, ["DUA"])
    before = register.releases()
    connection = sqlite3.connect(tmp_path / "register.sqlite")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert register.releases() == before


def test_an_unusable_database_is_an_error_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to look at" * 10)
    with pytest.raises(RegisterError, match=r"release register: .*notes\.txt"):
        ReleaseRegister(f"sqlite:///{tmp_path}/notes.txt", statuses=tmp_path / "register.json")


def test_every_code_has_words() -> None:
    for code in (*RECALLING, *NOTES, *HINDRANCES):
        assert in_words(code).endswith(f"({code})")
    assert recalling(["SUPERSEDED", "LEAKAGE", "DUA"]) == ("DUA", "LEAKAGE")


def together(count: int, work: Callable[[], object]) -> None:
    """Run `work` in threads that start as one; errors of any of them are raised."""
    barrier, errors = threading.Barrier(count), []

    def run() -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
