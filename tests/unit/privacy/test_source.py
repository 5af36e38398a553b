"""Tables know whom they were taken from: a part, or another view of the same people, has no second budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import erfinv

from synth_platform.privacy.events import bounded_range_mu
from synth_platform.privacy.fingerprint import FingerprintKey
from synth_platform.privacy.ledger import RowsOfOtherDomain
from synth_platform.privacy.private_table import PrivateTable
from synth_platform.privacy.restricted import seal
from synth_platform.privacy.within_row import within_row

KEY = FingerprintKey(bytes(range(32)))
PEOPLE = np.arange(6.0).reshape(3, 2)


def closed(rows: Any = PEOPLE, **digests: Any) -> PrivateTable[Any]:
    return seal(rows, key=KEY, **({"digest": lambda x: np.asarray(x).tobytes()} | digests))


def test_a_part_and_a_view_are_called_after_the_whole() -> None:
    whole = closed()
    half = whole.transform(within_row("tests.first_column", lambda rows: rows[:, :1]))
    quarter = half.transform(within_row("tests.doubled", lambda rows: 2 * rows), digest=lambda rows: b"another")
    assert whole.source == half.source == quarter.source == whole.fingerprint
    assert len({whole.fingerprint, half.fingerprint, quarter.fingerprint}) == 3
    assert closed(PEOPLE + 1).source != whole.source


def test_what_is_asked_of_people_is_not_who_they_are() -> None:
    """Claim: tables of the same people with other groups differ by content and agree by source."""
    tables = [
        closed((PEOPLE, groups), digest=lambda x: x[0].tobytes() + bytes(x[1]), source=lambda x: x[0].tobytes())
        for groups in ((1, 0, 0), (0, 1, 1))
    ]
    assert tables[0].source == tables[1].source
    assert tables[0].fingerprint != tables[1].fingerprint


def test_a_part_of_the_same_people_is_refused_in_another_domain(zone: Any) -> None:
    """Claim: the whole is charged in one domain; half of it, or another view of it, cannot be charged in another."""
    whole = zone.table()
    whole.measure(zone.query(), zone.curator())
    view = whole.transform(within_row("tests.reversed", lambda matrix: matrix.take(np.arange(len(matrix))[::-1])))
    zone.ledger.set_budget("elsewhere", 3.0, 1e-5)
    with pytest.raises(RowsOfOtherDomain):
        view.measure(zone.query(), zone.curator(domain="elsewhere"))


@pytest.mark.parametrize("eta", [1e-3, 1e-6, 1e-8, 1e-10, 1e-16, 1.9, 2.1, 30.0])
def test_a_selection_under_much_noise_is_not_charged_too_little(eta: float) -> None:
    """Claim: mu is rounded up, and by 2e-12 of itself at most, also where sigma(eta/2) is next to 1/2."""
    true = 2 * np.sqrt(2) * erfinv(np.tanh(eta / 4))
    assert true <= bounded_range_mu(eta) * (1 + 1e-15) or eta > 20
    assert bounded_range_mu(eta) <= true * (1 + 3e-12) or eta > 20
