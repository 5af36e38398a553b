"""The `virtual` reader: contract tables drawn from a world of known truth (8-1 §3.7), in native units."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field, ValidationError

from synth_platform.contract.cohort_spec import CohortSpec, CohortSpecError, Modality, Strict
from synth_platform.contract.tables import CohortTables
from synth_platform.sources.keys import opaque_keys
from synth_platform.sources.world import SUBTYPES, Draw, FloatArray, World, draw, make_world

EPSILON_M = 1e-3  # 8-1 §1.2
CLINICAL = ("subtype", "survival_days", "died", "age", "smoker", "stage", "marker")
Rows = Annotated[int, Field(ge=0, le=50_000)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]

_PRIVATE_STREAM, _PUBLIC_STREAM, _FRESH_STREAM = 1, 2, 3


class VirtualOptions(Strict):
    """`source.options` of a virtual cohort: which world, which rows of it, how many, and how far the public rows are off.

    `public_shift` s in [0, 1]: subtype means and hazard weights of the public population are turned by s right angles, its
    baseline hazard is 2^s times the private one, and its prevalences are the private ones to the power 1 - 2s, normalised
    (even at s = .5, in reverse order at 1). 0 = the same population.
    """

    world_seed: Seed
    row_seed: Seed = 0
    train: Rows = 720
    holdout: Rows = 480
    test: Rows = 240
    public: Rows = 600
    public_shift: Annotated[float, Field(ge=0, le=1)] = 0.3


def draw_cohort(spec: CohortSpec) -> CohortTables:
    """All rows of a virtual cohort: splits train, holdout and test of the private population, and public.

    The same spec gives the same tables. Raises CohortSpecError naming the field of the spec that does not fit.
    """
    options = _options(spec)
    world = _world(spec, options)
    seeds = (options.world_seed, options.row_seed)
    private = options.train + options.holdout + options.test
    people = _stack(
        draw(world, world.private, private, np.random.default_rng([*seeds, _PRIVATE_STREAM])),
        draw(world, world.public, options.public, np.random.default_rng([*seeds, _PUBLIC_STREAM])),
    )
    sizes = {"train": options.train, "holdout": options.holdout, "test": options.test, "public": options.public}
    return _tables(spec, people, [split for split, rows in sizes.items() for _ in range(rows)], "P")


def draw_fresh(spec: CohortSpec, rows: int, seed: int) -> CohortTables:
    """`rows` people of the private population, independent of `draw_cohort` and of any other `seed` (S_ORACLE).

    Rows have split "synthetic" and keys S-000001...; like real rows they carry batch effects, so they need the same
    batch correction before they are compared.
    """
    options = _options(spec)
    world = _world(spec, options)
    rng = np.random.default_rng([options.world_seed, options.row_seed, _FRESH_STREAM, seed])
    return _tables(spec, draw(world, world.private, rows, rng), ["synthetic"] * rows, "S")


def _options(spec: CohortSpec) -> VirtualOptions:
    try:
        return VirtualOptions.model_validate(spec.source.options)
    except ValidationError as error:
        lines = [f"  source.options.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise CohortSpecError(f"cohort {spec.name!r}: {len(lines)} field(s) to correct\n" + "\n".join(lines)) from error


def _world(spec: CohortSpec, options: VirtualOptions) -> World:
    names = tuple(variable.name for variable in spec.clinical)
    if set(names) != set(CLINICAL):
        raise CohortSpecError(
            f"cohort {spec.name!r}: clinical: the virtual world draws {list(CLINICAL)}, not {list(names)}"
        )
    if len(spec.labels) != SUBTYPES:
        raise CohortSpecError(f"cohort {spec.name!r}: clinical.subtype: the virtual world has {SUBTYPES} subtypes")
    if spec.expression is None or spec.methylation is None:
        raise CohortSpecError(f"cohort {spec.name!r}: expression, methylation: the virtual world has both modalities")
    if spec.expression.unit == "count":
        raise CohortSpecError(
            f"cohort {spec.name!r}: expression.unit: the virtual world measures tpm or log2_expression"
        )
    return make_world(
        options.world_seed,
        expression=len(spec.expression.panel),
        methylation=len(spec.methylation.panel),
        batches=len(spec.batches),
        public_shift=options.public_shift,
    )


def _stack(*draws: Draw) -> Draw:
    return Draw(**{name: np.concatenate([getattr(d, name) for d in draws]) for name in Draw.__dataclass_fields__})


def _tables(spec: CohortSpec, people: Draw, splits: list[str], prefix: str) -> CohortTables:
    assert spec.expression is not None  # noqa: S101
    assert spec.methylation is not None  # noqa: S101
    keys = pl.Series("row_key", opaque_keys(len(splits), prefix), dtype=pl.String)
    genes = len(spec.expression.panel)
    categories = {v.name: np.array(v.categories, dtype=object) for v in spec.clinical if v.categories}
    columns: dict[str, pl.Series] = {
        "subtype": pl.Series(categories["subtype"][people.subtype], dtype=pl.String),
        "survival_days": pl.Series(people.time, dtype=pl.Float64).cast(pl.Int64),
        "died": pl.Series(people.event, dtype=pl.Int64),
        "age": pl.Series(people.age, dtype=pl.Float64).cast(pl.Int64),
        "smoker": pl.Series(people.smoker, dtype=pl.Int64),
        "stage": pl.Series([categories["stage"][s] if s >= 0 else None for s in people.stage], dtype=pl.String),
        "marker": pl.Series(people.marker, dtype=pl.Float64).fill_nan(None),
    }
    manifest = pl.DataFrame(
        {
            "row_key": keys,
            "source": pl.Series([spec.source_code] * len(keys), dtype=pl.String),
            "batch_id": pl.Series([spec.batches[b] for b in people.batch], dtype=pl.String),
            "split": pl.Series(splits, dtype=pl.String),
            "dua_tag": pl.Series([spec.dua_tag] * len(keys), dtype=pl.String),
            "modality_mask": pl.Series(["expression,methylation,clinical"] * len(keys), dtype=pl.String),
        }
    )
    return CohortTables(
        manifest=manifest,
        expression=_matrix(keys, spec.expression, _expression_units(people.omics[:, :genes], spec.expression.unit)),
        methylation=_matrix(keys, spec.methylation, _methylation_units(people.omics[:, genes:], spec.methylation.unit)),
        clinical=pl.DataFrame([keys, *(columns[v.name].alias(v.name) for v in spec.clinical)]),
    )


def _expression_units(log2: FloatArray, unit: str) -> FloatArray:
    log2 = np.maximum(log2, 0.0)
    return np.exp2(log2) - 1 if unit == "tpm" else log2


def _methylation_units(m_value: FloatArray, unit: str) -> FloatArray:
    """Beta from M by the inverse of 8-1 §1.2, kept in [0, 1]."""
    if unit == "m_value":
        return m_value
    ratio = np.exp2(m_value)
    return np.clip((ratio * (1 + EPSILON_M) - EPSILON_M) / (1 + ratio), 0.0, 1.0)


def _matrix(keys: pl.Series, modality: Modality, values: FloatArray) -> pl.DataFrame:
    return pl.DataFrame([keys, *(pl.Series(name, values[:, j]) for j, name in enumerate(modality.panel))])
