"""The release register: what was published, every look at it since, and what was recalled.

Rows are only added. A look is durably started, its seed fixed, before anything is computed, and finished in one
transaction with the recalls that follow from it; a look that was cut short is done again with the seed it has. Two
processes that do the same look find the same thing, and it is counted once. RECALLED is final, for the name and for the
table. The public file of statuses is held against the database, which can only know more: a register that was lost or
replaced is refused.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, select

from synth_platform.contract.options import AttackCode
from synth_platform.evaluation.e_values import e_bh, log_accumulated, log_mean
from synth_platform.privacy.database import serialised
from synth_platform.privacy.ledger_files import locked
from synth_platform.release.findings import Finding, RecallReason, recalling
from synth_platform.release.register_schema import EVENTS, LOOKS, RELEASES, RegisterError, open_register

ReleaseStatus = Literal["PUBLISHED", "RECALLED"]
LookState = Literal["started", "finished"]
_RESTORE = (
    "restore whichever is damaged from its backup. If the register is lost for good, take every package out of that "
    "folder, then remove the file: nothing that was published before can be vouched for"
)
ALPHA = 0.05  # share of false recalls for LEAKAGE among all of them, over all looks


@dataclass(frozen=True)
class Terms:
    """What every look at a release attacks with: fixed when it is first published, so that no choice follows a look."""

    attacks: tuple[AttackCode, ...]
    neighbours: int
    membership_limit: float


NO_ATTACKS = Terms((), 0, 1.0)  # a list of discoveries has no rows to attack


@dataclass(frozen=True)
class Release:
    """One release as the register has it.

    checksum, tables: SHA-256 of the package's SHA256SUMS as published last, and of every table.parquet published under
    the name. reasons: why it is RECALLED. looks: finished ones; last_look: when the last of them was finished;
    findings: what it found. Times are UTC, ISO 8601.
    """

    name: str
    cohort: str
    generator: str
    plan: str
    status: ReleaseStatus
    reasons: tuple[RecallReason, ...]
    checksum: str
    published_at: str
    recalled_at: str | None
    looks: int
    last_look: str | None
    findings: tuple[Finding, ...]
    tables: tuple[str, ...]
    terms: Terms

    def as_dict(self) -> dict[str, Any]:
        """One object of `synth releases --json`."""
        shown = {name: value for name, value in asdict(self).items() if name not in ("tables", "terms")}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in shown.items()}


@dataclass(frozen=True)
class Look:
    """A look that was started: its number from 1 and the seed of all its randomness."""

    release: str
    number: int
    seed: int


class ReleaseRegister:
    """A register in the database at `url` (`sqlite:////path/register.sqlite` or `postgresql+psycopg://…`).

    statuses: the public file {name: status} kept beside the packages, for readers who cannot ask the database.
    Raises RegisterError where the database cannot be used. So does every method where the public file knows of a
    release or a recall that the database does not: then it is not the register that published them.
    """

    def __init__(self, url: str, *, statuses: Path) -> None:
        self._engine = open_register(url)
        self._statuses = statuses

    def record(
        self, *, name: str, cohort: str, generator: str, plan: str, checksum: str, table: str, terms: Terms
    ) -> None:
        """Enter a published package; the same again does nothing. Raises RegisterError for a recalled release or table.

        Another package under the same name, published after the first was withdrawn, is an event of the same release,
        which keeps its terms. table: SHA-256 of its table.parquet.
        """
        with self._writing() as (connection, releases):
            _refuse_recalled(name, table, releases)
            known = releases.get(name)
            if known is None:
                row = {"name": name, "cohort": cohort, "generator": generator, "plan": plan, **asdict(terms)}
                connection.execute(RELEASES.insert().values(**row | {"attacks": json.dumps(terms.attacks)}))
            if known is None or known.checksum != checksum:
                _event(connection, name, "PUBLISHED", checksum=checksum, table_sha256=table)
        self.write_statuses()

    def require_open(self, name: str, table: str) -> None:
        """Raise RegisterError where `name`, or a table.parquet of that SHA-256 under any name, was recalled."""
        _refuse_recalled(name, table, self.releases())

    def releases(self) -> dict[str, Release]:
        """Every release by name, in order of name."""
        public = self._public()  # first: the database may go on meanwhile, the file only ever follows it
        with self._engine.connect() as connection:
            return self._held(public, _releases(connection))

    def start_look(self, release: str) -> Look:
        """The look to do now: one that was cut short, else the next one, durably started with a fresh seed."""
        with self._writing() as (connection, releases):
            if release not in releases:
                raise RegisterError(f"no release {release!r} in the register")
            started, finished = (_looks(connection, release, state) for state in ("started", "finished"))
            if len(started) > len(finished):  # there is never more than one that is not finished
                return Look(release, started[-1]["look"], int(started[-1]["seed"], 16))
            look = Look(release, len(finished) + 1, secrets.randbits(128))
            _add_look(connection, look, "started")
            return look

    def finish_look(self, look: Look, log_e: Mapping[AttackCode, float], findings: Sequence[Finding]) -> None:
        """Record what a look found, once, and recall what has to be recalled.

        log_e: log e-value of each attack; empty where a finding stood in the way, which counts as no evidence. A
        finding of `RECALLING` recalls the release; e-BH over those that stand recalls for LEAKAGE, this one or another.
        """
        with self._writing() as (connection, _):
            if any(row["look"] == look.number for row in _looks(connection, look.release, "finished")):
                return
            _add_look(connection, look, "finished", log_e=dict(log_e), findings=list(findings))
            self._recall(connection, look.release, recalling(findings))
        self.write_statuses()

    def write_statuses(self) -> None:
        """Write the public file of statuses as the register has them now."""
        folder, name = self._statuses.parent, self._statuses.name
        with locked(folder / f".{name}.lock"):
            statuses = {release.name: release.status for release in self.releases().values()}
            draft = folder / f".{name}.tmp"
            with draft.open("w", encoding="utf-8") as stream:
                json.dump(statuses, stream, indent=1)
                stream.write("\n")
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self._statuses)

    def _recall(self, connection: Connection, release: str, found: Sequence[RecallReason]) -> None:
        releases = _releases(connection)
        standing = [name for name, entry in releases.items() if entry.status == "PUBLISHED"]
        if found and release in standing:
            _event(connection, release, "RECALLED", reasons=found)
            standing.remove(release)
        leaking = e_bh({name: _log_evidence(connection, name) for name in standing}, ALPHA)
        tables = {table for name in leaking for table in releases[name].tables}
        for name in standing:  # a table that leaks does so under every name
            if tables.intersection(releases[name].tables):
                _event(connection, name, "RECALLED", reasons=["LEAKAGE"])

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, dict[str, Release]]]:
        public = self._public()
        with serialised(self._engine) as connection:
            yield connection, self._held(public, _releases(connection))

    def _public(self) -> Mapping[str, Any]:
        try:
            public = json.loads(self._statuses.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise RegisterError(f"{self._statuses} cannot be read ({type(error).__name__}); {_RESTORE}") from error
        if not isinstance(public, dict):
            raise RegisterError(f"{self._statuses} is not {{name: status}}; {_RESTORE}")
        return public

    def _held(self, public: Mapping[str, Any], releases: dict[str, Release]) -> dict[str, Release]:
        unknown = sorted(public.keys() - releases.keys())
        taken_back = [n for n, r in releases.items() if public.get(n) == "RECALLED" and r.status != "RECALLED"]
        if unknown or taken_back:
            raise RegisterError(
                f"{self._statuses} lists {', '.join([*unknown, *taken_back])} otherwise than the release register at "
                f"{self._engine.url.render_as_string(hide_password=True)}, which was lost or replaced; {_RESTORE}"
            )
        return releases


def _log_evidence(connection: Connection, release: str) -> float:
    looks = [json.loads(row["log_e"]) for row in _looks(connection, release, "finished")]
    return log_accumulated([log_mean(list(log_e.values())) if log_e else None for log_e in looks])


def _refuse_recalled(name: str, table: str, releases: Mapping[str, Release]) -> None:
    for known in releases.values():
        if known.status == "RECALLED" and (known.name == name or table in known.tables):
            what = f"release {name}" if known.name == name else f"this very table, as {known.name},"
            raise RegisterError(
                f"RECALLED: {what} was recalled ({', '.join(known.reasons)}) and stays so; neither its name nor its "
                "table leaves again"
            )


def _releases(connection: Connection) -> dict[str, Release]:
    rows = connection.execute(select(RELEASES).order_by(RELEASES.c.name)).mappings()
    return {row["name"]: _release(connection, dict(row)) for row in rows}


def _release(connection: Connection, row: Mapping[str, Any]) -> Release:
    of_release = select(EVENTS).where(EVENTS.c.release == row["name"]).order_by(EVENTS.c.id)
    events = list(connection.execute(of_release).mappings())
    published = [event for event in events if event["event"] == "PUBLISHED"]
    recalled = [event for event in events if event["event"] == "RECALLED"]
    finished = _looks(connection, row["name"], "finished")
    return Release(
        **{name: row[name] for name in ("name", "cohort", "generator", "plan")},
        status="RECALLED" if recalled else "PUBLISHED",
        reasons=tuple(json.loads(recalled[0]["reasons"])) if recalled else (),
        checksum=published[-1]["checksum"],
        published_at=published[0]["time"],
        recalled_at=recalled[0]["time"] if recalled else None,
        looks=len(finished),
        last_look=finished[-1]["time"] if finished else None,
        findings=tuple(json.loads(finished[-1]["findings"])) if finished else (),
        tables=tuple(dict.fromkeys(event["table_sha256"] for event in published)),
        terms=Terms(tuple(json.loads(row["attacks"])), row["neighbours"], row["membership_limit"]),
    )


def _looks(connection: Connection, release: str, state: LookState) -> list[Mapping[str, Any]]:
    chosen = select(LOOKS).where(LOOKS.c.release == release, LOOKS.c.state == state).order_by(LOOKS.c.look)
    return [dict(row) for row in connection.execute(chosen).mappings()]


def _event(
    connection: Connection, release: str, event: ReleaseStatus, *, reasons: Sequence[str] = (), **package: str
) -> None:
    row = {"release": release, "event": event, "reasons": json.dumps(list(reasons)), **package}
    connection.execute(EVENTS.insert().values(**row, time=_now()))


def _add_look(connection: Connection, look: Look, state: LookState, **found: Any) -> None:
    row = {"release": look.release, "look": look.number, "state": state, "seed": f"{look.seed:032x}"}
    columns = {name: json.dumps(value) for name, value in found.items()}
    connection.execute(LOOKS.insert().values(**row, **columns, time=_now()))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
