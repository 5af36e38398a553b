"""A home with three lists of private discoveries of the tiny cohort, made once by the command line, and copies of it.

Of 1,000 draws of its noise the subtype's list had at least five discoveries of nine every time, that of survival one
or more, and that of smoking, among methylation alone, none. Their group sizes are those that `synth cohort check` finds
in the rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tests.integration.assets.conftest import Platform, Said, Session, copied_platform, said, tiny_document

DISCOVERY = {
    "mu": 3.0,
    "alpha": 0.05,
    "contrasts": {
        "subtype": {
            "variable": "subtype",
            "case": ["S1"],
            "sizes": [162, 133],
            "features": ["expression", "methylation"],
        },
        "smoking": {"variable": "smoker", "case": [1], "sizes": [88, 207], "features": ["methylation"]},
        "survival": {
            "variable": "survival_days",
            "statistic": "log_rank",
            "sizes": [295],
            "features": ["expression"],
        },
    },
}
COMMANDS = ("cohort check tiny --json", "discover tiny --json")


@pytest.fixture(scope="session")
def discovering(tmp_path_factory: pytest.TempPathFactory, write_cohort: Callable[[Path, Any], Path]) -> Session:
    """The tiny cohort with contrasts, and the lists of all of them; made once for all test processes."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    root = base / "discovered" / "home"
    folder, record = root / "cohort_folder", base / "discovered" / "said.json"
    with FileLock(base / "discovered.lock"):
        if not record.exists():
            document = tiny_document() | {"discovery": DISCOVERY}
            document["privacy"]["budget"] = {"epsilon": 60.0, "delta": 1e-5}
            write_cohort(folder, document)
            commands = (f"cohort add {folder}", *COMMANDS)
            record.write_text(json.dumps({command: asdict(said(command, root)) for command in commands}), "utf-8")
    return Session(root, folder, {c: Said(**s) for c, s in json.loads(record.read_text("utf-8")).items()})


@pytest.fixture(scope="session")
def discovered(discovering: Session) -> Platform:
    """The home with three lists. Only to be read."""
    assert discovering.said["discover tiny --json"].exit_code == 0, discovering.said["discover tiny --json"].stderr
    return Platform.at(discovering.root)


@pytest.fixture
def copy_of(discovered: Platform, tmp_path: Path) -> Callable[..., Platform]:
    """A copy of the home with the lists: `copy_of(seeded=1)`."""
    return lambda seeded=None: copied_platform(discovered, tmp_path / "home", seeded)


@pytest.fixture
def lists(copy_of: Callable[..., Platform]) -> Platform:
    """A copy of the home with the lists that a test may harm."""
    return copy_of()
