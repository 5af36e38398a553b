"""A plan is bought whole or not at all: what it would cost is known before the first answer, and asking is free."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from synth_platform.privacy.accounting import compose
from synth_platform.privacy.affordable import require_affordable
from synth_platform.privacy.ledger import BudgetExceeded, NoBudget
from synth_platform.privacy.noise import CryptographicNoise, SeededNoise
from synth_platform.privacy.queries import BoundedScores, SelectionQuery, ValueQuery

DELTA = 1e-5


class NoNoise(CryptographicNoise):
    """Drawing is an error."""

    def discrete_gaussian(self, sigma: float, size: int) -> Any:
        raise AssertionError("noise was drawn")

    gumbel_top = discrete_gaussian  # type: ignore[assignment]


def cheap(zone: Any) -> Any:
    return zone.query(code="CHEAP", sigma=10.0)


def dear(zone: Any) -> Any:
    return zone.query(code="DEAR", sigma=2.0)


def price(*queries: Any) -> float:
    """What a cap is compared with."""
    return compose([query.event for query in queries], DELTA).epsilon_rdp


def cap(zone: Any, epsilon: float) -> None:
    zone.ledger.set_budget("brca", epsilon, DELTA, change=True)


def afford(zone: Any, *queries: Any, noise: Any = None) -> list[np.ndarray[Any, Any]]:
    """Hold a plan of these queries to the cap; what its run was answered."""
    answers: list[Any] = []

    def run(ask: Any) -> None:
        answers.extend(ask(query).values for query in queries)

    require_affordable(run, zone.table(), zone.curator(noise or NoNoise()), zone.ledger, "brca")
    return answers


def test_what_fits_is_not_bought(zone: Any) -> None:
    """Claim: asking costs nothing: placeholders, no noise, not a row in the ledger."""
    cap(zone, price(cheap(zone), dear(zone)) * 1.0001)
    rows = zone.ledger.table()
    assert [answer.tolist() for answer in afford(zone, cheap(zone), dear(zone))] == [[0.0] * 3, [0.0] * 3]
    assert zone.ledger.table() == rows


def test_what_does_not_fit_whole_is_refused_although_its_first_part_does(zone: Any) -> None:
    """Claim: a hair above the cap is refused, with room for either query alone; the ledger keeps its rows."""
    whole = price(cheap(zone), dear(zone))
    cap(zone, whole * 0.9999)
    rows = zone.ledger.table()
    for query in (cheap(zone), dear(zone)):
        afford(zone, query)
    with pytest.raises(BudgetExceeded, match="BUDGET_EXCEEDED: domain 'brca'"):
        afford(zone, cheap(zone), dear(zone))
    assert zone.ledger.table() == rows


def test_what_was_paid_for_is_answered_and_not_charged_again(zone: Any) -> None:
    """Claim: after one of two was bought, the rest is all that is counted, and the run sees the bought answer itself:
    what follows may depend on it."""
    cap(zone, price(cheap(zone), dear(zone)) * 1.0001)
    bought = zone.table().measure(dear(zone), zone.curator())
    first, second = afford(zone, dear(zone), cheap(zone))
    assert np.array_equal(first, bought.values)
    assert second.tolist() == [0.0] * 3
    with pytest.raises(BudgetExceeded):
        afford(zone, dear(zone), zone.query(code="CHEAP", sigma=10.0, parameters={"clip": 3.0}), dear_of_others(zone))


def dear_of_others(zone: Any) -> Any:
    return zone.query(code="DEAR", sigma=2.0, parameters={"clip": 3.0})


def test_what_is_paid_for_needs_no_room(zone: Any) -> None:
    """Claim: a domain at its cap still answers what it sold."""
    cap(zone, 50.0)
    zone.table().measure(dear(zone), zone.curator())
    cap(zone, price(dear(zone)) * (1 + 1e-9))
    afford(zone, dear(zone))
    with pytest.raises(BudgetExceeded):
        afford(zone, dear(zone), cheap(zone))


def test_a_seeded_answer_pays_for_nothing(zone: Any) -> None:
    """Claim: what a seeded source drew is another request, and its cost counts besides."""
    cap(zone, price(dear(zone), dear(zone)) * 1.0001)
    zone.table().measure(dear(zone), zone.curator(SeededNoise(1)))
    assert [answer.tolist() for answer in afford(zone, dear(zone))] == [[0.0] * 3]
    cap(zone, price(dear(zone), dear(zone)) * 0.9999)
    with pytest.raises(BudgetExceeded):
        afford(zone, dear(zone))


def test_a_query_made_of_an_earlier_answer_gets_one_in_form(zone: Any) -> None:
    """Claim: a selection's placeholder is positions that a value query can be made of, at the price of any others."""
    scores: BoundedScores[Any] = BoundedScores("tests.scores", lambda rows: rows.x[:, 0], 40, 0.25)
    asked: list[Any] = []

    def run(ask: Any) -> None:
        positions = ask(SelectionQuery("E_SELECTION", scores, 3, 2.0)).values
        asked.append(ValueQuery("E_VALUES", scores, tuple(positions.astype(int).tolist()), 2.0))
        ask(asked[-1])

    cap(zone, 50.0)
    require_affordable(run, zone.table(), zone.curator(NoNoise()), zone.ledger, "brca")
    run(lambda query: zone.table().measure(query, zone.curator()))
    assert asked[0].positions == (0, 1, 2)
    assert asked[0].event == asked[1].event


def test_a_domain_without_a_cap_is_refused(zone: Any) -> None:
    with pytest.raises(NoBudget):
        require_affordable(
            lambda ask: ask(cheap(zone)), zone.table(), zone.curator(NoNoise(), domain="other"), zone.ledger, "other"
        )
