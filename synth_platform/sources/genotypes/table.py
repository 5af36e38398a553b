"""Genotypes as Parquet, one row per variant: the columns of VARIANT_SCHEMA, then one column of dosages per sample.

Called genotypes are whole numbers 0, 1, 2 with null or -1 for missing, imputed ones floats with null or NaN. `alt` is
the allele that is counted. Row groups are read a batch of rows at a time, so a file of one row group is streamed too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from synth_platform.sources.genotypes.block import (
    BLOCK_BYTES,
    BLOCK_SIZE,
    OVERLONG_ID,
    VARIANT_SCHEMA,
    Field,
    GenotypeBlock,
    GenotypeError,
    overlong_id,
    require_samples,
    require_size,
)

PAGE_BUFFER = 1 << 14  # bytes read ahead per column


class ParquetReader:
    """A Parquet file of dosages; raises GenotypeError for missing variant columns or dosage columns of another type."""

    def __init__(self, path: Path, field: Field = "GT") -> None:
        self.path = path
        self.field = field
        with self._open() as file:
            schema = file.schema_arrow
        missing = [name for name in VARIANT_SCHEMA if name not in schema.names]
        if missing:
            raise GenotypeError(f"{path}: no column {', '.join(missing)}; write one row per variant with these columns")
        columns = [column for column in schema if column.name not in VARIANT_SCHEMA]
        self.samples = require_samples([column.name for column in columns], path)
        whole = all(pa.types.is_integer(column.type) for column in columns)
        if not (whole or (field == "DS" and all(pa.types.is_floating(column.type) for column in columns))):
            raise GenotypeError(
                f"{path}: the sample columns are not all whole numbers (for GT; floats throughout are read as DS); "
                "write them with one type"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        """The file itself."""
        return (self.path,)

    def blocks(self, size: int = BLOCK_SIZE) -> Iterator[GenotypeBlock]:
        """Blocks as of `GenotypeReader`."""
        require_size(size)
        rows = min(size, max(1, BLOCK_BYTES // len(self.samples)))
        done = 0
        with self._open() as file:
            batches = file.iter_batches(batch_size=rows, use_threads=False)
            while (batch := self._next(batches)) is not None:
                yield self._block(batch, done)
                done += batch.height
        if not done:
            raise GenotypeError(f"{self.path}: the file has no variants; export it again")

    def _open(self) -> Any:
        try:
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=PAGE_BUFFER)
        except (pa.ArrowException, OSError):
            raise GenotypeError(f"{self.path}: not readable as Parquet; write it again in that format") from None

    def _next(self, batches: Iterator[Any]) -> pl.DataFrame | None:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError):
            raise GenotypeError(f"{self.path}: a page of the Parquet file is damaged; copy it again") from None
        return None if batch is None else pl.DataFrame(batch)

    def _block(self, batch: pl.DataFrame, done: int) -> GenotypeBlock:
        try:
            variants = batch.select(pl.col(name).cast(dtype) for name, dtype in VARIANT_SCHEMA.items())
        except pl.exceptions.PolarsError:
            raise GenotypeError(f"{self.path}: a variant column has another type than text (position: whole)") from None
        empty = variants.select(pl.any_horizontal(pl.all().is_null())).to_series().arg_true()
        if len(empty):
            raise GenotypeError(f"{self.path}, row {done + 1 + empty[0]}: a variant column is empty; fill it")
        self._require_words(variants, done)
        dosages = batch.select(self.samples)
        if self.field == "GT":
            return GenotypeBlock(variants, np.asfortranarray(self._counts(dosages, done).T))
        return GenotypeBlock(variants, np.asfortranarray(self._numbers(dosages, done).T))

    def _require_words(self, variants: pl.DataFrame, done: int) -> None:
        """No text file can hold a control character in a cell, and the digest of a list is taken of lines of cells."""
        controls = variants.select(pl.any_horizontal(pl.col(pl.String).str.contains(r"\p{Cc}"))).to_series().arg_true()
        if len(controls):
            raise GenotypeError(
                f"{self.path}, row {done + 1 + controls[0]}: a variant column has a tab, a line end or another control "
                "character; take it out"
            )
        overlong = overlong_id(variants["variant_id"])
        if overlong is not None:
            raise GenotypeError(f"{self.path}, row {done + 1 + overlong}: {OVERLONG_ID}")

    def _counts(self, dosages: pl.DataFrame, done: int) -> NDArray[np.int8]:
        values = dosages.fill_null(-1).to_numpy()
        self._require((values >= -1) & (values <= 2), done, "0, 1, 2 and missing")
        return values.astype(np.int8)

    def _numbers(self, dosages: pl.DataFrame, done: int) -> NDArray[np.float32]:
        values = dosages.cast(pl.Float32).fill_null(float("nan")).to_numpy()
        if dosages.dtypes[0].is_integer():
            values = np.where(values == -1, np.float32("nan"), values)
        self._require(np.isnan(values) | ((values >= 0) & (values <= 2)), done, "the numbers of 0 to 2 and missing")
        return values

    def _require(self, good: NDArray[np.bool_], done: int, wanted: str) -> None:
        if not good.all():
            row = done + 1 + int(good.all(axis=1).argmin())
            raise GenotypeError(f"{self.path}, row {row}: a dosage is none of {wanted}; correct it")
