"""The stopping rule: residuals decide, and each of its three ends is reached only where it is true."""

import numpy as np
import pytest

from synth_platform.margins.fitting.stopping import WINDOW, StoppingRule, total_variation

RULE = StoppingRule(1e-6, 2000)


def ends(residuals):
    return next((status, cycle) for cycle in range(1, len(residuals) + 1) if (status := RULE.status(residuals[:cycle])))


def test_total_variation_is_the_largest_difference_of_an_event():
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.3, 0.3])
    events = [list(map(bool, map(int, f"{event:03b}"))) for event in range(8)]
    assert total_variation(p, q) == pytest.approx(max(abs(p[e].sum() - q[e].sum()) for e in events))


def test_a_falling_residual_matches_when_it_is_at_most_the_tolerance():
    assert ends([0.5**cycle for cycle in range(100)]) == ("matched", 21)


def test_a_residual_that_stands_still_or_oscillates_is_a_limit_cycle():
    assert ends([0.5**cycle + 0.01 for cycle in range(200)])[0] == "limit_cycle"
    assert ends([0.02 + 0.01 * (-1) ** cycle for cycle in range(200)]) == ("limit_cycle", WINDOW + 2)


@pytest.mark.parametrize("slow", [lambda n: 0.999**n, lambda n: 1 / (n + 1)])
def test_a_residual_that_creeps_is_neither(slow):
    """Slowly linear and sublinear, as towards a cell that ends at nought."""
    assert ends([slow(cycle) for cycle in range(2000)]) == ("iteration_limit", 2000)


def test_a_fit_runs_until_its_worst_margin_ends_it_and_no_further():
    ran = iter([{"a": 0.5, "b": 0.1}, {"a": 0.0, "b": 1e-5}, {"a": 1e-7, "b": 1e-6}, {"a": 9.0, "b": 9.0}])
    assert RULE.run(ran) == ("matched", 3, {"a": 1e-7, "b": 1e-6})
    assert next(ran) == {"a": 9.0, "b": 9.0}
    assert StoppingRule(1e-6, 2).run(iter([{"a": 0.5}, {"a": 0.4}])) == ("iteration_limit", 2, {"a": 0.4})


@pytest.mark.parametrize(
    ("tolerance", "cycles", "message"), [(0.0, 9, "tolerance"), (1.0, 9, "tolerance"), (0.1, 0, "cycle")]
)
def test_a_rule_that_cannot_end_a_fit_is_refused(tolerance, cycles, message):
    with pytest.raises(ValueError, match=message):
        StoppingRule(tolerance, cycles)
