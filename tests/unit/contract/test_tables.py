"""The wide form is an exact inverse, whatever modalities a patient lacks; tables never print their cells."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.contract.tables import from_wide, modality_mask, of_split, panel, split_public, to_wide


def test_wide_columns_and_rows(tables, spec) -> None:
    wide = to_wide(tables)
    clinical = [variable.name for variable in spec.clinical]
    assert wide.columns == ["row_key", *clinical, *panel(spec, "expression"), *panel(spec, "methylation")]
    assert wide["row_key"].to_list() == tables.manifest["row_key"].to_list()
    assert wide["cg00000108"].to_list() == [0.1, 0.2, 0.3, 0.4, 0.5, None]


@settings(deadline=None, max_examples=40)
@given(order=st.permutations(range(6)), with_methylation=st.sets(st.integers(0, 5)))
def test_wide_and_back(order, with_methylation, tables, spec) -> None:
    """Rows find their patient in every table however the tables are ordered, and a mask says who lacks what."""
    wide = to_wide(tables.map(lambda _, table: table.reverse()))
    has = pl.int_range(pl.len()).is_in(list(with_methylation))
    cells = [pl.when(has).then(0.5).alias(column) for column in panel(spec, "methylation")]
    wide = wide.with_columns(cells)[order]
    back = from_wide(wide.select(reversed(wide.columns)), spec)
    assert to_wide(back).equals(wide)
    assert back.methylation.height == len(with_methylation)
    full, without = "expression,methylation,clinical", "expression,clinical"
    expected = [full if row in with_methylation else without for row in order]
    assert back.manifest["modality_mask"].to_list() == expected
    assert modality_mask(spec) == full


def test_synthetic_manifest_is_made_of_public_constants(tables, spec) -> None:
    manifest = from_wide(to_wide(tables), spec).manifest
    constants = manifest.drop("row_key", "modality_mask").unique()
    assert constants.rows(named=True) == [
        {"source": "TCGA", "batch_id": "REFERENCE", "split": "synthetic", "dua_tag": "RELEASE_REVIEWED"}
    ]


def test_wide_table_with_other_columns_is_refused(tables, spec) -> None:
    wide = to_wide(tables)
    with pytest.raises(ValueError, match=r"1 registered column\(s\) absent, 2 unregistered"):
        from_wide(wide.drop("age").with_columns(x=1, y=2), spec)


def test_a_repeated_key_or_a_shared_column_has_no_wide_form(tables) -> None:
    twice = tables.map(lambda name, table: pl.concat([table, table[:1]]) if name == "clinical" else table)
    with pytest.raises(pl.exceptions.PolarsError) as caught:
        to_wide(twice)
    assert "P-000104" not in str(caught.value)
    everywhere = tables.map(lambda _, table: pl.concat([table, table[:1]]))
    with pytest.raises(pl.exceptions.PolarsError):
        to_wide(everywhere)
    shared = tables.map(lambda name, table: table.rename({"age": "HLA-DOB"}) if name == "clinical" else table)
    with pytest.raises(ValueError, match=r"1 column name\(s\) stand in two tables"):
        to_wide(shared)


def test_splits_share_all_rows_between_them(tables, spec) -> None:
    splits = pl.Series("split", ["public", "train", "train", "train", "holdout", "test"])
    tables = replace(tables, manifest=tables.manifest.with_columns(splits))
    public, private = split_public(tables, spec)
    assert set(public.manifest["split"]) == {"public"}
    assert set(private.manifest["split"]) == {"train", "holdout", "test"}
    for name, table in tables:
        both = pl.concat([public.frame(name), private.frame(name)])
        assert both.sort("row_key").equals(table.sort("row_key"))
    assert of_split(tables, "train", "test").clinical["age"].to_list() == [90, 50, 51, 53]


def test_tables_do_not_print_their_cells(tables) -> None:
    assert repr(tables) == "CohortTables(manifest, expression, methylation, clinical)"
    assert f"{tables}" == repr(tables)


def test_a_panel_file_must_be_read_first(make_spec) -> None:
    spec = make_spec(expression={"unit": "tpm", "annotation": "x", "panel": "genes.txt"})
    with pytest.raises(ValueError, match=r"expression\.panel is the file name"):
        panel(spec, "expression")
