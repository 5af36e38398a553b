"""From rows or published tables to synthetic rows: three engines find one distribution, and rows are drawn of it."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from synth_platform.contract.recipe import Recipe
from synth_platform.margins import coarsen, curate, fit, sample, two_way_margins
from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.fit import choose_engine
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.reading.published import read_tables, write_tables
from synth_platform.margins.rows import count_margins
from synth_platform.margins.structural_zeros import StructuralZero

PEOPLE = 20_000
CHAIN = (("age", "married"), ("married", "rooms"))


@pytest.fixture(scope="module")
def rows():
    """Ages, marriages that follow age, rooms that follow marriage, and a region by itself."""
    generator = np.random.default_rng(1)
    age = generator.integers(0, 90, PEOPLE)
    married = (generator.random(PEOPLE) < 0.7) & (age >= 16)
    rooms = 1 + generator.binomial(4, np.where(married, 0.6, 0.3))
    region = generator.integers(0, 3, PEOPLE)
    frame = pl.DataFrame({"age": age, "married": married, "rooms": rooms, "region": region})
    recipe = Recipe.model_validate({"variables": {"age": {"bands": [0, 16, 40, 65, 100]}}})
    return curate(frame, recipe).rows


def test_the_engine_follows_from_the_margins_and_their_size(rows):
    def wide(names):
        variables = tuple(Variable(name, tuple(map(str, range(100)))) for name in "abcde")
        return MarginSet(Domain(variables), tuple(Margin(tuple(pair), np.ones((100, 100)), ()) for pair in names))

    never = StructuralZero.of({"age": ["0-15"], "rooms": ["1"]})
    assert choose_engine(count_margins(rows, (*CHAIN, ("region",)), "rows")) == "junction_tree"
    assert choose_engine(two_way_margins(rows)) == "dense"
    assert choose_engine(wide(["ab", "bc", "cd", "de"])) == "junction_tree"
    assert choose_engine(wide(["ab", "bc", "ca", "cd", "de"])) == "junction_tree"  # a clique of three has 10^6 cells
    assert choose_engine(wide(map("".join, combinations("abcde", 2)))) == "weighted_rows"
    chain = count_margins(rows, (*CHAIN, ("region",)), "rows")
    assert choose_engine(MarginSet(chain.domain, chain.margins, (never,))) == "dense"  # the zero joins what it is of


def test_three_engines_find_one_distribution(rows):
    margins = count_margins(rows, (*CHAIN, ("region",)), "rows")
    names = ("age", "rooms", "region")
    tree, dense, weighted = (
        fit(margins, np.random.default_rng(2), engine) for engine in ("junction_tree", "dense", "weighted_rows")
    )
    assert {fitted.report.status for fitted in (tree, dense, weighted)} == {"matched"}
    assert np.abs(tree.probabilities(names) - dense.probabilities(names)).sum() / 2 < 1e-5
    # 60 cells from 200,000 candidates: half the mean absolute deviation is below .4 √(60 / 200,000) ≈ .007
    assert np.abs(tree.probabilities(names) - weighted.probabilities(names)).sum() / 2 < 0.01


def test_rows_of_coarsened_margins_have_them_again(rows):
    released = coarsen(two_way_margins(rows), limit=10)
    fitted = fit(released, np.random.default_rng(3))
    assert fitted.report.largest_residual < 0.005
    first, second = sample(fitted, np.random.default_rng(4), rows=100_000, replicates=2)
    assert (first.codes != second.codes).any()
    for margin in released:
        target = margin.counts / margin.total
        # 100,000 multinomial rows are off by .4 Σ√(p / n) ≤ .4 √(cells / n) on average; twice that, and the residual
        bound = 0.8 * np.sqrt(target.size / 100_000) + fitted.report.residuals[margin.title]
        assert np.abs(first.count(margin.names) / 100_000 - target).sum() / 2 < bound


def test_a_table_has_as_many_rows_as_its_margins_count_and_the_types_of_the_original(rows):
    fitted = fit(two_way_margins(rows), np.random.default_rng(5))
    (synthetic,) = sample(fitted, np.random.default_rng(6))
    assert len(synthetic) == PEOPLE
    assert synthetic.frame.schema == {"age": pl.String, "married": pl.Boolean, "rooms": pl.Int64, "region": pl.Int64}


def test_published_tables_need_no_rows(rows, tmp_path):
    released = coarsen(two_way_margins(rows), limit=10)
    write_tables(released, tmp_path)
    fitted = fit(read_tables(tmp_path, totals="differ"), np.random.default_rng(7))
    expected = fit(released, np.random.default_rng(7))
    assert np.allclose(fitted.probabilities(rows.domain.names), expected.probabilities(rows.domain.names), atol=1e-9)


def test_structural_zeros_are_never_drawn(rows):
    zero = StructuralZero.of({"age": ["0-15"], "married": ["true"]})
    released = coarsen(two_way_margins(rows, zeros=(zero,)), limit=10, zeros="lifted")
    (synthetic,) = sample(fit(released, np.random.default_rng(8)), np.random.default_rng(9), rows=50_000)
    assert synthetic.count(("age", "married"))[0, 1] == 0
    lifted = coarsen(two_way_margins(rows), limit=10, zeros="lifted")
    (synthetic,) = sample(fit(lifted, np.random.default_rng(8)), np.random.default_rng(9), rows=50_000)
    assert synthetic.count(("age", "married"))[0, 1] > 0


@pytest.mark.parametrize(("count", "replicates"), [(0, 1), (10, 0)])
def test_nothing_to_draw_is_refused(rows, count, replicates):
    fitted = fit(count_margins(rows, (*CHAIN, ("region",)), "rows"), np.random.default_rng(0))
    with pytest.raises(ValueError, match="at least one of each"):
        sample(fitted, np.random.default_rng(0), count, replicates)
