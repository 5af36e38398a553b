"""One protocol for every generator: measure (ledgered), fit (public), sample (post-processing)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease

Ask = Callable[[StatisticQuery[EncodedRows]], StatisticRelease]


@dataclass(frozen=True)
class PrivacyTarget:
    """The promise of one plan: (epsilon, delta) under add/remove of one patient."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class GeneratorState:
    """A fitted generator as it is stored: safetensors arrays plus a JSON document.

    arrays: float64/int64 arrays by name. document: JSON values: options, labels, diagnostics made of noisy or public
    figures only. entries: ledger entry ids of every statistic that went in (empty = no private row was read through a
    mechanism). unledgered: purposes of private accesses without an entry (controls); non-empty makes the formal status
    ABSENT. seeded: True if any statistic came from a seeded noise source.
    """

    generator: str
    arrays: Mapping[str, NDArray[np.float64] | NDArray[np.int64]]
    document: Mapping[str, object]
    entries: tuple[str, ...] = ()
    unledgered: tuple[str, ...] = ()
    seeded: bool = False


@dataclass(frozen=True)
class Measured:
    """What a generator got to know of private rows: releases, each with its ledger entry, and the purposes of accesses
    that have none. `unledgered` is empty for an honest generator; anything in it makes the formal status ABSENT."""

    releases: tuple[StatisticRelease, ...]
    unledgered: tuple[str, ...] = ()


class DPGenerator(Protocol):
    """A generator that sees public rows and statistic releases, never the private table."""

    @property
    def code(self) -> str:
        """Generator code, as in cohort.yaml."""
        ...

    def measure(self, ask: Ask) -> tuple[StatisticRelease, ...]:
        """Ask for every statistic; `ask` is the only way to private rows, and each call is a ledger entry."""
        ...

    def fit(self, releases: tuple[StatisticRelease, ...]) -> GeneratorState:
        """Post-process noisy statistics and public rows into a state."""
        ...


class Sampler(Protocol):
    """How a stored state becomes rows again."""

    def __call__(self, state: GeneratorState, *, rows: int, seed: int) -> EncodedRows:
        """`rows` synthetic rows in model space, split "synthetic", keys S-000001...; deterministic in `seed`."""
        ...
