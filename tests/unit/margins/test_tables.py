"""Voas-Williamson statistics of small tables: brute force, scipy's Pearson statistic, marks, errors."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.measures import tables
from synth_platform.margins.measures.compared import Compared, band
from synth_platform.margins.measures.tables import table_utility
from synth_platform.margins.rows import Rows

WIDTHS = (3, 2, 4, 5)
DOMAIN = Domain(tuple(Variable(name, tuple(map(str, range(w)))) for name, w in zip("abcd", WIDTHS, strict=True)))


def rows(count, seed):
    rng = np.random.default_rng(seed)
    return Rows(DOMAIN, (rng.random((count, 4)) ** 2 * np.array(WIDTHS)).astype(np.int64))


REAL, SYNTHETIC = rows(90, 1), rows(41, 2)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("counters", [tables.MOST_COUNTERS, 1])
def test_it_is_pearsons_statistic_of_two_samples_over_the_real_share(size, counters, monkeypatch):
    monkeypatch.setattr(tables, "MOST_COUNTERS", counters)
    found = table_utility(REAL, SYNTHETIC, size)
    assert [table.names for table in found] == list(combinations("abcd", size))
    for table in found:
        both = np.stack([rows.count(table.names).ravel() for rows in (REAL, SYNTHETIC)])
        pearson = chi2_contingency(both[:, both.sum(axis=0) > 0], correction=False)
        assert table.df == pearson.dof
        assert table.vw == pytest.approx(pearson.statistic / (90 / 131))
        assert table.s_pmse == pytest.approx(table.vw / table.df)


def test_a_table_worked_by_hand():
    domain = Domain((Variable("x", ("0", "1")), Variable("y", ("0",))))
    real = Rows(domain, np.array([[0, 0]] * 6 + [[1, 0]] * 2))
    synthetic = Rows(domain, np.array([[0, 0]] * 1 + [[1, 0]] * 3))
    (table,) = table_utility(real, synthetic)  # c = 1/3: (1 − 3)² / (7/3) + (3 − 1)² / (5/3)
    assert table.vw == pytest.approx(12 / 7 + 12 / 5)
    assert table.df == 1


def test_relations_inside_a_fitted_margin_are_marked():
    preserved = (("c", "a"), ("b", "c", "d"))
    pairs = {table.names for table in table_utility(REAL, SYNTHETIC, 2, preserved) if table.preserved}
    assert pairs == {("a", "c"), ("b", "c"), ("b", "d"), ("c", "d")}
    assert [table.names for table in table_utility(REAL, SYNTHETIC, 3, preserved) if table.preserved] == [
        ("b", "c", "d")
    ]


def test_one_cell_with_everybody_has_nothing_to_differ_in():
    alone = Rows(DOMAIN, np.zeros((5, 4), dtype=np.int64))
    assert {(table.vw, table.df, table.s_pmse) for table in table_utility(alone, alone, 3)} == {(0.0, 0, 0.0)}


def test_bands():
    assert [band(value) for value in (2.99, 3, 9.99, 10)] == ["good", "acceptable", "acceptable", "poor"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: table_utility(REAL, SYNTHETIC, 4), "2 or 3 variables"),
        (lambda: table_utility(two(REAL), two(SYNTHETIC), 3), "the domain has 2"),
        (lambda: table_utility(REAL, SYNTHETIC, 2, [("a", "z")]), "unknown variable z"),
        (lambda: Compared(REAL, two(SYNTHETIC)), "different domains"),
        (lambda: Compared(REAL, Rows(DOMAIN, SYNTHETIC.codes[:0])), "synthetic table has no rows"),
    ],
)
def test_what_is_wrong_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def two(table):
    return Rows(DOMAIN.project(("a", "b")), table.codes[:, :2])
