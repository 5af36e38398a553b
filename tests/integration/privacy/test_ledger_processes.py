"""What several real processes, and processes that are killed, can do to the budget."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from synth_platform.privacy.ledger import Ledger

ASKER = Path(__file__).with_name("asker.py")
ONE = 0.979705  # 8-1 §2.2: rho + 2 sqrt(rho ln(1/delta)) of noise multiplier 5 at delta 1e-5, rho = 1/50


class Processes:
    """Handles on processes forked by one `asker.py`."""

    def __init__(self) -> None:
        self._asker = subprocess.Popen(
            [sys.executable, str(ASKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answers: dict[int, Path] = {}

    def start(self, options: dict[str, Any], **more: Any) -> int:
        file = Path(options["home"]) / f"answer-{len(self._answers)}-{more.get('run', '')}.json"
        pid = self._command({"start": {**options, **more, "answer": str(file)}})
        self._answers[pid] = file
        return pid

    def wait(self, pid: int) -> int:
        return self._command({"wait": pid})

    def answer(self, pid: int) -> dict[str, Any]:
        assert self.wait(pid) == 0
        return dict(json.loads(self._answers[pid].read_text()))

    def close(self) -> None:
        self._asker.communicate(timeout=60)

    def _command(self, command: dict[str, Any]) -> int:
        assert self._asker.stdin is not None
        assert self._asker.stdout is not None
        self._asker.stdin.write(json.dumps(command) + "\n")
        self._asker.stdin.flush()
        return int(self._asker.stdout.readline())


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    processes = Processes()
    yield processes
    processes.close()


@pytest.fixture
def fresh_interpreter() -> Iterator[Processes]:
    processes = Processes()
    yield processes
    processes.close()


class ProcessContract:
    """What holds on every database; a subclass gives `url`."""

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def options(self, url: str, tmp_path: Path) -> dict[str, Any]:
        return {"url": url, "home": str(tmp_path)}

    @pytest.fixture
    def ledger(self, url: str, tmp_path: Path) -> Ledger:
        return Ledger(url, anchor=tmp_path / "anchor.head")

    def test_of_racing_processes_exactly_one_gets_the_last_budget(
        self, options: dict[str, Any], ledger: Ledger, processes: Processes
    ) -> None:
        """Four different requests for a budget of one, all at once."""
        racers = [processes.start(options, cap=1.2, asker=number, hold=0.2) for number in range(4)]
        answers = [processes.answer(racer) for racer in racers]
        assert sorted("entry" in answer for answer in answers) == [False, False, False, True]
        assert [answer["drawn"] for answer in answers if "refused" in answer] == [0, 0, 0]
        assert len(ledger.entries()) == 1
        assert ledger.compose("brca", 1e-5).epsilon_rdp == pytest.approx(ONE, abs=1e-6)
        assert ledger.verify().ok

    def test_processes_with_the_same_request_share_one_draw(
        self, options: dict[str, Any], ledger: Ledger, processes: Processes, fresh_interpreter: Processes
    ) -> None:
        """All but one wait for the first and get its answer; another interpreter, later, gets it too."""
        started = [processes.start(options, hold=0.3) for _ in range(3)]
        answers = [processes.answer(pid) for pid in started]
        answers.append(fresh_interpreter.answer(fresh_interpreter.start(options, run="run-2")))
        assert len({json.dumps(answer["values"]) for answer in answers}) == 1
        assert len({answer["entry"] for answer in answers}) == 1
        assert sorted(answer["drawn"] for answer in answers) == [0, 0, 0, 3]
        assert len(ledger.entries()) == 1
        assert all(answer["notes"] == [] for answer in answers)

    def test_processes_that_open_a_new_ledger_at_once_all_find_it_whole(
        self, url: str, tmp_path: Path, processes: Processes
    ) -> None:
        started = [
            processes.start({"url": url, "home": str(tmp_path)}, asker=number, sigma=40.0) for number in range(6)
        ]
        assert all("entry" in processes.answer(pid) for pid in started)
        ledger = Ledger(url, anchor=tmp_path / "anchor.head")
        report = ledger.verify()
        assert (report.ok, report.rows) == (True, 1 + 2 * 6)

    @pytest.mark.parametrize("crash", ["while_drawing", "before_commit"])
    def test_a_killed_run_has_spent_and_the_next_one_explains(
        self, options: dict[str, Any], ledger: Ledger, processes: Processes, crash: str
    ) -> None:
        assert processes.wait(processes.start(options, crash=crash)) == -signal.SIGKILL
        (lost,) = ledger.entries()
        assert lost.state == "reserved"
        assert ledger.verify().ok
        assert ledger.budget_summary("brca")["spent_rdp"] == pytest.approx(ONE, abs=1e-6)

        answer = processes.answer(processes.start(options, run="run-2"))
        assert answer["entry"] != lost.entry_id
        assert answer["drawn"] == 3
        (note,) = answer["notes"]
        assert lost.entry_id in note
        assert lost.reserved_at in note
        assert "run-1" in note
        summary = ledger.budget_summary("brca")
        assert (summary["reserved"], summary["committed"]) == (1, 1)
        rho = 2 / 50
        assert summary["spent_rdp"] == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1e5)), abs=1e-9)


class TestOnSQLite(ProcessContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/ledger.db"


@pytest.mark.postgres
class TestOnPostgreSQL(ProcessContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url
