"""The schema suite: each kind of fault is found, named by column, and never shown by value."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import polars as pl
import pytest
from upath import UPath

from checks.schema import schema_check
from checks.summaries import (
    ANY_NUMBER_OF_NULLS,
    SUMMARY,
    Described,
    rules,
    summarise_arrays,
    summarise_document,
)
from synth_platform.privacy.private_errors import PrivateComputationError

GOOD = ("age", "Int64", 0, 0, 18.0, 95.0)
RULE = ("age", "Int64", 0, 18.0, 95.0)
SECRET = 94.8461537


def described(*columns: tuple[Any, ...], registered: tuple[Any, ...] = (RULE,)) -> Described:
    return Described(pl.DataFrame(columns, schema=SUMMARY, orient="row"), rules(registered))


def checked(described: Described, folder: Path) -> dg.AssetCheckResult:
    return schema_check(described, dg.AssetKey(["cohort", "clinical"]), UPath(folder))


def test_a_table_as_registered_passes(tmp_path: Path) -> None:
    """Claim: bounds are inclusive, and a passing check leaves its validation to look at."""
    result = checked(described(GOOD), tmp_path)
    assert result.passed
    assert result.severity == dg.AssetCheckSeverity.ERROR
    assert "All expectations hold" in (tmp_path / "validation.html").read_text("utf-8")
    assert json.loads((tmp_path / "validation.json").read_text("utf-8"))["success"] is True


@pytest.mark.parametrize(
    ("columns", "kind", "claim"),
    [
        ([GOOD, ("ssn", "String", 0, 0, None, None)], {"unregistered": ["ssn"]}, "every column is registered"),
        ([], {"absent": ["age"]}, "every registered column is present"),
        ([("age", "String", 0, 0, None, None)], {"type": ["age"]}, "columns have their registered type"),
        ([("age", "Int64", 0, 1, 18.0, 95.0)], {"non_finite": ["age"]}, "numbers are finite"),
        ([("age", "Int64", 1, 0, 18.0, 95.0)], {"nulls": ["age"]}, "nulls only where the variable may be missing"),
        (
            [("age", "Int64", 0, 0, 17.999999, 95.0)],
            {"below_minimum": ["age"]},
            "values are not below their registered minimum",
        ),
        (
            [("age", "Int64", 0, 0, 18.0, 95.000001)],
            {"above_maximum": ["age"]},
            "values are not above their registered maximum",
        ),
    ],
)
def test_every_kind_of_fault_is_found_and_named(
    columns: list[Any], kind: dict[str, list[str]], claim: str, tmp_path: Path
) -> None:
    """Claim: one fault fails exactly its own expectation, and its column is named under its kind and no other."""
    result = checked(described(*columns), tmp_path)
    assert not result.passed
    assert result.description == claim
    assert result.metadata["failed_columns"].value == kind
    assert "The artefact is refused" in (tmp_path / "validation.html").read_text("utf-8")


def test_a_column_that_appears_twice_is_found(tmp_path: Path) -> None:
    """Claim: two columns of one name fail, though each alone would pass."""
    assert "every column appears once" in checked(described(GOOD, GOOD), tmp_path).description


def test_what_is_not_registered_about_a_column_is_not_judged(tmp_path: Path) -> None:
    """Claim: nulls in a rule mean that nothing is said; a nullable variable may be missing everywhere."""
    rule = ("marker", None, ANY_NUMBER_OF_NULLS, None, None)
    assert checked(described(("marker", "Float64", 10**6, 0, None, None), registered=(rule,)), tmp_path).passed


def test_no_value_is_shown(tmp_path: Path) -> None:
    """Claim: summaries hold exact extremes of private columns; neither the result nor the stored validation do."""
    result = checked(
        described(("age", "Int64", 0, 0, 18.0, SECRET), registered=(("age", "Int64", 0, 18, 90),)), tmp_path
    )
    assert not result.passed
    written = [file.read_text("utf-8") for file in tmp_path.iterdir()]
    shown = [str(result.description), *(str(entry) for entry in result.metadata.values())]
    for text in (*written, *shown):
        assert "94.8" not in text


def test_two_private_tables_leave_the_same_validation(tmp_path: Path) -> None:
    """Claim: nothing stored depends on extremes within their bounds, not even a hash that confirms a guess of them;
    what is stored is each claim, its expectation and whether it holds."""
    for home, maximum in (("one", SECRET), ("other", 61.5)):
        checked(described(("age", "Int64", 0, 0, 18.0, maximum)), tmp_path / home)
    for name in ("validation.json", "validation.html"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    stored = (tmp_path / "one" / "validation.json").read_text("utf-8")
    assert re.findall(r"[0-9a-f]{16,}", stored) == []
    assert set(json.loads(stored)) == {"success", "results"}
    assert {frozenset(r) for r in json.loads(stored)["results"]} == {frozenset({"claim", "expectation", "success"})}


def test_an_error_of_the_suite_comes_without_its_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: whatever fails on the summary of a private table says what kind of error it was, not what it held."""

    def fails(_: pl.DataFrame) -> None:
        raise KeyError(f"no {SECRET}")

    monkeypatch.setattr("checks.schema._validate", fails)
    with pytest.raises(PrivateComputationError, match="KeyError") as error:
        checked(described(GOOD), tmp_path)
    assert str(SECRET) not in str(error.value)


def test_twenty_thousand_columns_are_one_suite(tmp_path: Path) -> None:
    """Claim: a wide matrix costs eight expectations, not eight a column, and one bad column among all is named."""
    names = [f"g{i}" for i in range(20_000)]
    columns = [(name, "Float64", 0, 0, 0.0, 2.0 if name == "g777" else 1.0) for name in names]
    result = checked(described(*columns, registered=tuple((n, "Float64", 0, 0.0, 1.0) for n in names)), tmp_path)
    assert result.metadata["failed_columns"].value == {"above_maximum": ["g777"]}
    assert len(json.loads((tmp_path / "validation.json").read_text("utf-8"))["results"]) == 8


def test_arrays_are_summarised_as_numpy_sees_them() -> None:
    """Claim: extremes are those of the finite values; the others are counted, in arrays of any shape, even empty."""
    array = np.array([[1.0, np.nan], [np.inf, -2.5]])
    summary = summarise_arrays({"a": array, "none": np.zeros((0, 3)), "i": np.array([3, 1])})
    assert summary.rows() == [
        ("a", "float64", 0, 2, np.nanmin(array), 1.0),
        ("none", "float64", 0, 0, None, None),
        ("i", "int64", 0, 0, 1.0, 3.0),
    ]


def test_documents_are_summarised_by_their_fields() -> None:
    """Claim: a null field counts as missing; no content enters the summary."""
    summary = summarise_document({"status": "PASS", "mu": None, "figures": [SECRET]})
    assert summary.select("column", "nulls").rows() == [("status", 0), ("mu", 1), ("figures", 0)]
    assert str(SECRET) not in str(summary.rows())
