"""The contract tables of one cohort, and their one-row-per-patient wide form (8-1 §1.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import polars as pl

from synth_platform.contract.cohort_sections import MatrixName, Modality, TableName
from synth_platform.contract.cohort_spec import CohortSpec

OPAQUE_KEY = r"^[A-Z]{1,3}-[0-9]{6}$"
SYNTHETIC_PREFIX = "S-"
SYNTHETIC_SPLIT = "synthetic"
REAL_SPLITS = ("public", "train", "holdout", "test")
NEEDED_SPLITS = ("public", "train", "test")  # the test split alone can stand for all non-members
REFERENCE_BATCH = "REFERENCE"
MANIFEST_COLUMNS = ("row_key", "source", "batch_id", "split", "dua_tag", "modality_mask")
MATRICES: tuple[MatrixName, ...] = ("expression", "methylation")


@dataclass(frozen=True, repr=False)
class CohortTables:
    """The tables of one cohort, one row per patient (the privacy unit) in each.

    manifest:    the columns of `MANIFEST_COLUMNS`, all String. `split` is one of `REAL_SPLITS`, or "synthetic" for
                 generated rows, which alone have keys "S-......". `modality_mask` names the tables in which the patient
                 was observed, comma-separated in the order expression, methylation, clinical.
    expression:  row_key and the panel's columns, Float64 in the registered unit; a patient without the modality has
                 no row. None where the cohort does not register the modality.
    methylation: likewise; null = detection failure.
    clinical:    row_key and the registered variables; null = missing.
    """

    manifest: pl.DataFrame
    expression: pl.DataFrame | None
    methylation: pl.DataFrame | None
    clinical: pl.DataFrame

    def __iter__(self) -> Iterator[tuple[TableName, pl.DataFrame]]:
        """(name, table) of every table there is."""
        names: tuple[TableName, ...] = ("manifest", *MATRICES, "clinical")
        for name in names:
            table = getattr(self, name)
            if table is not None:
                yield name, table

    def __repr__(self) -> str:
        return f"CohortTables({', '.join(name for name, _ in self)})"  # a frame's own repr prints cells

    def frame(self, name: TableName) -> pl.DataFrame:
        """The table of that name. Raises KeyError if the cohort has none."""
        return dict(self)[name]

    def map(self, change: Callable[[TableName, pl.DataFrame], pl.DataFrame]) -> CohortTables:
        """The same tables with `change(name, table)` in place of each."""
        return replace(self, **{name: change(name, table) for name, table in self})


def matrices(spec: CohortSpec) -> dict[MatrixName, Modality]:
    """The matrices a cohort registers, in table order."""
    declared: dict[MatrixName, Modality | None] = {"expression": spec.expression, "methylation": spec.methylation}
    return {name: modality for name, modality in declared.items() if modality is not None}


def panel(spec: CohortSpec, matrix: MatrixName) -> tuple[str, ...]:
    """Feature ids of a matrix in panel order; empty where the cohort does not register the modality.

    Raises ValueError if the panel is still a file name, which only `load_cohort_spec` can resolve.
    """
    modality = matrices(spec).get(matrix)
    if modality is None:
        return ()
    if isinstance(modality.panel, str):
        raise ValueError(f"{matrix}.panel is the file name {modality.panel!r}; read the cohort with load_cohort_spec")
    return tuple(modality.panel)


def modality_mask(spec: CohortSpec) -> str:
    """The mask of a patient observed in every registered modality, e.g. "expression,methylation,clinical"."""
    return ",".join([*matrices(spec), "clinical"])


def to_wide(tables: CohortTables) -> pl.DataFrame:
    """One row per patient, in manifest order: row_key, clinical, expression and methylation columns.

    A patient without a modality has nulls there. Raises ValueError if two tables share a column name or a key repeats.
    """
    wide = tables.manifest.select("row_key")
    for table in (tables.clinical, tables.expression, tables.methylation):
        if table is None:
            continue
        shared = set(wide.columns) & set(table.columns) - {"row_key"}
        if shared:
            raise ValueError(f"{len(shared)} column name(s) stand in two tables; feature ids are unique in a cohort")
        if table["row_key"].equals(wide["row_key"]) and table["row_key"].is_unique().all():
            wide = wide.hstack(table.drop("row_key"))  # aligned already: columns are shared, nothing is copied
        else:
            wide = wide.join(table, on="row_key", how="left", validate="1:1", maintain_order="left")
    return wide


def of_split(tables: CohortTables, *splits: str) -> CohortTables:
    """The rows of every table whose manifest split is one of `splits`."""
    keys = tables.manifest.filter(pl.col("split").is_in(splits)).select("row_key")
    return tables.map(lambda _, table: table.join(keys, on="row_key", how="semi", maintain_order="left"))


def from_wide(frame: pl.DataFrame, spec: CohortSpec) -> CohortTables:
    """Contract tables of generated rows from their wide form (row_key and every registered column, any order).

    The manifest is made of public constants: split "synthetic", the reference batch (generation is at the condition
    gamma = 0, 8-1 §1.2 L2b), the cohort's source and DUA tag. A row whose matrix columns are all null is without that
    modality. Raises ValueError counting the registered columns that `frame` lacks and the columns it has beyond them.
    """
    clinical = tuple(variable.name for variable in spec.clinical)
    registered = {"row_key", *clinical, *panel(spec, "expression"), *panel(spec, "methylation")}
    absent, extra = registered - set(frame.columns), set(frame.columns) - registered
    if absent or extra:
        raise ValueError(
            f"wide table of {spec.name!r}: {len(absent)} registered column(s) absent, {len(extra)} unregistered"
        )
    observed = {name: ~pl.all_horizontal(pl.col(panel(spec, name)).is_null()) for name in matrices(spec)}
    masks = [pl.when(seen).then(pl.lit(name)) for name, seen in observed.items()]
    manifest = frame.select(
        "row_key",
        pl.lit(spec.source_code).alias("source"),
        pl.lit(REFERENCE_BATCH).alias("batch_id"),
        pl.lit(SYNTHETIC_SPLIT).alias("split"),
        pl.lit(spec.dua_tag).alias("dua_tag"),
        pl.concat_str(*masks, pl.lit("clinical"), separator=",", ignore_nulls=True).alias("modality_mask"),
    )
    return CohortTables(
        manifest=manifest,
        expression=_matrix(frame, spec, "expression"),
        methylation=_matrix(frame, spec, "methylation"),
        clinical=frame.select("row_key", *clinical),
    )


def _matrix(frame: pl.DataFrame, spec: CohortSpec, name: MatrixName) -> pl.DataFrame | None:
    columns = panel(spec, name)
    if not columns:
        return None
    matrix = frame.select("row_key", *columns)
    return matrix.filter(~pl.all_horizontal(pl.col(columns).is_null()))


def split_public(tables: CohortTables, spec: CohortSpec) -> tuple[CohortTables, CohortTables]:
    """(public, private) rows: those of the public reference split, and all others."""
    public = of_split(tables, spec.reference.split)
    keys = public.manifest.select("row_key")
    return public, tables.map(lambda _, table: table.join(keys, on="row_key", how="anti", maintain_order="left"))
