"""Which questions are the same question, and so are answered once."""

from __future__ import annotations

from typing import Any

import numpy as np

from synth_platform.privacy.curator import request_of
from synth_platform.privacy.queries import BoundedScores, SelectionQuery, ValueQuery
from synth_platform.privacy.statistics import Query

Floats = np.ndarray[Any, Any]
SCORES = BoundedScores[Floats]("tests.log_e", lambda rows: rows, 9, 0.2)


def request(query: Query[Floats]) -> str:
    return request_of(query, domain="d", cohort="c", input_fingerprint="i", noise_source="cryptographic")


def test_other_positions_are_another_request() -> None:
    """Claim: an answer about some hypotheses is never given again for others, nor for the same in another order."""
    values = [ValueQuery("E_VALUES", SCORES, positions, 1.0) for positions in ((0, 1), (1, 0), (0, 2), (7, 8))]
    sizes = [SelectionQuery("E_SELECTION", SCORES, size, 1.0) for size in (1, 2)]
    assert len({request(query) for query in [*values, *sizes]}) == len(values) + len(sizes)
    assert request(ValueQuery("E_VALUES", SCORES, (0, 1), 1.0)) == request(values[0])
