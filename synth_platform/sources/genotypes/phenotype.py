"""Who is a case and who a control: a registered column of a table, or column 6 of a .fam, joined to a file's samples.

Group sizes are public and registered; a table that does not give exactly these sizes is refused, and the message does
not tell the sizes it has.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synth_platform.sources.genotypes.block import GenotypeError
from synth_platform.sources.genotypes.plink import read_fam

FAM_CASE, FAM_CONTROL, FAM_MISSING = "2", "1", ("0", "-9")
SEPARATORS = {".csv": ",", ".tsv": "\t"}
FORMATS = ".csv, .tsv, .csv.gz, .tsv.gz, .parquet"


@dataclass(frozen=True, eq=False)
class Phenotypes:
    """Cases and controls of a file, each key once: `frame` has key (String) and case (Boolean)."""

    frame: pl.DataFrame = field(repr=False)
    origin: str  # file and column, for messages


@dataclass(frozen=True, eq=False)
class CaseControl:
    """kept: int64 [n_kept], positions of the samples with a phenotype, ascending; case: bool [n_kept] for these.

    without_sample: how many cases and controls of the table have no sample. Restricted, as is all else here.
    """

    kept: NDArray[np.int64] = field(repr=False)
    case: NDArray[np.bool_] = field(repr=False)
    without_sample: int = field(repr=False)


def read_phenotypes(
    path: Path, *, key_column: str, column: str, case: Collection[str], control: Collection[str]
) -> Phenotypes:
    """The rows of a CSV, TSV or Parquet table whose `column` holds one of the registered values.

    case, control: values as text ("1" for the number 1); rows with another value, or none, belong to neither group.
    Raises ValueError for registered values that are empty or stand for both groups, GenotypeError for the file.
    """
    if not case or not control or set(case) & set(control):
        raise ValueError("case and control: register at least one value for each, and none for both")
    frame = _read_table(path)
    for option, name in (("key_column", key_column), ("column", column)):
        if name not in frame.columns:
            raise GenotypeError(f"{path}: no column {name!r}; correct {option}")
        if not (
            frame[name].dtype in (pl.String, pl.Boolean, pl.Categorical, pl.Enum) or frame[name].dtype.is_integer()
        ):
            raise GenotypeError(f"{path}: column {name!r} holds fractions or dates; write text or whole numbers")
    rows = frame.select(key=pl.col(key_column).cast(pl.String), value=pl.col(column).cast(pl.String))
    return _phenotypes(rows, case, control, f"{path}, column {column!r}")


def read_fam_phenotypes(path: Path) -> Phenotypes:
    """Column 6 of a .fam by individual id: 2 case, 1 control, 0 or -9 neither; GenotypeError for anything else."""
    if not path.is_file():
        raise GenotypeError(f"{path}: no such file; put the .fam beside its .bed, or name a table of phenotypes")
    rows = read_fam(path).rename({"phenotype": "value"})
    if not rows["value"].is_in([FAM_CASE, FAM_CONTROL, *FAM_MISSING]).all():
        raise GenotypeError(f"{path}: column 6 is not a case-control phenotype (1, 2, 0 or -9); name a table instead")
    return _phenotypes(rows, [FAM_CASE], [FAM_CONTROL], f"{path}, column 6")


def join_phenotypes(samples: Sequence[str], phenotypes: Phenotypes, *, n_case: int, n_control: int) -> CaseControl:
    """The samples that are cases or controls; GenotypeError unless `n_case` and `n_control` of them."""
    joined = (
        pl.DataFrame({"key": samples}, schema={"key": pl.String})
        .with_row_index("at")
        .join(phenotypes.frame, on="key", how="inner", validate="1:1", maintain_order="left")
    )
    case = joined["case"].to_numpy()
    if case.sum() != n_case or (~case).sum() != n_control:
        raise GenotypeError(
            f"{phenotypes.origin}: cases and controls among the samples are not as many as registered; correct the "
            "registered sizes, the case and control values, or the key column"
        )
    without_sample = phenotypes.frame.height - joined.height
    return CaseControl(joined["at"].cast(pl.Int64).to_numpy(), case, without_sample)


def _phenotypes(rows: pl.DataFrame, case: Collection[str], control: Collection[str], origin: str) -> Phenotypes:
    rows = rows.filter(pl.col("value").is_in([*case, *control]))
    if rows["key"].null_count():
        raise GenotypeError(f"{origin}: a case or control has no key; fill the key column")
    if rows["key"].is_duplicated().any():
        raise GenotypeError(
            f"{origin}: a key stands in more than one row of cases and controls; keep one row per sample"
        )
    return Phenotypes(rows.select("key", case=pl.col("value").is_in(list(case))), origin)


def _read_table(path: Path) -> pl.DataFrame:
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if not path.is_file():
        raise GenotypeError(f"{path}: no such file; correct the path")
    try:
        with path.open("rb") as file:
            if path.name.endswith(".parquet"):
                return pl.read_parquet(file)
            if suffix in SEPARATORS:
                return pl.read_csv(file, separator=SEPARATORS[suffix], infer_schema=False)
    except (pl.exceptions.PolarsError, OSError, EOFError):
        # The cause is dropped on purpose: parser messages quote cells.
        raise GenotypeError(f"{path}: not readable as a table ({FORMATS}); write it again") from None
    raise GenotypeError(f"{path}: not a table by its name; give one of {FORMATS}")
