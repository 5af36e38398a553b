"""Processes that ask one statistic each.

Reads lines of JSON: {"start": options} forks a process that asks and writes what came of it to options["answer"], and
prints its pid; {"wait": pid} prints its exit code (negative: the signal that ended it). Forking spares each process the
seconds of importing; they share nothing else.

Options: url, home, answer, sigma, run, asker, cap, crash ("while_drawing" or "before_commit": the process kills itself
there), hold (seconds that drawing takes).
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from synth_platform.privacy.curator import Curator
from synth_platform.privacy.fingerprint import load_or_create_key
from synth_platform.privacy.ledger import BudgetExceeded, Ledger
from synth_platform.privacy.noise import CryptographicNoise
from synth_platform.privacy.restricted import seal
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease
from synth_platform.privacy.within_row import within_row


@dataclass(frozen=True)
class Matrix:
    x: np.ndarray

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: np.ndarray) -> Matrix:
        return Matrix(self.x[index])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Noise(CryptographicNoise):
    def __init__(self, crash: str | None, hold: float) -> None:
        self.drawn, self._crash, self._hold = 0, crash, hold

    def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
        self.drawn += size
        if self._crash == "while_drawing":
            die()
        time.sleep(self._hold)
        return super().discrete_gaussian(sigma, size)


class Store(StatisticStore):
    crash: str | None = None

    def save(self, release: StatisticRelease) -> str:
        fingerprint = super().save(release)
        if self.crash == "before_commit":
            die()
        return fingerprint


def main(options: dict) -> dict:
    home = Path(options["home"])
    ledger = Ledger(options["url"], anchor=home / "anchor.head")
    ledger.set_budget("brca", options.get("cap", 2.0), 1e-5)
    noise = Noise(options.get("crash"), options.get("hold", 0.0))
    store = Store(home / "statistics")
    store.crash = options.get("crash")
    curator = Curator(ledger, store, noise, domain="brca", cohort="tcga", run_id=options.get("run", "run-1"))
    key = load_or_create_key(home / "restricted" / "fingerprint.key")
    rows = Matrix(np.random.default_rng(5).normal(size=(40, 3)))
    table = seal(rows, key=key, digest=lambda matrix: hashlib.sha256(matrix.x.tobytes()).digest())
    contribution = within_row("tests.identity", lambda matrix: matrix.x)
    query = StatisticQuery("SUM", contribution, 3, 2.0, options.get("sigma", 10.0), {"asker": options.get("asker", 0)})
    try:
        release = table.measure(query, curator)
    except BudgetExceeded as refusal:
        return {"refused": refusal.code, "total": refusal.total, "drawn": noise.drawn}
    return {
        "entry": release.entry_id,
        "values": release.values.tolist(),
        "fingerprint": release.fingerprint,
        "drawn": noise.drawn,
        "notes": list(curator.notes),
    }


def serve() -> None:
    for line in sys.stdin:
        command = json.loads(line)
        if "start" in command:
            reply = os.fork()
            if reply == 0:
                Path(command["start"]["answer"]).write_text(json.dumps(main(command["start"])))
                os._exit(0)
        else:
            reply = os.waitstatus_to_exitcode(os.waitpid(command["wait"], 0)[1])
        print(reply, flush=True)


if __name__ == "__main__":
    serve()
