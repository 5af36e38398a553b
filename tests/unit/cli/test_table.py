"""What a line of the decision table says beside its verdicts."""

from __future__ import annotations

import pytest

from synth_platform.cli.table import PRIVACY


@pytest.mark.parametrize(("rows", "shown"), [(60, "0.500 (0.600) point 60 of 701"), (701, "0.500 (0.600) point")])
def test_too_few_membership_rows_are_shown(rows: int, shown: str) -> None:
    """Claim: a gate that cannot confirm for want of rows says how many it had and needs; one that can does not."""
    gate = {
        "attacks": {"A1": {"auroc": 0.5, "upper": 0.6}, "A2": {"auroc": 0.51, "upper": 0.55}},
        "rows": rows,
        "required_rows": 701,
        "status": "PASS_POINT",
    }
    [column] = [column for column in PRIVACY if column.title == "MIA"]
    assert str(column.show({"membership": gate})) == shown
