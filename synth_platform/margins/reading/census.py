"""A census as its steward's files give it now: rows in categories, or margins that were published already."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from synth_platform.contract.census_spec import REPLICATE, CensusSpec
from synth_platform.margins.domain import Domain
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.reading.curate import Curated, CurationError, curate
from synth_platform.margins.reading.microdata import read_microdata
from synth_platform.margins.reading.published import read_tables
from synth_platform.margins.structural_zeros import StructuralZero


@dataclass(frozen=True, eq=False)
class Microdata:
    """Curated rows, and what the ledger knows their people by. Restricted.

    people: SHA-256 of the file's cells as text, whatever the order of its rows and columns and its format, so that
    another recipe or another sorting of the same file has no second budget.
    """

    curated: Curated
    people: bytes


def read_census(spec: CensusSpec, folder: Path) -> Microdata | MarginSet:
    """Curated microdata, or published tables, of a census in `folder`.

    Raises SourceError, CurationError or ValueError naming the file, the column and what to do; never a cell of
    microdata.
    """
    if spec.source.tables is not None:
        return _tables(spec, folder, spec.source.tables)
    file = str(spec.source.microdata)
    frame = read_microdata(folder / file)
    curated = curate(frame, spec.recipe, source=file)
    _refuse_names(curated.rows.domain, file)
    return Microdata(curated, _people(frame))


def _tables(spec: CensusSpec, folder: Path, tables: str) -> MarginSet:
    zeros = [StructuralZero.of(zero) for zero in spec.recipe.structural_zeros]
    margins = read_tables(folder / tables, zeros, totals=spec.source.totals)
    _refuse_names(margins.domain, tables)
    return margins


def _refuse_names(domain: Domain, source: str) -> None:
    if REPLICATE in domain.names:
        raise CurationError(f"{source}: a variable is called {REPLICATE}, as a synthetic table's number is; rename it")
    counts = next((name for name in domain.names if name.casefold() == "count"), None)
    if counts is not None:
        raise CurationError(
            f"{source}: a variable is called {counts}, as the counts of released margins are; rename it"
        )


def _people(frame: pl.DataFrame) -> bytes:
    text = frame.select(pl.col(name).cast(pl.String) for name in sorted(frame.columns))
    digest = hashlib.sha256()
    for column in text.sort(text.columns).iter_columns():
        lengths = column.str.len_bytes().cast(pl.Int64).fill_null(-1)
        name = column.name.encode()
        digest.update(len(name).to_bytes(8, "little") + name + lengths.to_numpy().tobytes())
        digest.update("".join(column.drop_nulls().to_list()).encode())
    return digest.digest()
