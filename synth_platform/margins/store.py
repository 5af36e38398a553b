"""Margins, rows and fits as files and back, equal to the last bit: safetensors, Parquet and sealed JSON.

Rows are private where they were counted from people: their files belong in the restricted zone.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.cliques import JunctionTree
from synth_platform.margins.fitting.dense import DenseFit
from synth_platform.margins.fitting.fitted import FitReport, Fitted
from synth_platform.margins.fitting.junction_tree import JunctionTreeFit
from synth_platform.margins.fitting.weighted_rows import WeightedRowsFit
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.rows import Rows
from synth_platform.margins.sealed_files import Array, SealedFilesError, array_bytes, arrays_of, opened, sealed
from synth_platform.margins.structural_zeros import StructuralZero
from synth_platform.privacy.fingerprint import canonical_json

MARGINS, ROWS, FITTED = "margins", "rows", "fitted"
_COUNTS, _CODES, _TABLES = "counts.safetensors", "codes.parquet", "tables.safetensors"


def margin_set_files(margins: MarginSet) -> dict[str, bytes]:
    """File name -> content of margins with their domain, zeros and provenance."""
    document = {
        "domain": _domain_document(margins.domain),
        "zeros": [[[name, list(labels)] for name, labels in zero.categories] for zero in margins.zeros],
        "margins": [{"names": list(m.names), "provenance": list(m.provenance)} for m in margins],
    }
    counts = {str(at): margin.counts for at, margin in enumerate(margins)}
    return sealed(MARGINS, document, {_COUNTS: array_bytes(counts)})


def margin_set_from_files(files: Mapping[str, bytes]) -> MarginSet:
    """The margins in `files`. Raises SealedFilesError naming the file that is missing, altered or of another kind."""
    document = opened(MARGINS, files)
    with _understood(MARGINS):
        counts = arrays_of(files[_COUNTS])
        margins = tuple(
            Margin(tuple(m["names"]), counts[str(at)], tuple(m["provenance"]))
            for at, m in enumerate(document["margins"])
        )
        zeros = (tuple((name, tuple(labels)) for name, labels in zero) for zero in document["zeros"])
        return MarginSet(_domain(document["domain"]), margins, tuple(map(StructuralZero, zeros)))


def rows_files(rows: Rows) -> dict[str, bytes]:
    """File name -> content of rows in their order: a column of small whole numbers for each variable."""
    codes = pl.DataFrame(
        [
            pl.Series(variable.name, rows.codes[:, axis].astype(np.min_scalar_type(len(variable) - 1)))
            for axis, variable in enumerate(rows.domain.variables)
        ]
    )
    content = io.BytesIO()
    codes.write_parquet(content, compression="zstd", statistics=False)
    return sealed(ROWS, {"domain": _domain_document(rows.domain)}, {_CODES: content.getvalue()})


def rows_from_files(files: Mapping[str, bytes]) -> Rows:
    """The rows in `files`. Raises SealedFilesError naming the file that is missing, altered or of another kind."""
    document = opened(ROWS, files)
    with _understood(ROWS):
        domain = _domain(document["domain"])
        frame = pl.read_parquet(io.BytesIO(files[_CODES]))
        # Not select(), which takes a variable named * for all of them.
        codes = [frame.get_column(name).to_numpy() for name in domain.names]
        return Rows(domain, np.stack(codes, axis=1).astype(np.int64))


def content_digest(rows: Rows) -> bytes:
    """SHA-256 of the domain and the codes in the order of the rows.

    Of private rows it is a membership oracle: name them by a keyed fingerprint of it.
    """
    digest = hashlib.sha256(canonical_json([_domain_document(rows.domain), list(rows.codes.shape)]))
    digest.update(np.ascontiguousarray(rows.codes, dtype="<i8").reshape(-1).view(np.uint8).data)
    return digest.digest()


def fitted_files(fitted: Fitted) -> dict[str, bytes]:
    """File name -> content of a fit of any engine. Raises SealedFilesError for a fit of none of them."""
    own: dict[str, object]
    arrays: dict[str, Array]
    match fitted:
        case DenseFit():
            own, arrays = {"order": list(fitted.order)}, {"table": fitted.table}
        case JunctionTreeFit():
            own = {
                "cliques": [list(names) for names in fitted.tree.cliques],
                "parents": list(fitted.tree.parents),
                "separators": [list(names) for names in fitted.tree.separators],
            }
            arrays = {str(at): table for at, table in enumerate(fitted.tables)}
        case WeightedRowsFit():
            own, arrays = {}, {"columns": fitted.candidates.T, "weights": fitted.weights}
        case _:
            raise SealedFilesError(f"{type(fitted).__name__} is a fit of no known engine")
    document = {"domain": _domain_document(fitted.domain), "report": asdict(fitted.report), "own": own}
    return sealed(FITTED, document, {_TABLES: array_bytes(arrays)})


def fitted_from_files(files: Mapping[str, bytes]) -> Fitted:
    """The fit in `files`. Raises SealedFilesError naming the file that is missing, altered or of another kind."""
    document = opened(FITTED, files)
    with _understood(FITTED):
        domain, report, own = _domain(document["domain"]), FitReport(**document["report"]), document["own"]
        arrays = arrays_of(files[_TABLES])
        match report.engine:
            case "dense":
                return DenseFit(domain, report, tuple(own["order"]), arrays["table"])
            case "junction_tree":
                cliques, separators = (tuple(map(tuple, own[part])) for part in ("cliques", "separators"))
                tree = JunctionTree(cliques, tuple(own["parents"]), separators)
                return JunctionTreeFit(domain, tree, tuple(arrays[str(at)] for at in range(len(cliques))), report)
            case "weighted_rows":
                return WeightedRowsFit(domain, arrays["columns"].T, arrays["weights"], report)
            case _:
                raise ValueError(f"engine {report.engine!r} is none of dense, junction_tree, weighted_rows")


def _domain_document(domain: Domain) -> list[dict[str, object]]:
    return [
        {"name": each.name, "categories": list(each.categories), "kind": each.kind, "missing": each.missing}
        for each in domain.variables
    ]


def _domain(document: list[dict[str, Any]]) -> Domain:
    return Domain(tuple(Variable(**{**each, "categories": tuple(each["categories"])}) for each in document))


@contextmanager
def _understood(name: str) -> Iterator[None]:
    """Content that is whole but not of this version: an error that names the file."""
    try:
        yield
    except KeyError as error:
        raise SealedFilesError(f"{name}.json: {error} is missing: written by another version; make it again") from None
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise SealedFilesError(f"{name}.json: written by another version; make it again: {error}") from None
