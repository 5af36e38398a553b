"""The `tables` reader: a steward's own Parquet or CSV files, one per contract table.

It joins nothing and drops nothing. It finds the files, re-issues the keys, fills the manifest columns that cohort.yaml
already states, and widens types where no value changes; whatever is wrong with the values is the contract's to say.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from synth_platform.contract.cohort_sections import TableName
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import MATRICES, OPAQUE_KEY, CohortTables
from synth_platform.sources.keys import reissue

FORMATS = (".parquet", ".csv", ".csv.gz")
NULLS = ["", "NA"]


class SourceError(ValueError):
    """A cohort's files cannot be read; the message names the cohort, the file and what to do, never a cell or a key."""


def read_tables(spec: CohortSpec, folder: Path) -> CohortTables:
    """Read `source.files`, relative to `folder`. Raises SourceError.

    Every key is replaced, the same patient by the same token in every table, and rows come in token order so that their
    place in the files is gone too. Keys are kept only where cohort.yaml says `keys: opaque`: how a key looks proves
    nothing, hospital numbers such as MRN-556815 look like tokens.
    """
    frames = {name: _read(spec, name, path) for name, path in _files(spec, folder).items()}
    if spec.source.keys == "opaque":
        _require_opaque(spec, frames)
    else:
        tokens = reissue(list(frames.values()), "row_key", _public_keys(spec, frames["manifest"]))
        frames = {
            name: frame.with_columns(
                pl.col("row_key").replace_strict(tokens, default=None, return_dtype=pl.String)
            ).sort("row_key", maintain_order=True)
            for name, frame in frames.items()
        }
    return CohortTables(
        manifest=_manifest(spec, frames),
        expression=frames.get("expression"),
        methylation=frames.get("methylation"),
        clinical=frames["clinical"],
    )


def _files(spec: CohortSpec, folder: Path) -> dict[TableName, Path]:
    registered: set[TableName] = {"manifest", "clinical"}
    registered |= {name for name in MATRICES if getattr(spec, name) is not None}
    given = spec.source.files
    where = f"cohort {spec.name!r}: source.files"
    for name in sorted(registered - set(given)):
        raise SourceError(f"{where}.{name}: no file is named; add {name}: NAME.parquet (or .csv, .csv.gz)")
    for name in sorted(set(given) - registered):
        raise SourceError(f"{where}.{name}: the cohort has no section {name!r}; add the section or drop the file")
    paths = {name: folder / given[name] for name in given}
    for name, path in paths.items():
        if not path.name.endswith(FORMATS):
            raise SourceError(f"{where}.{name}: {path.name} is none of {', '.join(FORMATS)}; convert it to one of them")
        if not path.is_file():
            raise SourceError(f"{where}.{name}: {path} does not exist; put it there or correct the name")
    if len(set(paths.values())) < len(paths):
        raise SourceError(f"{where}: one file is named for two tables; every table needs a file of its own")
    return paths


def _read(spec: CohortSpec, name: TableName, path: Path) -> pl.DataFrame:
    key = spec.source.key_column
    wanted = _wanted_types(spec, name)
    where = f"cohort {spec.name!r}: source.files.{name}: {path.name}"
    try:
        with path.open("rb") as file:
            if path.name.endswith(".parquet"):
                frame = pl.read_parquet(file)
            else:
                text = {column: dtype for column, dtype in wanted.items() if dtype == pl.String}
                if name == "manifest":
                    text |= {spec.source.batch_column: pl.String(), spec.source.split_column: pl.String()}
                frame = pl.read_csv(
                    file, infer_schema_length=None, null_values=NULLS, schema_overrides={**text, key: pl.String}
                )
    except (pl.exceptions.PolarsError, OSError, EOFError):
        # The cause is dropped on purpose: parser messages quote cells.
        kind = "Parquet" if path.name.endswith(".parquet") else "CSV with one header line, commas and UTF-8"
        raise SourceError(f"{where} is not readable as {kind}; write it again in that format") from None
    if key not in frame.columns:
        raise SourceError(f"{where} has no column {key!r}; name the key column of every file in source.key_column")
    if key != "row_key" and "row_key" in frame.columns:
        raise SourceError(f"{where} has both {key!r} and 'row_key'; keep one of them")
    if frame[key].dtype != pl.String and not frame[key].dtype.is_integer():
        raise SourceError(f"{where}: key column {key!r} holds {frame[key].dtype}; keys are text or whole numbers")
    renamed = {key: "row_key", **(_manifest_columns(spec, frame, where) if name == "manifest" else {})}
    frame = frame.rename(renamed).with_columns(pl.col("row_key").cast(pl.String))
    return frame.with_columns(_widen(frame[column], wanted.get(column)) for column in frame.columns)


def _manifest_columns(spec: CohortSpec, frame: pl.DataFrame, where: str) -> dict[str, str]:
    """The steward's names of the batch and split columns -> the contract's."""
    names = {
        "batch_column": (spec.source.batch_column, "batch_id"),
        "split_column": (spec.source.split_column, "split"),
    }
    for option, (given, registered) in names.items():
        if given not in frame.columns:
            raise SourceError(f"{where} has no column {given!r}; name it in source.{option}")
        if given != registered and registered in frame.columns:
            raise SourceError(f"{where} has both {given!r} and {registered!r}; keep one of them")
    return dict(names.values())


def _wanted_types(spec: CohortSpec, name: TableName) -> dict[str, pl.DataType]:
    """The registered type of a table's columns, where a reader may have to choose one."""
    if name == "manifest":
        return dict.fromkeys(("source", "batch_id", "split", "dua_tag", "modality_mask"), pl.String())
    if name == "clinical":
        text = ("categorical", "ordinal")
        return {v.name: pl.String() if v.kind in text else pl.Float64() for v in spec.clinical}
    return dict.fromkeys(getattr(spec, name).panel, pl.Float64())


def _widen(column: pl.Series, wanted: pl.DataType | None) -> pl.Series:
    """The contract's own types where no value can change: wider numbers, plain text, a typed column of nulls."""
    dtype = column.dtype
    if column.null_count() == len(column) and wanted is not None:
        return column.cast(wanted)
    if isinstance(dtype, (pl.Categorical, pl.Enum)):
        return column.cast(pl.String)
    if dtype == pl.Float32:
        return column.cast(pl.Float64)
    return column.cast(pl.Int64) if dtype.is_integer() and dtype not in {pl.UInt64, pl.Int128} else column


def _require_opaque(spec: CohortSpec, frames: dict[TableName, pl.DataFrame]) -> None:
    for name, frame in frames.items():
        if not frame["row_key"].str.contains(OPAQUE_KEY).fill_null(True).all():
            raise SourceError(
                f"cohort {spec.name!r}: source.keys is 'opaque', but {spec.source.files[name]} has keys that are no "
                "tokens like P-000001; drop source.keys and every key is re-issued"
            )


def _public_keys(spec: CohortSpec, manifest: pl.DataFrame) -> set[str]:
    """Keys that stand in the public split and in no other."""
    if manifest.schema["split"] != pl.String:
        return set()  # the contract refuses the cohort for it
    public = (manifest["split"] == spec.reference.split).fill_null(False)
    return set(manifest.filter(public)["row_key"].drop_nulls()) - set(manifest.filter(~public)["row_key"])


def _manifest(spec: CohortSpec, frames: dict[TableName, pl.DataFrame]) -> pl.DataFrame:
    """The manifest with `source`, `dua_tag` and `modality_mask` filled in where the file leaves them to cohort.yaml."""
    manifest = frames["manifest"]
    present = [
        pl.when(pl.col("row_key").is_in(frames[name]["row_key"].drop_nulls().to_list())).then(pl.lit(name))
        for name in MATRICES
        if name in frames
    ]
    stated = {
        "source": pl.lit(spec.source_code),
        "dua_tag": pl.lit(spec.dua_tag),
        # Always clinical: a patient without a clinical row is then a finding about the clinical table.
        "modality_mask": pl.concat_str(*present, pl.lit("clinical"), separator=",", ignore_nulls=True),
    }
    return manifest.with_columns(value.alias(name) for name, value in stated.items() if name not in manifest.columns)
