"""Clinical variables to columns and back: exact for admissible values, nearest admissible value for all others."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from synth_platform.contract.cohort_sections import ClinicalVariable
from synth_platform.normalize.clinical import column_names, from_columns, scale_floor, to_columns

AGE = ClinicalVariable(name="age", kind="continuous", minimum=18.5, maximum=95.5, integer=True)
MARKER = ClinicalVariable(name="marker", kind="continuous", minimum=-1, maximum=4, nullable=True)
SMOKER = ClinicalVariable(name="smoker", kind="binary", nullable=True)
STAGE = ClinicalVariable(name="stage", kind="ordinal", categories=("I", "II", "III"), nullable=True)
SITE = ClinicalVariable(name="site", kind="categorical", categories=("left", "right", "both"), nullable=True)
LOSS = ClinicalVariable(name="loss", kind="continuous", minimum=-3.5, maximum=-0.5, integer=True)
DAYS = ClinicalVariable(name="days", kind="survival_time", minimum=0, maximum=10, integer=True)

VALUES = {
    "age": pl.Series("age", [19, 95, 40], dtype=pl.Int64),
    "marker": pl.Series("marker", [-1.0, None, 3.25], dtype=pl.Float64),
    "smoker": pl.Series("smoker", [1, 0, None], dtype=pl.Int64),
    "stage": pl.Series("stage", ["III", None, "I"], dtype=pl.String),
    "site": pl.Series("site", [None, "both", "left"], dtype=pl.String),
}
VARIABLES = (AGE, MARKER, SMOKER, STAGE, SITE)


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda v: v.name)
def test_admissible_values_come_back_with_their_type(variable: ClinicalVariable) -> None:
    values = VALUES[variable.name]
    columns = to_columns(variable, values)
    assert columns.shape == (3, len(column_names(variable))) == (3, scale_floor(variable).size)
    back = from_columns(variable, np.nan_to_num(columns))
    assert back.dtype == values.dtype
    assert back.equals(values)


def test_layout_of_columns() -> None:
    assert column_names(AGE) == ("age",)
    assert column_names(MARKER) == ("marker", "marker__missing")
    assert column_names(SITE) == ("site=left", "site=right", "site=both", "site__missing")
    np.testing.assert_array_equal(
        to_columns(SITE, VALUES["site"]), [[np.nan, np.nan, np.nan, 1], [0, 0, 1, 0], [1, 0, 0, 0]]
    )
    np.testing.assert_array_equal(to_columns(STAGE, VALUES["stage"]), [[2, 0], [np.nan, 1], [0, 0]])


def test_nearest_admissible_value() -> None:
    assert from_columns(AGE, np.array([[0.0], [18.6], [44.6], [400.0]])).to_list() == [19, 19, 45, 95]
    assert from_columns(LOSS, np.array([[-9.0], [-1.6], [7.0]])).to_list() == [-3, -2, -1]
    assert from_columns(MARKER, np.array([[-9.0, 0.49], [9.0, -3.0], [1.5, 0.5]])).to_list() == [-1.0, 4.0, None]
    assert from_columns(SMOKER, np.array([[0.49, 0.0], [0.5, 0.0], [7.0, 0.0]])).to_list() == [0, 1, 1]
    assert from_columns(STAGE, np.array([[-4.0, 0], [1.4, 0], [1.6, 0], [8.0, 0]])).to_list() == [
        "I",
        "II",
        "III",
        "III",
    ]
    assert from_columns(SITE, np.array([[0.2, 0.3, 0.1, 0], [-1, -2, -0.5, 0]])).to_list() == ["right", "both"]


def test_a_follow_up_of_zero_days_is_not_made() -> None:
    assert from_columns(DAYS, np.array([[0.2], [-5.0], [99.0]])).to_list() == [1, 1, 10]


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, (5, 4), elements=st.floats(-1e12, 1e12)))
def test_any_real_columns_give_an_admissible_value(columns: np.ndarray) -> None:
    age = from_columns(AGE, columns[:, :1])
    assert age.dtype == pl.Int64
    assert age.is_between(19, 95).all()
    marker = from_columns(MARKER, columns[:, :2])
    assert marker.drop_nulls().is_between(-1, 4).all()
    assert marker.is_null().to_list() == (columns[:, 1] >= 0.5).tolist()
    assert from_columns(SMOKER, columns[:, :2]).drop_nulls().is_in([0, 1]).all()
    assert from_columns(STAGE, columns[:, :2]).drop_nulls().is_in(list(STAGE.categories)).all()
    assert from_columns(SITE, columns).drop_nulls().is_in(list(SITE.categories)).all()


def test_an_unregistered_category_is_refused_without_its_value() -> None:
    with pytest.raises(ValueError, match=r"^stage: ") as caught:
        to_columns(STAGE, pl.Series("stage", ["I", "secret", None]))
    assert "secret" not in str(caught.value)
