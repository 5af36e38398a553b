"""The frozen map: exact there and back, outcome beside the features, every row by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import CohortTables, from_wide, to_wide
from synth_platform.contract.validate import validate
from synth_platform.normalize.encoder import EncodeError, Encoder, fit_encoder
from synth_platform.normalize.rows import EncodedRows
from synth_platform.normalize.select import select_split

SpecOf = Callable[..., CohortSpec]
TablesOf = Callable[..., CohortTables]
CELLS = ["ENSG1", "ENSG2", "ENSG3", "ENSG4", "cg1", "cg2", "cg3"]


def where(tables: CohortTables, keep: pl.Expr) -> CohortTables:
    keys = tables.manifest.filter(keep).select("row_key")
    return tables.map(lambda _, table: table.join(keys, on="row_key", how="semi"))


@pytest.fixture(scope="module")
def small(spec_of: SpecOf, tables_of: TablesOf) -> tuple[CohortSpec, Encoder, CohortTables]:
    spec = spec_of()
    return spec, fit_encoder(tables_of(spec, 80, 1), spec), tables_of(spec, 40, 2, "train")


@pytest.mark.parametrize("expression", ["tpm", "log2_expression"])
@pytest.mark.parametrize("methylation", ["beta", "m_value"])
def test_decode_undoes_encode(expression: str, methylation: str, spec_of: SpecOf, tables_of: TablesOf) -> None:
    """Every observed cell returns in its unit and type; an unobserved omics cell returns as the public mean."""
    spec = spec_of(expression_unit=expression, methylation_unit=methylation)
    encoder = fit_encoder(tables_of(spec, 80, 1), spec)
    original = to_wide(tables_of(spec, 40, 2, "train"))
    back = encoder.decode(encoder.encode(tables_of(spec, 40, 2, "train")))
    assert set(back.columns) == set(original.columns)
    original = original.select(back.columns)
    assert back.select(CELLS).null_count().sum_horizontal().item() == 0
    holes = [pl.when(original[cell].is_not_null()).then(pl.col(cell)).alias(cell) for cell in CELLS]
    assert_frame_equal(back.with_columns(holes), original, check_exact=False, abs_tol=1e-9, rel_tol=1e-9)


def test_counts_return_whole_at_the_public_library_size(spec_of: SpecOf, tables_of: TablesOf) -> None:
    """A row with twice the public library size comes back halved: depth is not reproduced, composition is."""
    spec = spec_of(expression_unit="count")
    public = tables_of(spec, 81, 1)
    encoder = fit_encoder(public, spec)
    assert public.expression is not None
    totals = public.expression.drop("row_key").sum_horizontal()
    size = float(np.median(totals.to_numpy()))
    deep = replace(public, expression=public.expression.with_columns(pl.exclude("row_key") * 2))
    back = encoder.decode(encoder.encode(deep)).select(CELLS[:4]).to_numpy()
    share = public.expression.drop("row_key").to_numpy() / totals.to_numpy()[:, None]
    np.testing.assert_array_equal(back, np.rint(back))
    np.testing.assert_allclose(back, share * size, rtol=0, atol=0.5 + 1e-9)


def test_the_outcome_stands_beside_the_features(small: tuple[CohortSpec, Encoder, CohortTables]) -> None:
    spec, encoder, tables = small
    rows = encoder.encode(tables)
    assert not {"subtype", "days", "died"} & {name.split("=")[0] for name in rows.features}
    assert rows.features[:7] == tuple(CELLS)
    assert rows.features[7:] == (
        *("age", "marker", "marker__missing", "smoker", "smoker__missing", "stage", "stage__missing"),
        *("site=left", "site=right", "site=both", "site__missing"),
    )
    assert encoder.omics_columns.tolist() == list(range(7))
    assert [spec.labels[code] for code in rows.label] == tables.clinical["subtype"].to_list()
    assert rows.time.tolist() == tables.clinical["days"].to_list()
    assert rows.event.tolist() == tables.clinical["died"].to_list()
    assert [spec.batches[code] for code in rows.batch] == tables.manifest["batch_id"].to_list()
    assert set(rows.split) == {"train"}


def test_public_rows_are_standardised_and_missing_cells_are_zero(
    spec_of: SpecOf, tables_of: TablesOf, small: tuple[CohortSpec, Encoder, CohortTables]
) -> None:
    spec, encoder, _ = small
    public = tables_of(spec, 80, 1)
    rows = encoder.encode(public)
    np.testing.assert_allclose(rows.x.mean(axis=0), 0, atol=1e-12)
    assert public.methylation is not None
    hole = public.methylation["cg2"].is_null().to_numpy()
    column = rows.x[:, rows.features.index("cg2")]
    assert (column[hole] == 0).all()
    np.testing.assert_allclose(column[~hole].std(ddof=1), 1)
    at = [rows.features.index(name) for name in ("marker", "marker__missing")]
    missing = public.clinical["marker"].is_null().to_numpy()
    assert (rows.x[missing, at[0]] == 0).all()
    assert rows.x[missing, at[1]].min() > 0 > rows.x[~missing, at[1]].max()


def test_a_batch_that_is_not_declared_is_minus_one(small: tuple[CohortSpec, Encoder, CohortTables]) -> None:
    _, encoder, tables = small
    elsewhere = replace(tables, manifest=tables.manifest.with_columns(pl.lit("elsewhere").alias("batch_id")))
    assert set(encoder.encode(elsewhere).batch) == {-1}


@settings(max_examples=25, deadline=None)
@given(order=st.permutations(range(40)), size=st.integers(1, 40))
def test_each_row_is_encoded_by_itself(
    order: list[int], size: int, small: tuple[CohortSpec, Encoder, CohortTables]
) -> None:
    """Any subset in any order, each table shuffled its own way, gives the same encoded rows: no statistic over rows."""
    _, encoder, tables = small
    whole = encoder.encode(tables)
    chosen = order[:size]
    subset = replace(
        tables.map(lambda _, table: table[sorted(chosen)]),
        manifest=tables.manifest[chosen],
    )
    rows = encoder.encoding(subset)
    np.testing.assert_array_equal(rows.x, whole.x[chosen])
    np.testing.assert_array_equal(rows.label, whole.label[chosen])
    np.testing.assert_array_equal(rows.time, whole.time[chosen])
    np.testing.assert_array_equal(rows.key, whole.key[chosen])


def test_a_patient_without_a_modality_is_at_its_public_mean(small: tuple[CohortSpec, Encoder, CohortTables]) -> None:
    _, encoder, tables = small
    assert tables.methylation is not None
    rows = encoder.encode(replace(tables, methylation=tables.methylation[1:]))
    whole = encoder.encode(tables)
    assert (rows.x[0, 4:7] == 0).all()
    np.testing.assert_array_equal(rows.x[1:], whole.x[1:])
    np.testing.assert_array_equal(rows.x[0, 7:], whole.x[0, 7:])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(0.1, 40))
def test_whatever_a_generator_makes_decodes_to_an_accepted_table(
    seed: int, spread: float, small: tuple[CohortSpec, Encoder, CohortTables]
) -> None:
    spec, encoder, _ = small
    rng = np.random.default_rng(seed)
    n = 6
    rows = EncodedRows(
        features=encoder.features,
        x=rng.normal(0, spread, (n, len(encoder.features))),
        label=rng.integers(0, 3, n),
        event=rng.integers(0, 2, n),
        time=rng.lognormal(6, 3, n),
        batch=np.full(n, -1),
        split=np.full(n, "synthetic"),
        key=np.array([f"S-{i + 1:06d}" for i in range(n)]),
    )
    tables = from_wide(encoder.decode(rows), spec)
    report = validate(tables, spec)
    assert not report.rejections
    again = encoder.encode(tables)
    np.testing.assert_array_equal(again.label, rows.label)
    np.testing.assert_array_equal(again.event, rows.event)


def test_the_document_restores_the_encoder_bit_for_bit(spec_of: SpecOf, tables_of: TablesOf) -> None:
    spec = spec_of(quantile_map=True, expression_unit="count")
    encoder = fit_encoder(tables_of(spec, 80, 1), spec)
    again = Encoder.from_document(json.loads(json.dumps(encoder.to_document())))
    tables = tables_of(spec, 40, 2, "train")
    rows = encoder.encode(tables)
    np.testing.assert_array_equal(again.encode(tables).x, rows.x)
    assert_frame_equal(again.decode(rows), encoder.decode(rows), check_exact=True)
    assert again.to_document() == encoder.to_document()
    with pytest.raises(ValueError, match="mean and scale"):
        Encoder.from_document(encoder.to_document() | {"mean": [0.0], "scale": [1.0]})


def test_the_quantile_map_removes_what_a_monotone_distortion_of_a_row_did(spec_of: SpecOf, tables_of: TablesOf) -> None:
    spec = spec_of(quantile_map=True)
    encoder = fit_encoder(tables_of(spec, 80, 1), spec)
    tables = tables_of(spec, 40, 2, "train")
    assert tables.expression is not None
    distorted = replace(tables, expression=tables.expression.with_columns((pl.exclude("row_key") + 1) ** 0.5 * 17))
    np.testing.assert_array_equal(encoder.encode(distorted).x, encoder.encode(tables).x)


def test_what_public_rows_do_not_vary_in_has_a_stated_scale(spec_of: SpecOf, tables_of: TablesOf) -> None:
    """.05 in log2 units, 1e-4 of a measurement's range, .1 for codes and 0/1 columns: never a division by zero."""
    spec = spec_of()
    tables = tables_of(spec, 30, 1)
    assert tables.expression is not None
    flat = replace(
        tables,
        expression=tables.expression.with_columns(pl.lit(7.0).alias("ENSG2")),
        clinical=tables.clinical.with_columns(
            pl.lit(50, pl.Int64).alias("age"), pl.lit(0, pl.Int64).alias("smoker"), pl.lit("I").alias("stage")
        ),
    )
    encoder = fit_encoder(flat, spec)
    scale = dict(zip(encoder.features, encoder.standardisation.scale, strict=True))
    flat_columns = ("ENSG2", "age", "smoker", "smoker__missing", "stage")
    assert [scale[name] for name in flat_columns] == pytest.approx([0.05, 0.0077, 0.1, 0.1, 0.1])
    assert scale["ENSG1"] > 0.05


def test_only_public_rows_fit_an_encoder(spec_of: SpecOf, tables_of: TablesOf) -> None:
    spec = spec_of()
    tables = tables_of(spec, 30, 1)
    one_private = pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("train")).otherwise("split").alias("split")
    with pytest.raises(EncodeError, match="split 'public' alone"):
        fit_encoder(replace(tables, manifest=tables.manifest.with_columns(one_private)), spec)


def test_a_feature_name_in_two_modalities_is_named(spec_of: SpecOf, tables_of: TablesOf) -> None:
    spec = spec_of()
    tables = tables_of(spec, 30, 1)
    assert spec.methylation is not None
    assert tables.methylation is not None
    twice = spec.model_copy(update={"methylation": spec.methylation.model_copy(update={"panel": ("ENSG2", "cg1")})})
    with pytest.raises(EncodeError, match=r"^ENSG2: "):
        fit_encoder(replace(tables, methylation=tables.methylation.rename({"cg2": "ENSG2"})), twice)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("subtype", "Normal", "select the registered rows"),
        ("subtype", None, "select the registered rows"),
        ("days", -3, "positive time"),
        ("days", None, "positive time"),
        ("died", None, "positive time"),
    ],
)
def test_a_bad_outcome_is_refused_without_its_value(
    column: str, value: object, message: str, small: tuple[CohortSpec, Encoder, CohortTables]
) -> None:
    _, encoder, tables = small
    cell = pl.when(pl.int_range(pl.len()) == 3).then(pl.lit(value)).otherwise(column).alias(column)
    with pytest.raises(EncodeError, match=message) as caught:
        encoder.encode(replace(tables, clinical=tables.clinical.with_columns(cell)))
    assert "Normal" not in str(caught.value)
    assert "-3" not in str(caught.value)


def test_missing_parts_are_named(small: tuple[CohortSpec, Encoder, CohortTables]) -> None:
    _, encoder, tables = small
    assert tables.expression is not None
    with pytest.raises(EncodeError, match="methylation: "):
        encoder.encode(replace(tables, methylation=None))
    with pytest.raises(EncodeError, match="expression: no column 'ENSG3'"):
        encoder.encode(replace(tables, expression=tables.expression.drop("ENSG3")))
    with pytest.raises(EncodeError, match="no column 'stage'"):
        encoder.encode(replace(tables, clinical=tables.clinical.drop("stage")))
    with pytest.raises(EncodeError, match="expression: a row_key occurs twice"):
        encoder.encode(replace(tables, expression=pl.concat([tables.expression, tables.expression[:1]])))
    rows = encoder.encode(tables)
    with pytest.raises(EncodeError, match="features"):
        encoder.decode(replace(rows, features=rows.features[::-1]))
    with pytest.raises(EncodeError, match="label code"):
        encoder.decode(replace(rows, label=rows.label + 1))


def test_select_split_keeps_rows_by_their_own_split(small: tuple[CohortSpec, Encoder, CohortTables]) -> None:
    _, encoder, tables = small
    rows = encoder.encode(tables)
    mixed = replace(rows, split=np.array(["train", "holdout", "test", "public"] * 10))
    assert select_split("train", "test")(mixed).key.tolist() == rows.key[::2].tolist()
    assert select_split("train").name == "normalize.where_split"
    assert encoder.encoding.name == "normalize.encode"
