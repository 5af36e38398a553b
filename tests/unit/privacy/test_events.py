"""Events keep their meaning through the ledger's JSON, and nothing unknown gets in."""

from __future__ import annotations

import json
import math

import dp_accounting as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.privacy.events import UnsupportedEventError, event_from_json, event_to_json, tally

gaussians = st.floats(1e-3, 1e6).map(dp.GaussianDpEvent)
leaves = st.one_of(
    st.just(dp.NoOpDpEvent()),
    gaussians,
    st.builds(dp.PoissonSampledDpEvent, st.floats(0, 1), gaussians),
)
events = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(dp.SelfComposedDpEvent, inner, st.integers(0, 5)),
        st.lists(inner, max_size=4).map(dp.ComposedDpEvent),
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=200)
@given(events)
def test_round_trip_through_json_text(event: dp.DpEvent) -> None:
    assert event_from_json(json.loads(json.dumps(event_to_json(event), allow_nan=False))) == event


@settings(deadline=None, max_examples=100)
@given(st.lists(leaves, max_size=5), st.integers(0, 4))
def test_nesting_changes_nothing(parts: list[dp.DpEvent], count: int) -> None:
    flat = tally(parts * count)
    nested = tally([dp.SelfComposedDpEvent(dp.ComposedDpEvent([dp.ComposedDpEvent(parts)]), count)])
    assert nested.rho == pytest.approx(flat.rho, rel=1e-12)
    assert nested.sampled == flat.sampled


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (dp.LaplaceDpEvent(1.0), "LaplaceDpEvent"),
        (dp.NonPrivateDpEvent(), "NonPrivateDpEvent"),
        (dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.0)), "PoissonSampledDpEvent of LaplaceDpEvent"),
        (
            dp.PoissonSampledDpEvent(0.1, dp.SelfComposedDpEvent(dp.GaussianDpEvent(1.0), 2)),
            "PoissonSampledDpEvent of SelfComposedDpEvent",
        ),
        (dp.SelfComposedDpEvent(dp.ComposedDpEvent([dp.NonPrivateDpEvent()]), 2), "NonPrivateDpEvent"),
    ],
)
def test_unknown_events_are_refused_by_name(event: dp.DpEvent, name: str) -> None:
    with pytest.raises(UnsupportedEventError, match=name):
        tally([event])
    with pytest.raises(UnsupportedEventError, match=name):
        event_to_json(event)


@pytest.mark.parametrize(
    "event",
    [
        dp.GaussianDpEvent(0.0),
        dp.GaussianDpEvent(-1.0),
        dp.GaussianDpEvent(math.nan),
        dp.GaussianDpEvent(math.inf),
        dp.PoissonSampledDpEvent(1.1, dp.GaussianDpEvent(1.0)),
        dp.PoissonSampledDpEvent(math.nan, dp.GaussianDpEvent(1.0)),
        dp.SelfComposedDpEvent(dp.GaussianDpEvent(1.0), -1),
    ],
)
def test_parameters_out_of_range_are_refused(event: dp.DpEvent) -> None:
    """A negative count or noise would lower the cost of a whole domain."""
    with pytest.raises(ValueError, match=type(event).__name__):
        tally([event])
    with pytest.raises(ValueError, match=type(event).__name__):
        event_to_json(event)


@pytest.mark.parametrize(
    "document",
    [
        {"type": "LaplaceDpEvent", "noise_multiplier": 1.0},
        {"type": "GaussianDpEvent"},
        {"type": "GaussianDpEvent", "noise_multiplier": 1.0, "sensitivity": 2.0},
        {"type": "GaussianDpEvent", "noise_multiplier": "1.0"},
        {"noise_multiplier": 1.0},
        {"type": "ComposedDpEvent", "events": ["GaussianDpEvent"]},
    ],
)
def test_other_documents_are_refused(document: dict[str, object]) -> None:
    with pytest.raises(UnsupportedEventError, match=str(document.get("type", "no type")) + "|no type"):
        event_from_json(document)


def test_a_document_with_parameters_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="noise_multiplier"):
        event_from_json({"type": "GaussianDpEvent", "noise_multiplier": -1.0})
