"""A closed table says nothing, opens in three ways only, and remembers each."""

from __future__ import annotations

import ast
import copy
import gc
import hashlib
import json
import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.private_errors import PrivateComputationError
from synth_platform.privacy.private_table import Access, PrivateTable, combine, unledgered
from synth_platform.privacy.restricted import record_measurement, restricted_rows, seal
from synth_platform.privacy.within_row import WithinRow, within_row

REPOSITORY = Path(__file__).resolve().parents[3]
KEY = FingerprintKey(bytes(range(32)))
SECRET = 271828.1828


@dataclass
class Rows:
    x: np.ndarray

    def __len__(self) -> int:
        return len(self.x)


def digest(rows: Rows) -> bytes:
    return hashlib.sha256(rows.x.tobytes()).digest()


def table(n: int = 7) -> PrivateTable[Rows]:
    return seal(Rows(np.full((n, 2), SECRET)), key=KEY, digest=digest)


@pytest.mark.parametrize(
    "attempt",
    [
        len,
        iter,
        list,
        lambda t: t[0],
        lambda t: SECRET in t,
        lambda t: np.asarray(t, dtype=float),
        lambda t: t == table(),
        lambda t: t != table(),
        lambda t: t == 1,
        lambda t: t < table(),
        json.dumps,
        pickle.dumps,
        copy.copy,
        copy.deepcopy,
        vars,
        lambda t: setattr(t, "rows", 1),
        lambda t: t.rows,
        lambda t: t._rows,
        lambda t: t.shape,
        lambda t: format(t, ".3f"),
    ],
)
def test_nothing_but_the_three_doors_opens_it(attempt: object) -> None:
    with pytest.raises((TypeError, AttributeError)):
        attempt(table())  # type: ignore[operator]


def test_it_looks_the_same_whatever_is_in_it() -> None:
    for show in (repr, str, format, "{!r:>30}".format, "%s".__mod__, bool):
        assert show(table(3)) == show(table(4000))
        assert str(SECRET)[:5] not in str(show(table()))
    assert table().__sizeof__() == table(4000).__sizeof__()


def test_no_attribute_leads_to_the_rows() -> None:
    closed = table()
    rows = restricted_rows(closed)
    reached = [getattr(closed, name) for name in dir(closed) if name not in ("__abstractmethods__", "fingerprint")]
    reached += gc.get_referents(closed)
    for value in reached:
        assert value is not rows
        assert value is not rows.x
        assert rows not in [v for v in gc.get_referents(value) if isinstance(v, Rows)]


def test_the_rows_go_when_the_table_goes() -> None:
    closed = table()
    restricted_rows(closed).alive = None  # type: ignore[attr-defined]
    del closed
    gc.collect()
    assert not [o for o in gc.get_objects() if isinstance(o, Rows) and hasattr(o, "alive")]


def test_it_opens_for_declared_maps_only() -> None:
    doubled = table().transform(within_row("tests.double", lambda rows: Rows(rows.x * 2)))
    assert restricted_rows(doubled).x[0, 0] == 2 * SECRET
    with pytest.raises(TypeError, match="within_row"):
        table().transform(WithinRow("tests.double", lambda rows: Rows(rows.x * 2)))
    with pytest.raises(TypeError, match="within_row"):
        table().transform(lambda rows: rows)  # type: ignore[arg-type]


def test_a_map_to_another_kind_of_rows_names_its_content_its_own_way() -> None:
    sums = table().transform(
        within_row("tests.sums", lambda rows: rows.x.sum(axis=1)), digest=lambda array: array.tobytes()
    )
    assert sums.fingerprint == KEY.name(np.full(7, 2 * SECRET).tobytes())


def test_what_fails_inside_stays_inside() -> None:
    def quoting(rows: Rows) -> Rows:
        raise KeyError(f"no category for {rows.x[0, 0]}")

    with pytest.raises(
        PrivateComputationError, match=r"tests\.quoting failed on private rows with KeyError"
    ) as failure:
        table().transform(within_row("tests.quoting", quoting))
    assert str(SECRET)[:5] not in str(failure.value)
    assert failure.value.__cause__ is None
    assert failure.value.__suppress_context__
    assert failure.traceback[-1].name == "quoting", "where it failed is still shown"


def test_every_opening_is_recorded_across_transforms() -> None:
    closed = table()
    mapped = closed.transform(within_row("tests.double", lambda rows: Rows(rows.x * 2)))
    assert isinstance(mapped.open_for_gate("closest record"), Rows)
    record_measurement(mapped, "G0_COUNTS", "G0_COUNTS-1")
    expected = (
        Access("transform", "tests.double"),
        Access("gate", "closest record"),
        Access("measure", "G0_COUNTS", "G0_COUNTS-1"),
    )
    assert closed.accesses == mapped.accesses == expected
    assert unledgered(closed.accesses) == ("closest record",)
    with pytest.raises(ValueError, match="purpose"):
        closed.open_for_gate(" ")


def test_tables_of_the_same_patients_combine_closed() -> None:
    left, right = table(), table()
    left.open_for_gate("schema")
    join = within_row("tests.join", lambda parts: Rows(np.hstack([parts["a"].x, parts["b"].x])))
    joined = combine({"a": left, "b": right}, join, digest=digest)
    assert restricted_rows(joined).x.shape == (7, 4)
    assert joined.accesses == (Access("gate", "schema"), Access("transform", "tests.join"))
    assert joined.fingerprint == KEY.name(digest(restricted_rows(joined)))
    with pytest.raises(TypeError, match="within_row"):
        combine({"a": left}, WithinRow("tests.join", lambda parts: parts["a"]), digest=digest)
    with pytest.raises(TypeError, match="no private tables"):
        combine({}, join, digest=digest)


def test_the_fingerprint_names_content_under_the_key_alone() -> None:
    same, other = table(), table(8)
    assert table().fingerprint == same.fingerprint != other.fingerprint
    rows = restricted_rows(same)
    stranger = seal(rows, key=FingerprintKey(bytes(32)), digest=digest)
    assert stranger.fingerprint != same.fingerprint
    assert hashlib.sha256(digest(rows)).hexdigest() != same.fingerprint != digest(rows).hex()


def python_files(*folders: str) -> list[Path]:
    return [file for folder in folders for file in sorted((REPOSITORY / folder).rglob("*.py"))]


def imports(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_only_the_stores_and_the_curator_hold_the_key() -> None:
    """An import of `restricted`, or of a hidden name of `private_table`, anywhere else opens rows without a record."""
    allowed = {REPOSITORY / "synth_platform" / "privacy", REPOSITORY / "resources"}
    offenders = [
        str(file.relative_to(REPOSITORY))
        for file in python_files("synth_platform", "assets", "checks", "resources", "benchmarks")
        if not allowed & set(file.parents)
        and any("privacy.restricted" in name or "private_table._" in name for name in imports(file))
    ]
    assert offenders == []
    assert any(
        "privacy.restricted" in name for name in imports(REPOSITORY / "synth_platform" / "privacy" / "curator.py")
    )
