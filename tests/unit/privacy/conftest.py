"""A small private cohort, its ledger, store and curators."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from synth_platform.privacy.curator import Curator
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.noise import CryptographicNoise, NoiseSource
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.restricted import seal
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.privacy.statistics import StatisticQuery
from synth_platform.privacy.within_row import within_row

Map = Callable[["Matrix"], np.ndarray]
KEY = FingerprintKey(bytes(range(32)))


@dataclass(frozen=True)
class Matrix:
    x: np.ndarray

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: np.ndarray) -> Matrix:
        return Matrix(self.x[index])


class CountingNoise(CryptographicNoise):
    """Tells how many numbers were drawn."""

    def __init__(self) -> None:
        self.drawn = 0

    def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
        self.drawn += size
        return super().discrete_gaussian(sigma, size)


@dataclass
class Zone:
    """Everything that stays when a process ends: ledger, store and key."""

    home: Path
    key: FingerprintKey = field(default=KEY)

    def __post_init__(self) -> None:
        self.ledger = Ledger(f"sqlite:///{self.home}/ledger.db")
        self.ledger.set_budget("brca", 2.0, 1e-5)
        self.store = StatisticStore(self.home / "statistics")

    def curator(self, noise: NoiseSource | None = None, *, cohort: str = "tcga", domain: str = "brca") -> Curator:
        return Curator(
            self.ledger, self.store, noise or CryptographicNoise(), domain=domain, cohort=cohort, run_id="run-1"
        )

    def table(self, x: np.ndarray | None = None) -> PrivateTable[Matrix]:
        x = np.random.default_rng(5).uniform(-1, 1, size=(40, 3)) if x is None else x
        return seal(Matrix(x), key=self.key, digest=lambda matrix: hashlib.sha256(matrix.x.tobytes()).digest())

    def query(
        self, apply: Map = lambda matrix: matrix.x, *, name: str = "identity", **changes: object
    ) -> StatisticQuery:
        fields = {
            "code": "SUM",
            "dimension": 3,
            "sensitivity": 2.0,
            "sigma": 10.0,
            "parameters": {"clip": 2.0},
        } | changes
        return StatisticQuery(contribution=within_row(f"tests.{name}", apply), **fields)


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    return Zone(tmp_path)


@pytest.fixture
def counting() -> CountingNoise:
    return CountingNoise()
