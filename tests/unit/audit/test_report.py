"""Whatever stands where evidence should be, the audit ends with a report, and it does not pass."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.audit.findings import Findings
from synth_platform.audit.report import REPORT_FIELDS, audit

KEYS = st.sampled_from(
    [
        "format",
        "scope",
        "locks",
        "registered",
        "generators",
        "ledger",
        "packages",
        "documents",
        "rows",
        "G0A",
        "decision",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(JSON, JSON)
@settings(deadline=None, max_examples=80)
def test_nothing_stops_it(evidence: object, conformance: object) -> None:
    report = audit(evidence, conformance)
    assert not report.ok
    assert report.failures
    assert tuple(report.as_dict()) == REPORT_FIELDS


def test_names_hold_no_free_text() -> None:
    found = Findings()
    found.holds("G1/John Smith, 1950/x", "lock", False)
    [check] = found.checks
    assert check.name == "G1/John?Smith??1950/x"


@pytest.mark.parametrize(
    ("claimed", "found_value", "passed"), [(None, None, True), (None, 1.0, False), (1.0, None, False)]
)
def test_an_undefined_figure_is_only_equal_to_itself(
    claimed: float | None, found_value: float | None, passed: bool
) -> None:
    found = Findings()
    assert found.close("G3/x", "auroc", claimed, found_value) is passed


def test_true_is_not_one() -> None:
    assert not Findings().same("G3/x", "status", True, 1)
