"""Targets: each margin by its own total, one declared total for all."""

import numpy as np

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.fitting.targets import normalise
from synth_platform.margins.margin import Margin, MarginSet
from synth_platform.margins.structural_zeros import StructuralZero

DOMAIN = Domain(tuple(Variable(name, ("0", "1")) for name in "abc"))


def test_probabilities_are_shares_of_the_margins_own_total_and_the_total_is_the_median():
    counts = {"a": [30.0, 10.0], "b": [60.0, 40.0], "c": [1e6, 0.0]}
    targets = normalise(MarginSet(DOMAIN, tuple(Margin((n,), np.array(c), ("table",)) for n, c in counts.items())))
    assert [target.probabilities.tolist() for target in targets] == [[0.75, 0.25], [0.6, 0.4], [1.0, 0.0]]
    assert [target.names for target in targets] == [("a",), ("b",), ("c",)]
    assert targets.totals == {"a": 40.0, "b": 100.0, "c": 1e6}
    assert targets.total == 100.0


def test_structural_zeros_have_no_probability():
    zero = StructuralZero.of({"a": ["1"], "b": ["0"]})
    ab = Margin(("a", "b"), np.array([[1.0, 2.0], [0.0, 1.0]]), ("table",))
    targets = normalise(MarginSet(DOMAIN, (ab, Margin(("c",), np.ones(2), ("table",))), (zero,)))
    assert targets.targets[0].probabilities.tolist() == [[0.25, 0.5], [0.0, 0.25]]
