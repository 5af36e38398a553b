"""Rows for 90 % power, against the normal law they are scaled by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t

from synth_platform.evaluation.preservation import Preservation
from synth_platform.trials.rows_needed import rows_needed

T19 = float(student_t.ppf(0.95, 19))


def draws(mean: float, sd: float, *, error: float, trtr: float = 0.9, trtr_error: float = 0.001) -> list[Preservation]:
    """Two draws of P with exactly this mean and standard deviation, and jackknife errors of P and TRTR."""
    return [
        Preservation(
            tstr=p * trtr,
            trtr=trtr,
            preservation=p,
            skill=0.95,
            lcb_preservation=p - T19 * error,
            lcb_trtr=trtr - T19 * trtr_error,
            status="PASS_POINT",
        )
        for p in (mean - sd / np.sqrt(2), mean + sd / np.sqrt(2))
    ]


def needed(judged: list[Preservation], chance: float = 0.0) -> int | None:
    return rows_needed(judged, chance=chance, rows=240, groups=20)


def test_at_that_many_rows_nine_draws_in_ten_pass() -> None:
    """Chance 0: only the ratio binds. P of mean .97, sd .02 over draws and .03 over test rows; both shrink with n."""
    n = needed(draws(0.97, 0.02, error=0.03))
    assert n is not None
    sd = np.hypot(0.02, 0.03) * np.sqrt(240 / n)
    assert norm.sf((0.95 - 0.97) / sd) == pytest.approx(0.9, abs=1e-3)


def test_the_stricter_of_ratio_and_skill_binds() -> None:
    """TRTR .72, chance .5: a skill of .9 is TSTR .698, a ratio of .9694 - and not .95. A mean in between helps no n."""
    n = needed(draws(0.99, 0.01, error=0.0, trtr=0.72), chance=0.5)
    assert n is not None
    bound = (0.5 + 0.9 * 0.22) / 0.72
    assert norm.sf((bound - 0.99) / (0.01 * np.sqrt(240 / n))) == pytest.approx(0.9, abs=0.01)
    assert needed(draws(0.96, 0.001, error=0.0, trtr=0.72), chance=0.5) is None


def test_a_real_arm_near_chance_asks_for_rows_of_its_own() -> None:
    """TRTR .6 with error .05 at 240: its bound is over .55 nine times in ten where (t + z) .05 sqrt(240/n) = .05."""
    n = needed(draws(1.0, 1e-6, error=0.0, trtr=0.6, trtr_error=0.05), chance=0.5)
    assert n == pytest.approx(240 * ((T19 + norm.ppf(0.9)) * 0.05 / 0.05) ** 2, abs=1)
    assert needed(draws(1.0, 1e-6, error=0.0, trtr=0.549), chance=0.5) is None
    assert needed(draws(1.0, 1e-6, error=0.0, trtr=0.5501, trtr_error=0.05), chance=0.5) is None  # over a million


def test_there_are_no_fewer_rows_than_jackknife_groups() -> None:
    assert needed(draws(1.0, 1e-5, error=0.0)) == 20


@pytest.mark.parametrize("missing", ["preservation", "lcb_preservation", "trtr", "lcb_trtr"])
def test_nothing_is_promised_of_an_undefined_draw(missing: str) -> None:
    first, second = draws(0.99, 0.01, error=0.01)
    change: dict[str, Any] = {missing: None}
    assert needed([first, replace(second, **change)]) is None
    assert needed([]) is None
