"""Selections and values of scores that the whole table makes: what they cost, what they tell, what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from synth_platform.privacy.accounting import compose
from synth_platform.privacy.events import BoundedRangeDpEvent, event_from_json, event_to_json, tally
from synth_platform.privacy.ledger_records import ReserveRequest
from synth_platform.privacy.noise import SeededNoise
from synth_platform.privacy.private_errors import PrivateComputationError
from synth_platform.privacy.queries import (
    BoundedScores,
    ScoreError,
    SelectionQuery,
    ValueQuery,
    grid_sensitivity,
    grid_steps,
)
from synth_platform.privacy.rehearsal import Rehearsal

SCORES = np.array([3.0, -1.0, 8.0, 0.5])


def scores(sensitivity: float = 0.25, candidates: int = 4) -> BoundedScores[np.ndarray[Any, Any]]:
    return BoundedScores("tests.scores", lambda rows: rows, candidates, sensitivity)


@pytest.mark.parametrize("eta", [1e-4, 0.1, 1.0, 5.0, 80.0])
def test_a_selection_has_the_mu_of_its_least_private_randomised_response(eta: float) -> None:
    """Claim: mu = 2 Phi^-1(sigma(eta/2)), and it survives its JSON form."""
    event = event_from_json(event_to_json(BoundedRangeDpEvent(eta)))
    mu = tally([event]).mu
    assert mu is not None
    assert norm.logsf(mu / 2) == pytest.approx(-math.log1p(math.exp(eta / 2)), rel=1e-9)


def test_selection_and_values_compose_by_the_squares_of_mu() -> None:
    """Claim: tight and Rényi figures of a mixed plan are those of one Gaussian mechanism of the same total mu."""
    selection = SelectionQuery("E_SELECTION", scores(), 2, 4.0)
    values = ValueQuery("E_VALUES", scores(), (2, 0), 3.0)
    assert isinstance(selection.event, SelfComposedDpEvent)
    assert selection.event.event.eta == pytest.approx(2 * 0.25 / 4.0, rel=1e-6)
    together = compose([selection.event, values.event], 1e-5)
    one = 2 * norm.ppf(1 / (1 + math.exp(-0.25 / 4.0)))
    mu = math.sqrt(2 * one**2 + 2 * (0.25 / 3.0) ** 2)
    alone = compose([GaussianDpEvent(1 / mu)], 1e-5)
    assert together.mu == pytest.approx(mu, rel=1e-6)
    assert (together.epsilon_rdp, together.epsilon_pld) == pytest.approx(
        (alone.epsilon_rdp, alone.epsilon_pld), rel=1e-6
    )
    assert together.mu >= mu, "the grid costs a little more, never less"


@given(
    st.floats(1e-3, 10, allow_nan=False),
    st.floats(-1e5, 1e5, allow_nan=False),
    st.floats(-1, 1, allow_nan=False),
    st.integers(-34, -8),
)
def test_rounded_scores_move_by_no_more_than_the_grid_sensitivity(
    delta: float, score: float, share: float, power: int
) -> None:
    """Claim: |a - b| <= delta moves the rounded score by at most `grid_sensitivity`, for every delta and grid."""
    step = 2.0**power
    if abs(score) / step > 2**50:
        return
    a, b = grid_steps(np.array([score, score + share * delta]), step) * step
    assert abs(a - b) <= grid_sensitivity(delta, step)


def test_answers_tell_the_largest_in_order_and_values_near_them() -> None:
    """With noise that hardly matters; and a rehearsal is charged what the queries say."""
    rehearsal: Rehearsal[Any] = Rehearsal(SCORES, SeededNoise(1))
    chosen = rehearsal.ask(SelectionQuery("E_SELECTION", scores(1e-5), 3, 1e-3)).values
    values = rehearsal.ask(ValueQuery("E_VALUES", scores(1e-5), (2, 0), 1e-3)).values
    assert chosen.tolist() == [2.0, 0.0, 3.0]
    assert values == pytest.approx([8.0, 3.0], abs=1e-2)
    assert [type(event) for event in rehearsal.events] == [SelfComposedDpEvent, GaussianDpEvent]


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.inf, math.nan])
def test_a_score_without_a_bound_is_refused(sensitivity: float) -> None:
    with pytest.raises(ValueError, match="sensitivity"):
        scores(sensitivity)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused_before_anything_is_charged(value: float) -> None:
    rehearsal: Rehearsal[Any] = Rehearsal(np.array([1.0, value, 2.0, 3.0]), SeededNoise(1))
    with pytest.raises(ScoreError, match="finite"):
        rehearsal.ask(SelectionQuery("E_SELECTION", scores(), 1, 1.0))
    assert rehearsal.events == ()


def test_a_computation_that_fails_says_nothing_of_the_rows() -> None:
    def quoting(_: object) -> np.ndarray[Any, Any]:
        raise RuntimeError("patient 4711")

    rehearsal: Rehearsal[Any] = Rehearsal(SCORES, SeededNoise(1))
    with pytest.raises(PrivateComputationError) as failure:
        rehearsal.ask(SelectionQuery("E_SELECTION", BoundedScores("tests.quoting", quoting, 4, 1.0), 1, 1.0))
    assert "4711" not in str(failure.value)


def test_more_than_there_are_and_nobody_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="5 of 4"):
        SelectionQuery("E_SELECTION", scores(), 5, 1.0)
    for positions in ((), (4,), (-1,), (1, 1)):
        with pytest.raises(ValueError, match="positions"):
            ValueQuery("E_VALUES", scores(), positions, 1.0)


def test_an_entry_whose_noise_is_not_its_event_is_refused() -> None:
    with pytest.raises(ValueError, match="range"):
        ReserveRequest("d", "c", "E_SELECTION", BoundedRangeDpEvent(0.5), 1.0, 8.0, "seeded", "", "", "run")
