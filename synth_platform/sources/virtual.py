"""The `virtual` reader: contract tables drawn from a world of known truth (8-1 §3.7), in native units."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field, ValidationError

from synth_platform.contract.cohort_sections import Modality
from synth_platform.contract.cohort_spec import CohortSpec, CohortSpecError
from synth_platform.contract.options import Strict
from synth_platform.contract.tables import CohortTables, modality_mask, panel
from synth_platform.sources.keys import PRIVATE_PREFIX, PUBLIC_PREFIX, opaque_keys
from synth_platform.sources.world import SUBTYPES, Draw, FloatArray, World, draw, make_world

EPSILON_M = 1e-3  # 8-1 §1.2
CLINICAL = ("subtype", "survival_days", "died", "age", "smoker", "stage", "marker")
Rows = Annotated[int, Field(ge=0, le=50_000)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]

_PRIVATE_STREAM, _PUBLIC_STREAM, _FRESH_STREAM = 1, 2, 3


class VirtualOptions(Strict):
    """`source.options` of a virtual cohort: which world, which rows of it, how many, how far off the public rows are.

    A `public_shift` of s turns the subtype means and the hazard weights of the public population by s radians, raises
    its prevalences to the power 1 - s (1 = all alike) and multiplies its baseline hazard by 2^s. 0 = the private one.
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
    # Public rows are numbered by themselves, so that their tokens do not tell how many private rows there are.
    keys = [*opaque_keys(private, PRIVATE_PREFIX), *opaque_keys(options.public, PUBLIC_PREFIX)]
    return _tables(spec, people, [split for split, rows in sizes.items() for _ in range(rows)], keys)


def draw_fresh(spec: CohortSpec, rows: int, seed: int) -> CohortTables:
    """`rows` people of the private population, independent of `draw_cohort` and of any other `seed` (S_ORACLE).

    Rows have split "synthetic" and keys S-000001...; like real rows they carry batch effects, so they need the same
    batch correction before they are compared.
    """
    options = _options(spec)
    world = _world(spec, options)
    rng = np.random.default_rng([options.world_seed, options.row_seed, _FRESH_STREAM, seed])
    return _tables(spec, draw(world, world.private, rows, rng), ["synthetic"] * rows, opaque_keys(rows, "S"))


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
        expression=len(panel(spec, "expression")),
        methylation=len(panel(spec, "methylation")),
        batches=len(spec.batches),
        public_shift=options.public_shift,
    )


def _stack(*draws: Draw) -> Draw:
    return Draw(**{name: np.concatenate([getattr(d, name) for d in draws]) for name in Draw.__dataclass_fields__})


def _tables(spec: CohortSpec, people: Draw, splits: list[str], tokens: list[str]) -> CohortTables:
    keys = pl.Series("row_key", tokens, dtype=pl.String)
    subtypes, stages = (next(v.categories for v in spec.clinical if v.name == name) for name in ("subtype", "stage"))
    clinical = {
        "subtype": pl.Series([subtypes[s] for s in people.subtype], dtype=pl.String),
        "survival_days": pl.Series(people.time).cast(pl.Int64),
        "died": pl.Series(people.event),
        "age": pl.Series(people.age).cast(pl.Int64),
        "smoker": pl.Series(people.smoker),
        "stage": pl.Series([stages[s] if s >= 0 else None for s in people.stage], dtype=pl.String),
        "marker": pl.Series(people.marker).fill_nan(None),
    }
    manifest = pl.DataFrame([keys]).with_columns(
        pl.lit(spec.source_code).alias("source"),
        pl.Series("batch_id", [spec.batches[b] for b in people.batch], dtype=pl.String),
        pl.Series("split", splits, dtype=pl.String),
        pl.lit(spec.dua_tag).alias("dua_tag"),
        pl.lit(modality_mask(spec)).alias("modality_mask"),
    )
    genes = panel(spec, "expression")
    expression = _in_units(people.omics[:, : len(genes)], spec.expression)
    methylation = _in_units(people.omics[:, len(genes) :], spec.methylation)
    return CohortTables(
        manifest=manifest,
        expression=pl.DataFrame([keys, *map(pl.Series, genes, expression.T)]),
        methylation=pl.DataFrame([keys, *map(pl.Series, panel(spec, "methylation"), methylation.T)]),
        clinical=pl.DataFrame([keys, *(clinical[v.name].alias(v.name) for v in spec.clinical)]),
    )


def _in_units(logs: FloatArray, modality: Modality | None) -> FloatArray:
    """Native units: the inverses of 8-1 §1.2 (L0), kept in the range of the unit."""
    match modality.unit if modality else None:
        case "tpm":
            return np.asarray(np.exp2(np.maximum(logs, 0.0)) - 1)
        case "log2_expression":
            return np.asarray(np.maximum(logs, 0.0))
        case "beta":
            ratio = np.exp2(logs)
            return np.asarray(np.clip((ratio * (1 + EPSILON_M) - EPSILON_M) / (1 + ratio), 0.0, 1.0))
        case _:
            return logs
