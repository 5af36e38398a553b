"""The public reference: public rows only, corrected within the public arm, and the same correction for private rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import CohortTables
from synth_platform.normalize.batch import batch_variance_ratio
from synth_platform.normalize.encoder import EncodeError
from synth_platform.normalize.reference import build_reference, public_batch_map

SpecOf = Callable[..., CohortSpec]
TablesOf = Callable[..., CohortTables]


def shifted(tables: CohortTables) -> CohortTables:
    """The same cohort with batch "south" measured at four times the level."""
    assert tables.expression is not None
    south = tables.manifest.filter(pl.col("batch_id") == "south")["row_key"]
    factor = pl.when(pl.col("row_key").is_in(south.implode())).then(4.0).otherwise(1.0)
    return replace(tables, expression=tables.expression.with_columns(pl.exclude("row_key") * factor))


def test_public_rows_are_corrected_and_described(spec_of: SpecOf, tables_of: TablesOf) -> None:
    spec = spec_of()
    public = shifted(tables_of(spec, 90, 1))
    reference = build_reference(public, spec)
    raw = reference.encoder.encode(public)
    genes = np.arange(4)
    assert batch_variance_ratio(raw, genes) > 0.2
    assert batch_variance_ratio(reference.rows, genes) < 0.03
    np.testing.assert_array_equal(reference.rows.x[:, 7:], raw.x[:, 7:])
    assert reference.batch_correction is not None
    assert reference.batch_correction.label_effects.shape == (3, 7)  # label differences are kept
    assert (reference.labels, reference.batches, reference.n_ref) == (spec.labels, spec.batches, 100)
    assert reference.rows.key.tolist() == raw.key.tolist()


def test_private_rows_are_corrected_by_public_constants_alone(spec_of: SpecOf, tables_of: TablesOf) -> None:
    """Each row by itself; a batch the public arm lacks passes through, however many rows it has."""
    spec = spec_of()
    reference = build_reference(shifted(tables_of(spec, 90, 1)), spec)
    private = reference.encoder.encode(shifted(tables_of(spec, 60, 2, "train")))
    correct = public_batch_map(reference)
    assert correct.name == "normalize.public_batch"
    whole = correct(private)
    for i in (0, 1, 2, 59):
        np.testing.assert_array_equal(correct(private.take(slice(i, i + 1))).x[0], whole.x[i])
    assert batch_variance_ratio(whole, np.arange(4)) < 0.3 * batch_variance_ratio(private, np.arange(4))
    for code in (-1, 7):
        unknown = replace(private, batch=np.full(60, code))
        np.testing.assert_array_equal(correct(unknown).x, unknown.x)


@pytest.mark.parametrize("minimum", [31, 200])
def test_too_few_rows_a_batch_leave_the_reference_uncorrected(
    minimum: int, spec_of: SpecOf, tables_of: TablesOf
) -> None:
    spec = spec_of(reference={"minimum_batch": minimum})
    public = shifted(tables_of(spec, 91, 1))  # batch north has 31 rows, the others 30
    reference = build_reference(public, spec)
    assert reference.batch_correction is None
    rows = reference.encoder.encode(public)
    np.testing.assert_array_equal(reference.rows.x, rows.x)
    assert public_batch_map(reference)(rows) is rows


def test_a_private_row_among_the_public_ones_is_refused(spec_of: SpecOf, tables_of: TablesOf) -> None:
    spec = spec_of()
    with pytest.raises(EncodeError, match="split 'public' alone"):
        build_reference(tables_of(spec, 30, 1, "holdout"), spec)
