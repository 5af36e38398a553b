"""Synthetic tables in one frame, one table per sampling seed, and back into model space as a gate sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import from_wide
from synth_platform.normalize.encoder import Encoder
from synth_platform.normalize.rows import EncodedRows

SEED = "sampling_seed"


def draw_replicates(sample: Callable[[int], EncodedRows], encoder: Encoder, seeds: Sequence[int]) -> pl.DataFrame:
    """One table per seed in native units and types, stacked: column `sampling_seed`, then the wide columns."""
    return pl.concat(
        [encoder.decode(sample(seed)).insert_column(0, pl.lit(seed, pl.Int64).alias(SEED)) for seed in seeds]
    )


def native_table(tables: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The wide native table of one sampling seed."""
    return tables.filter(pl.col(SEED) == seed).drop(SEED)


def encode_replicates(tables: pl.DataFrame, spec: CohortSpec, encoder: Encoder) -> tuple[EncodedRows, ...]:
    """Every table read back from its released form (8-1 §3.1 rule 4), in the order of the registered seeds."""
    return tuple(encoder.encode(from_wide(native_table(tables, seed), spec)) for seed in spec.synthetic.seeds)
