"""The evidence of margins holds tables and names, no row, and what of a package can be read."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.noise.noisy import NoisyMargins
from synth_platform.margins.rows import Rows, count_margins, two_way_margins
from synth_platform.margins.structural_zeros import StructuralZero
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.release import margins_evidence
from synth_platform.release.evidence import sealed
from synth_platform.release.margins_evidence import DETAILED, MOST_THREE_WAY, audited_tables
from tests.unit.audit.margins_runs import CATEGORIES, coarsened_evidence, noisy_evidence


def rows(variables: int, categories: int = 3, people: int = 50) -> Rows:
    domain = Domain(tuple(Variable(f"v{at}", tuple(map(str, range(categories)))) for at in range(variables)))
    return Rows(domain, np.random.default_rng(0).integers(0, categories, (people, variables)))


def margins(variables: int, **options: int) -> MarginSet:
    return two_way_margins(rows(variables, **options))


def test_every_pair_is_there_and_margins_come_first() -> None:
    held = rows(4)
    named = count_margins(held, [("v2", "v0", "v1"), ("v3",)], "test", (StructuralZero.of({"v3": ["0"], "v0": ["1"]}),))
    tables = audited_tables(named)
    assert tables[:3] == (("v2", "v0", "v1"), ("v3",), ("v3", "v0"))
    assert {frozenset(pair) for pair in combinations(held.domain.names, 2)} <= set(map(frozenset, tables))
    assert len(set(map(frozenset, tables))) == len(tables)


def test_tables_of_three_are_spread_over_all() -> None:
    tables = [names for names in audited_tables(margins(9)) if len(names) == 3]
    assert 0 < len(tables) <= MOST_THREE_WAY
    assert {name for names in tables for name in names} == {f"v{at}" for at in range(9)}
    assert not any(len(names) == 3 for names in audited_tables(margins(3, categories=40)))


def test_pairs_beyond_the_room_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(margins_evidence, "MOST_CELLS", 20)
    held = rows(5)
    alone = count_margins(held, [(name,) for name in held.domain.names], "test")
    assert sum(len(names) == 2 for names in audited_tables(alone)) == 2


def test_it_holds_no_row_and_is_sealed() -> None:
    """Of variables, labels stand where categories are declared alone; every other list is a table of counts."""
    evidence = coarsened_evidence()
    assert evidence == sealed({key: value for key, value in evidence.items() if key != "body_sha256"})
    held = {key: value for key, value in evidence.items() if key not in ("variables", "zeros", "registered")}
    labels = {label for categories in CATEGORIES.values() for label in categories} - {"f", "m"}
    assert not any(f'"{label}"' in json.dumps(held) for label in labels)
    cells = 5 * 2 * 6 * 3
    assert max(len(table) for table in evidence["people"]["tables"]) < cells


def test_counts_are_those_of_the_rows() -> None:
    evidence = coarsened_evidence()
    for names, table, real in zip(evidence["tables"], evidence["people"]["tables"], evidence["counted"], strict=False):
        assert names == real["names"]
        assert table == real["counts"]
        assert sum(table) == evidence["people"]["rows"] == 3_000


def test_a_name_of_rows_does_not_depend_on_their_order() -> None:
    held = rows(3)
    name = margins_evidence._name
    assert name(held) == name(held.take(np.arange(50)[::-1]))
    other = held.codes.copy()
    other[0, 0] = (other[0, 0] + 1) % 3
    assert name(held) != name(Rows(held.domain, other))


def test_replicates_after_the_first_have_tables_of_one_variable() -> None:
    replicates = coarsened_evidence(replicates=DETAILED + 2, real=False)["synthetic"]
    assert [each["tables"] is None for each in replicates] == [False] * DETAILED + [True] * 2
    assert all(len(each["one_way"]) == len(CATEGORIES) for each in replicates)


def test_a_damaged_package_is_told_and_not_stumbled_over(tmp_path: Path) -> None:
    package = coarsened_evidence(tmp_path, replicates=2)["package"]
    assert package["card"]["kind"] == "SDC"
    assert package["card"]["readme"] == ["SDC"]
    assert len(package["tables"]) == 2
    folder = tmp_path / "c-margins-p"
    (folder / "card.json").write_text("[]")
    (folder / "disclosure.json").write_text("{")
    (folder / "README.md").unlink()
    (folder / "table_2.parquet").write_bytes(b"no table")
    pl.DataFrame({"x": [1]}).write_parquet(folder / "table.parquet")
    held = margins_evidence._package(folder, margins(2))
    nothing = {"kind": None, "epsilon": None, "registration": None, "utility": None}
    assert held["card"] == {**nothing, "not_private": False, "fields": [], "readme": []}
    assert held["disclosure"] is None
    assert held["tables"] == [None, None]


def test_noisy_margins_come_with_their_answers_and_no_count(tmp_path: Path) -> None:
    evidence = noisy_evidence(tmp_path)
    assert [answer["entry_id"] for answer in evidence["answers"]] == evidence["measured"]["entries"]
    assert len(evidence["answers"][0]["values"]) == sum(len(margin["counts"]) for margin in evidence["protected"])
    assert evidence["counted"] is None
    assert evidence["documents"].keys() == {"utility_gate", "decision"}


def test_an_answer_that_is_missing_or_altered_is_left_out(tmp_path: Path) -> None:
    evidence = noisy_evidence(tmp_path)
    measured = NoisyMargins(margins(2), (*evidence["measured"]["entries"], "M_COUNTS-none"), False, (), "")
    ledger, store = Ledger(f"sqlite:///{tmp_path}/ledger.db"), StatisticStore(tmp_path / "statistics")
    assert len(margins_evidence._paid(measured, "d", ledger, store)["answers"]) == 1
    for file in (tmp_path / "statistics").iterdir():
        file.write_bytes(b"altered")
    assert margins_evidence._paid(measured, "d", ledger, store)["answers"] == []
