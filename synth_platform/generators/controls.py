"""Controls (8-1 §3.7): generators whose right verdict is known beforehand, to test the gates with.

S_ORACLE   fresh rows of the virtual world: keeps utility, leaks nothing, has no ledger entry.
S_COPY     training rows: must fail privacy.
S_MIX      15 % training rows among fresh ones, or public ones without a world to draw from: must fail it too.
S_MARGINAL every column of the training rows shuffled on its own: must fail utility.
S_PUBLIC   public rows: touches nothing private, and is what a DP generator has to beat.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from synth_platform.contract.cohort_spec import CONTROLS, GeneratorCode
from synth_platform.generators.protocol import GeneratorState
from synth_platform.generators.synthetic import feature_names, synthetic_rows
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows, FloatArray, IntArray, concatenate

MIX_COPIED_SHARE = 0.15


def fit_control(
    code: GeneratorCode,
    *,
    reference: PublicReference,
    train: EncodedRows | None = None,
    fresh: EncodedRows | None = None,
) -> GeneratorState:
    """The rows a control draws from, as a state. Every one but S_PUBLIC holds private rows: keep it restricted.

    train: training rows as the real arm sees them. fresh: an independent draw of the same world (S_ORACLE, S_MIX);
    give as many rows as all sampling seeds need together, or their tables overlap.
    Raises ValueError for a code that is no control, for missing or empty rows and for foreign features.
    """
    pools: dict[GeneratorCode, dict[str, EncodedRows | None]] = {
        "S_ORACLE": {"fresh": fresh},
        "S_COPY": {"train": train},
        "S_MIX": {"train": train, **({"public": reference.rows} if fresh is None else {"fresh": fresh})},
        "S_MARGINAL": {"train": train},
        "S_PUBLIC": {"public": reference.rows},
    }
    if code not in pools:
        raise ValueError(f"{code!r} is not a control; controls are {', '.join(CONTROLS)}")
    arrays: dict[str, FloatArray | IntArray] = {}
    for pool, rows in pools[code].items():
        if rows is None or len(rows) == 0:
            raise ValueError(f"{code} needs {pool} rows and got none")
        if rows.features != reference.rows.features:
            raise ValueError(f"{code}: {pool} rows have other features than the public reference")
        arrays |= {f"{pool}.{name}": getattr(rows, name) for name in ("x", "label", "event", "time")}
    return GeneratorState(
        generator=code,
        arrays=arrays,
        document={"features": list(reference.rows.features), "pools": list(pools[code])},
        unledgered=tuple(f"control {code}: {pool} rows" for pool in pools[code] if pool != "public"),
    )


def sample(state: GeneratorState, *, rows: int, seed: int) -> EncodedRows:
    """`rows` rows of the control's table, in random order.

    Training and fresh rows are drawn without replacement as long as they last (a copy of all of them is the plainest
    leak). S_PUBLIC resamples with replacement: without, all seeds would give the same table.
    """
    rng = np.random.default_rng(seed)
    if state.generator == "S_MIX":
        copied = round(MIX_COPIED_SHARE * rows)
        rest = _pool(state, "fresh" if "fresh.x" in state.arrays else "public")
        parts = [_draw(rng, _pool(state, "train"), copied), _draw(rng, rest, rows - copied)]
        table = concatenate(parts).take(rng.permutation(rows))
    elif state.generator == "S_MARGINAL":
        table = _shuffle_columns(rng, _draw(rng, _pool(state, "train"), rows))
    elif state.generator == "S_PUBLIC":
        public = _pool(state, "public")
        table = public.take(rng.integers(len(public), size=rows))
    elif state.generator in ("S_ORACLE", "S_COPY"):
        table = _draw(rng, _pool(state, "fresh" if state.generator == "S_ORACLE" else "train"), rows)
    else:
        raise ValueError(f"{state.generator!r} is not a control; controls are {', '.join(CONTROLS)}")
    return synthetic_rows(table.features, x=table.x, label=table.label, event=table.event, time=table.time)


def _pool(state: GeneratorState, pool: str) -> EncodedRows:
    x, label, event, time = (state.arrays[f"{pool}.{name}"] for name in ("x", "label", "event", "time"))
    return synthetic_rows(
        feature_names(state),
        x=x.astype(np.float64),
        label=label.astype(np.int64),
        event=event.astype(np.int64),
        time=time.astype(np.float64),
    )


def _draw(rng: np.random.Generator, pool: EncodedRows, rows: int) -> EncodedRows:
    """`rows` of the pool in random order; no row is used again before every other one was."""
    passes = -(-rows // len(pool))
    order: IntArray = np.concatenate([np.arange(0), *(rng.permutation(len(pool)) for _ in range(passes))])
    return pool.take(order[:rows])


def _shuffle_columns(rng: np.random.Generator, rows: EncodedRows) -> EncodedRows:
    return replace(
        rows,
        x=rng.permuted(rows.x, axis=0),
        label=rng.permutation(rows.label),
        event=rng.permutation(rows.event),
        time=rng.permutation(rows.time),
    )
