"""Counts of several tables at once: what one row moves, what that costs, what is counted, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from synth_platform.privacy.accounting import compose, gaussian_epsilon, sigma_from_mu
from synth_platform.privacy.count_query import CellError, CountQuery
from synth_platform.privacy.events import event_from_json, event_to_json
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.private_errors import PrivateComputationError
from synth_platform.privacy.rehearsal import Rehearsal
from synth_platform.privacy.row_independence import RowDependence
from synth_platform.privacy.within_row import within_row


@dataclass(frozen=True)
class Matrix:
    x: np.ndarray[Any, Any]

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: np.ndarray[Any, Any]) -> Matrix:
        return Matrix(self.x[index])


SIZES = (3, 2, 4)
ROWS = Matrix(np.array([[0, 1, 3], [2, 1, 3], [0, 0, 0], [2, 1, 1]]))


def query(apply: Any = lambda rows: rows.x, **changes: Any) -> CountQuery[Matrix]:
    fields = {"code": "M_COUNTS", "sizes": SIZES, "scale": 2.0, "parameters": {"margins": ["a"]}} | changes
    return CountQuery(cells=within_row("tests.cells", apply), **fields)


def test_every_cell_of_every_table_is_counted_by_hand() -> None:
    counted = query().evaluate(ROWS)
    by_hand = [Counter(ROWS.x[:, at].tolist())[cell] for at, size in enumerate(SIZES) for cell in range(size)]
    assert counted.tolist() == by_hand
    assert query().evaluate(Matrix(np.zeros((0, 3), dtype=np.int64))).tolist() == [0.0] * 9


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_one_row_more_or_less_moves_the_counts_by_the_root_of_the_number_of_tables(sizes: list[int], seed: int) -> None:
    """Claim: for every row there can be, the L2 distance of the neighbours is `sensitivity`: never more, and never
    less, so that no noise is wasted."""
    rows = Matrix(np.random.default_rng(seed).integers(0, sizes, size=(5, len(sizes))))
    asked = query(sizes=tuple(sizes))
    before = asked.evaluate(rows)
    for added in product(*map(range, sizes)):
        after = asked.evaluate(Matrix(np.vstack([rows.x, added])))
        assert np.linalg.norm(after - before) == pytest.approx(asked.sensitivity, rel=1e-15)
    for without in range(5):
        fewer = asked.evaluate(rows.take(np.delete(np.arange(5), without)))
        assert np.linalg.norm(before - fewer) == pytest.approx(math.sqrt(len(sizes)), rel=1e-15)


@pytest.mark.parametrize("tables", [1, 3, 91])
@pytest.mark.parametrize("mu", [0.3, 2.0])
def test_all_tables_are_one_gaussian_mechanism(tables: int, mu: float) -> None:
    """Claim: noise that is calibrated to mu costs mu and no more, whatever the number of tables. Oracle: the PLD of
    dp_accounting, each table composed as an event of its own."""
    asked = query(sizes=(2,) * tables, scale=sigma_from_mu(mu, math.sqrt(tables)))
    cost = compose([event_from_json(event_to_json(asked.event))], 1e-5)
    assert cost.mu is not None
    assert mu * (1 - 1e-9) < cost.mu <= mu
    assert cost.epsilon_pld <= gaussian_epsilon(mu, 1e-5)
    one_table = privacy_loss_distribution.from_gaussian_mechanism(asked.scale, value_discretization_interval=1e-3)
    assert cost.epsilon_pld == pytest.approx(one_table.self_compose(tables).get_epsilon_for_delta(1e-5), rel=2e-3)
    assert asked.neighbouring == "add_remove"


def test_whole_numbers_would_cost_more_than_is_accounted_and_the_grid_does_not() -> None:
    """Claim: the total variation of one count and its neighbour is P(Z = 0) on a grid of whole numbers, above that of
    Gaussians with the same mu; on the query's own grid the two agree to ten digits. Exact masses, no draws."""

    def apart(step: float, scale: float) -> float:
        half = round(0.5 / step)
        k = np.arange(1 - half, half + 1) if half else np.zeros(1)
        z = np.arange(-math.ceil(12 * scale / step), math.ceil(12 * scale / step) + 1)
        return float(np.exp(-((k * step / scale) ** 2) / 2).sum() / np.exp(-((z * step / scale) ** 2) / 2).sum())

    gaussian = 1 - 2 * norm.sf(0.5)
    assert apart(1.0, 1.0) > 1.04 * gaussian
    errors = [apart(2.0**-power, 1.0) / gaussian - 1 for power in (1, 2, 6, 8)]
    # The excess falls with the square of the step; at 2^-30 it is what 2^-8 has, times 2^-44.
    assert errors[3] / errors[2] == pytest.approx(1 / 16, rel=1e-2)
    assert query(sizes=(2,), scale=1.0).step == 2.0**-30
    assert abs(errors[3]) * 2.0**-44 < 1e-10


def test_noise_lies_on_the_grid_around_the_counts() -> None:
    asked = query(scale=3.0)
    exact = asked.evaluate(ROWS)
    values, step = asked.answer(exact, SeededNoise(3))
    noise = SeededNoise(3).discrete_gaussian(3.0 / step, 9)
    assert ((values - exact) / step).tolist() == noise.tolist()
    assert step == asked.step
    assert len(asked.placeholder()) == len(values)


def test_a_seeded_answer_is_marked_and_is_charged_what_the_query_says() -> None:
    rehearsal: Rehearsal[Any] = Rehearsal(ROWS, SeededNoise(1))
    release = rehearsal.ask(query())
    assert (release.source, release.sigma, release.sensitivity) == ("seeded", 2.0, math.sqrt(3))
    assert [event.noise_multiplier for event in rehearsal.events] == [2.0 / math.sqrt(3)]


def test_every_constant_is_part_of_what_is_described() -> None:
    described = [
        dict(query(**changes).describe())
        for changes in ({}, {"scale": 2.1}, {"sizes": (3, 2, 5)}, {"parameters": {"margins": ["b"]}})
    ]
    described.append(dict(replace(query(), cells=within_row("tests.other", lambda rows: rows.x)).describe()))
    assert len({repr(one) for one in described}) == len(described)


@pytest.mark.parametrize(
    ("apply", "message"),
    [
        (lambda rows: rows.x + 4711, "puts a row outside of a table"),
        (lambda rows: rows.x - 4711, "puts a row outside of a table"),
        (lambda rows: np.where(rows.x == 3, 4711, rows.x), "puts a row outside of a table"),
        (lambda rows: rows.x[:, :2], "one a table"),
        (lambda rows: np.hstack([rows.x, rows.x]), "one a table"),
        (lambda rows: rows.x[:, 0], "one a table"),
        (lambda rows: rows.x.astype(float), "one a table"),
        (lambda rows: rows.x > 0, "one a table"),
    ],
)
def test_anything_but_one_cell_a_table_is_refused_before_it_is_charged(apply: Any, message: str) -> None:
    rehearsal: Rehearsal[Any] = Rehearsal(ROWS, SeededNoise(1))
    with pytest.raises(CellError, match=message) as refused:
        rehearsal.ask(query(apply))
    assert "4711" not in str(refused.value)
    assert rehearsal.events == ()


def test_a_map_across_rows_is_caught() -> None:
    rows = Matrix(np.random.default_rng(2).integers(0, SIZES, size=(400, 3)))
    with pytest.raises(RowDependence, match=r"tests\.cells"):
        query(lambda held: (held.x + len(held)) % SIZES).evaluate(rows)


def test_a_map_that_fails_says_nothing_of_the_rows() -> None:
    def quoting(_: Matrix) -> Any:
        raise RuntimeError("person 4711")

    with pytest.raises(PrivateComputationError) as failure:
        query(quoting).evaluate(ROWS)
    assert "4711" not in str(failure.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": ()}, "sizes"),
        ({"sizes": (3, 0)}, "sizes"),
        ({"scale": 0.0}, "scale"),
        ({"scale": math.nan}, "scale"),
        ({"scale": 2.0**39}, "scale"),
    ],
)
def test_constants_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"M_COUNTS: {message}"):
        query(**changes)


def test_undeclared_maps_and_rows_that_cannot_be_picked_are_refused() -> None:
    with pytest.raises(TypeError, match="declare the map"):
        CountQuery("M_COUNTS", lambda rows: rows.x, SIZES, 2.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="len"):
        query().evaluate(3)  # type: ignore[arg-type]
