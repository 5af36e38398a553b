"""L0 against closed forms, its exact inverse, and the within-row quantile map against pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from synth_platform.normalize.within_sample import (
    library_sizes,
    map_to_quantiles,
    reference_quantiles,
    to_log_scale,
    to_native,
)

PROPERTY = settings(max_examples=60, deadline=None)
MATRIX = st.tuples(st.integers(1, 6), st.integers(1, 6))


def test_tpm_is_log2_of_one_more() -> None:
    np.testing.assert_allclose(to_log_scale(np.array([[0.0, 1.0, 3.0, 1023.0]]), "tpm"), [[0, 1, 2, 10]], atol=1e-14)


def test_counts_become_per_million_of_their_own_row() -> None:
    """Row totals 4 and 0; a wrong library size (column totals, all rows) changes the first row."""
    got = to_log_scale(np.array([[1.0, 3.0, np.nan], [0.0, 0.0, 0.0]]), "count")
    np.testing.assert_allclose(got[0, :2], np.log2([250_001, 750_001]), rtol=1e-14)
    assert np.isnan(got[0, 2])
    np.testing.assert_array_equal(got[1], 0)


def test_m_value_follows_its_formula_and_is_odd_about_one_half() -> None:
    beta = np.array([[0.0, 0.1, 0.5, 0.9, 1.0]])
    expected = [np.log2((b + 0.001) / (1 - b + 0.001)) for b in beta[0]]
    got = to_log_scale(beta, "beta")
    np.testing.assert_allclose(got, [expected], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(got, -got[:, ::-1], atol=1e-12)


@PROPERTY
@given(arrays(np.float64, MATRIX, elements=st.floats(0, 1e6)))
def test_tpm_comes_back(tpm: np.ndarray) -> None:
    np.testing.assert_allclose(to_native(to_log_scale(tpm, "tpm"), "tpm"), tpm, rtol=1e-9, atol=1e-9)


@PROPERTY
@given(arrays(np.float64, MATRIX, elements=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))))
def test_beta_comes_back_and_stays_in_range(beta: np.ndarray) -> None:
    back = to_native(to_log_scale(beta, "beta"), "beta")
    np.testing.assert_allclose(back, beta, rtol=0, atol=1e-12)
    assert ((back >= 0) & (back <= 1)).all()


@PROPERTY
@given(arrays(np.int64, MATRIX, elements=st.integers(0, 10**7)))
def test_counts_come_back_at_their_own_library_size(counts: np.ndarray) -> None:
    native = counts.astype(np.float64)
    back = to_native(to_log_scale(native, "count"), "count", library_sizes(native))
    np.testing.assert_allclose(back, native, rtol=1e-9, atol=1e-9)


@PROPERTY
@given(
    arrays(np.float64, MATRIX, elements=st.floats(-1e6, 1e6)),
    st.sampled_from(["tpm", "count", "beta", "log2_expression", "m_value"]),
)
def test_any_real_number_restores_inside_the_unit(values: np.ndarray, unit: str) -> None:
    """TPM of exactly a million at most: 1e6 (1 + 1e-16) would be out of the contract's range."""
    native = to_native(values, unit)  # type: ignore[arg-type]
    lowest, highest = {"beta": (0, 1), "log2_expression": (-64, 64), "m_value": (-53, 53)}.get(unit, (0, 1e6))
    assert ((native >= lowest) & (native <= highest * (1 + 1e-12 * (unit == "count")))).all()


@pytest.mark.parametrize("unit", ["tpm", "count", "beta", "log2_expression", "m_value"])
def test_missing_cells_stay_missing_and_touch_no_other_cell(unit: str) -> None:
    values = np.array([[0.25, 0.5, 0.75], [0.1, 0.2, 0.3]])
    holed = values.copy()
    holed[0, 1] = np.nan
    got = to_log_scale(holed, unit)  # type: ignore[arg-type]
    assert np.isnan(got[0, 1])
    np.testing.assert_array_equal(got[1], to_log_scale(values, unit)[1])  # type: ignore[arg-type]


def test_reference_is_the_mean_of_order_statistics() -> None:
    public = np.array([[3.0, 1.0, 2.0], [10.0, 30.0, 20.0]])
    np.testing.assert_allclose(reference_quantiles(public), [5.5, 11.0, 16.5])
    with_hole = np.array([[3.0, 1.0, 2.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_allclose(reference_quantiles(with_hole), [1, 2, 3])
    with pytest.raises(ValueError, match="at least one public row"):
        reference_quantiles(np.full((2, 3), np.nan))


def test_quantile_map_equals_quantile_normalisation_with_average_ranks() -> None:
    """Pandas' average rank, then linear interpolation of the reference between whole ranks."""
    rng = np.random.default_rng(5)
    values = np.round(rng.normal(size=(6, 40)), 1)  # rounding makes ties
    reference = np.sort(rng.normal(3, 2, 40))
    ranks = pd.DataFrame(values).rank(axis=1, method="average").to_numpy()
    below = np.floor(ranks).astype(int) - 1
    above = np.minimum(below + 1, 39)
    expected = reference[below] + (ranks - 1 - below) * (reference[above] - reference[below])
    np.testing.assert_allclose(map_to_quantiles(values, reference), expected, rtol=1e-12)


@PROPERTY
@given(arrays(np.int64, (4, 9), elements=st.integers(-50, 50), unique=True), st.integers(0, 3))
def test_quantile_map_sees_ranks_of_its_own_row_only(whole: np.ndarray, row: int) -> None:
    values = whole.astype(np.float64)
    reference = np.arange(9.0) ** 2
    mapped = map_to_quantiles(values, reference)
    np.testing.assert_array_equal(np.sort(mapped, axis=1), np.tile(reference, (4, 1)))
    np.testing.assert_array_equal(map_to_quantiles(values[[row]], reference)[0], mapped[row])
    np.testing.assert_array_equal(map_to_quantiles(3 * values[[row]] - 7, reference)[0], mapped[row])


def test_quantile_map_of_an_incomplete_row_spans_the_reference() -> None:
    """Two observed cells sit at the reference's quartiles; the unobserved ones stay missing."""
    mapped = map_to_quantiles(np.array([[7.0, np.nan, 5.0, np.nan]]), np.array([0.0, 1.0, 2.0, 3.0]))
    np.testing.assert_allclose(mapped, [[2.5, np.nan, 0.5, np.nan]])
