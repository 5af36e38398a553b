"""Small made-up cohorts in model space and two ways of answering a query: exactly, or with seeded noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from synth_platform.generators.protocol import Ask
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.mechanisms import gaussian_sum
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease

LABELS = ("basal", "luminal", "normal")
BATCHES = ("north", "south", "west")
FEATURES = tuple(f"f{j}" for j in range(8))


def draw_rows(n: int, seed: int, *, split: str = "train", batches: int = 3) -> EncodedRows:
    """n rows of eight correlated features; labels move the means, batches too, survival follows the first factor."""
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(0).normal(size=(3, len(FEATURES)))
    label = rng.integers(len(LABELS), size=n)
    batch = rng.integers(batches, size=n)
    factors = rng.normal(size=(n, 3)) + np.eye(3)[label] + 0.5 * np.eye(3)[batch]
    return EncodedRows(
        features=FEATURES,
        x=factors @ loadings + 0.5 * rng.normal(size=(n, len(FEATURES))),
        label=label,
        event=rng.integers(2, size=n),
        time=rng.exponential(np.exp(0.3 * factors[:, 0])) * 900 + 1,
        batch=batch,
        split=np.full(n, split),
        key=np.array([f"P-{i:06d}" for i in range(n)]),
    )


@pytest.fixture(scope="session")
def rows() -> Callable[..., EncodedRows]:
    return draw_rows


@pytest.fixture(scope="session")
def make_reference() -> Callable[..., PublicReference]:
    def make(*, n: int = 300, latent_batches: tuple[str, ...] = BATCHES, **changes: Any) -> PublicReference:
        fields = {
            "encoder": None,  # generators never encode
            "rows": draw_rows(n, seed=99, split="public"),
            "labels": LABELS,
            "batches": BATCHES,
            "n_ref": 1000,
            "latent_batches": latent_batches,
        }
        return PublicReference(**(fields | changes))

    return make


@pytest.fixture(scope="session")
def reference(make_reference: Callable[..., PublicReference]) -> PublicReference:
    return make_reference()


@pytest.fixture(scope="session")
def ask_exactly() -> Callable[[EncodedRows], Ask]:
    """Answers without noise: what post-processing makes of the true statistics."""

    def over(private: EncodedRows) -> Ask:
        def ask(query: StatisticQuery[EncodedRows]) -> StatisticRelease:
            return StatisticRelease(
                code=query.code,
                values=query.contribution(private).sum(axis=0),
                sensitivity=query.sensitivity,
                sigma=query.sigma,
                granularity=0.0,
                source="seeded",
                entry_id=f"entry-{query.code}",
                fingerprint="0" * 64,
            )

        return ask

    return over


@pytest.fixture(scope="session")
def ask_noisily() -> Callable[[EncodedRows, int], Ask]:
    """Answers through the real mechanism with a seeded noise source."""

    def over(private: EncodedRows, seed: int) -> Ask:
        noise = SeededNoise(seed)

        def ask(query: StatisticQuery[EncodedRows]) -> StatisticRelease:
            values, granularity = gaussian_sum(
                query.contribution(private), sensitivity=query.sensitivity, sigma=query.sigma, noise=noise
            )
            return StatisticRelease(
                code=query.code,
                values=values,
                sensitivity=query.sensitivity,
                sigma=query.sigma,
                granularity=granularity,
                source=noise.source,
                entry_id=f"entry-{query.code}",
                fingerprint="0" * 64,
            )

        return ask

    return over
