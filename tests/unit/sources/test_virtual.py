"""The virtual reader: sizes, streams, missingness, and errors that name the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from synth_platform.contract.cohort_spec import CohortSpec, CohortSpecError, load_cohort_spec
from synth_platform.contract.tables import CohortTables, to_wide
from synth_platform.contract.validate import validate
from synth_platform.sources.virtual import draw_cohort, draw_fresh

PATH = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"


@pytest.fixture(scope="module")
def spec() -> CohortSpec:
    return load_cohort_spec(PATH)


def with_options(spec: CohortSpec, **options: Any) -> CohortSpec:
    source = spec.source.model_copy(update={"options": spec.source.options | options})
    return spec.model_copy(update={"source": source})


def private(tables: CohortTables) -> pl.DataFrame:
    rows = tables.manifest.filter(pl.col("split") != "public").select("row_key")
    return rows.join(to_wide(tables), on="row_key")


def test_the_cohort_has_the_sizes_of_the_source(spec: CohortSpec) -> None:
    """8-1 §3.7: train 720, holdout 720 of which test 240, public 600; 20 omics features, 4 clinical variables."""
    tables = draw_cohort(spec)
    sizes = dict(tables.manifest.group_by("split").len().iter_rows())
    assert sizes == {"train": 720, "holdout": 480, "test": 240, "public": 600}
    assert tables.expression.width + tables.methylation.width == 22
    assert {v.name for v in spec.clinical if v.nullable} == {"stage", "marker"}
    assert validate(tables, spec).rejections == ()


def test_missing_values_stand_in_nullable_variables_alone_and_are_neither_rare_nor_common(spec: CohortSpec) -> None:
    shares = {name: table.null_count() / table.height for name, table in draw_cohort(spec) if name != "clinical"}
    assert all(value == 0 for frame in shares.values() for value in frame.row(0))
    clinical = draw_cohort(spec).clinical
    missing = {name: clinical[name].null_count() / clinical.height for name in clinical.columns}
    assert {name for name, share in missing.items() if share} == {"stage", "marker"}
    assert 0.03 < missing["stage"] < 0.2
    assert 0.05 < missing["marker"] < 0.2


def test_the_same_spec_gives_the_same_tables(spec: CohortSpec) -> None:
    for (_, one), (_, two) in zip(draw_cohort(spec), draw_cohort(spec), strict=True):
        assert_frame_equal(one, two)


@pytest.mark.parametrize("option", ["world_seed", "row_seed"])
def test_another_seed_gives_other_rows(spec: CohortSpec, option: str) -> None:
    other = with_options(spec, **{option: spec.source.options[option] + 1})
    assert not draw_cohort(spec).expression.equals(draw_cohort(other).expression)


def test_private_rows_depend_neither_on_the_shift_nor_on_the_public_size(spec: CohortSpec) -> None:
    """Catches one stream for both arms: a study of public shift would then change the truth as well."""
    other = with_options(spec, public_shift=0.7, public=10)
    assert_frame_equal(private(draw_cohort(spec)), private(draw_cohort(other)))


def test_public_tokens_do_not_depend_on_private_sizes(spec: CohortSpec) -> None:
    """Catches one sequence over all splits: the first public token would tell how many private rows there are."""
    one, two = draw_cohort(spec).manifest, draw_cohort(with_options(spec, train=5, holdout=2, test=1)).manifest
    public = one.filter(split="public")["row_key"]
    assert public.to_list() == two.filter(split="public")["row_key"].to_list() == [f"R-{n:06d}" for n in range(1, 601)]
    assert one["row_key"].is_unique().all()


def test_fresh_rows_are_new_and_repeat_with_their_seed(spec: CohortSpec) -> None:
    cohort = draw_cohort(spec)
    fresh = draw_fresh(spec, 300, seed=1)
    assert_frame_equal(fresh.expression, draw_fresh(spec, 300, seed=1).expression)
    assert fresh.manifest["row_key"][0] == "S-000001"
    assert fresh.manifest["split"].unique().to_list() == ["synthetic"]
    assert validate(fresh, spec).rejections == ()
    seen = set(cohort.expression["G01"]) | set(draw_fresh(spec, 300, seed=2).expression["G01"])
    assert not seen & set(fresh.expression["G01"])


def test_other_units_are_the_logarithms_of_the_same_rows(spec: CohortSpec) -> None:
    """tpm = 2^x - 1, and beta is the inverse of M = log2((beta + e)/(1 - beta + e)), e = .001 (8-1 §1.2)."""
    logs = spec.model_copy(
        update={
            "expression": spec.expression.model_copy(update={"unit": "log2_expression"}),
            "methylation": spec.methylation.model_copy(update={"unit": "m_value"}),
        }
    )
    native, logged = draw_cohort(spec), draw_cohort(logs)
    e = 1e-3
    assert_frame_equal(native.expression.select((pl.col("G03") + 1).log(2)), logged.expression.select("G03"))
    beta = pl.col("M05")
    assert_frame_equal(
        native.methylation.select(((beta + e) / (1 - beta + e)).log(2)), logged.methylation.select("M05")
    )


def test_fifty_thousand_rows_and_no_public_ones(spec: CohortSpec) -> None:
    tables = draw_cohort(with_options(spec, train=50_000, holdout=0, test=0, public=0))
    assert tables.manifest.height == 50_000
    assert tables.manifest["row_key"].is_unique().all()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"train": -1}, r"source\.options\.train"),
        ({"public": 50_001}, r"source\.options\.public"),
        ({"public_shift": 1.5}, r"source\.options\.public_shift"),
        ({"world_seed": "eight"}, r"source\.options\.world_seed"),
        ({"trian": 720}, r"source\.options\.trian"),
    ],
)
def test_a_wrong_option_is_named(spec: CohortSpec, options: dict[str, Any], field: str) -> None:
    with pytest.raises(CohortSpecError, match=field):
        draw_cohort(with_options(spec, **options))


def test_a_world_needs_its_own_variables_and_modalities(spec: CohortSpec) -> None:
    with pytest.raises(CohortSpecError, match="clinical"):
        draw_cohort(spec.model_copy(update={"clinical": spec.clinical[:-1]}))
    with pytest.raises(CohortSpecError, match="methylation"):
        draw_cohort(spec.model_copy(update={"methylation": None}))
    counts = spec.expression.model_copy(update={"unit": "count"})
    with pytest.raises(CohortSpecError, match=r"expression\.unit"):
        draw_cohort(spec.model_copy(update={"expression": counts}))
    two = [v.model_copy(update={"categories": ("S1", "S2")}) if v.name == "subtype" else v for v in spec.clinical]
    with pytest.raises(CohortSpecError, match="3 subtypes"):
        draw_cohort(spec.model_copy(update={"clinical": tuple(two)}))
