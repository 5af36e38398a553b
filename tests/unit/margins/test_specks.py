"""SPECKS against a distance read off by hand and at both ends of its range."""

import numpy as np
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.measures.compared import Compared
from synth_platform.margins.measures.pmse import Propensity, logistic_propensity
from synth_platform.margins.measures.specks import specks
from synth_platform.margins.rows import Rows

DOMAIN = Domain((Variable("x", ("0", "1", "2")),))


def of(*counts):
    return Rows(DOMAIN, np.repeat([[0], [1], [2]], counts, axis=0))


def test_the_largest_gap_of_two_step_functions():
    compared = Compared(of(2, 1, 1), of(0, 1, 1))
    scores = np.array([0.1, 0.2, 0.5, 0.7, 0.2, 0.7])  # below .2: 1/4 and 0; at .2: 2/4 and 1/2; at .5: 3/4 and 1/2
    assert specks(compared, Propensity(scores, 0.0, 1.0)) == pytest.approx(0.25)


@pytest.mark.parametrize(("synthetic", "distance"), [((10, 20, 30), 0), ((20, 20, 20), 1 / 6), ((0, 60, 0), 2 / 3)])
def test_a_single_variable_gives_half_its_l1_distance(synthetic, distance):
    compared = Compared(of(10, 20, 30), of(*synthetic))
    assert specks(compared, logistic_propensity(compared)) == pytest.approx(distance)


def test_rows_without_a_common_category_are_wholly_told_apart():
    compared = Compared(of(10, 20, 0), of(0, 0, 30))
    assert specks(compared, logistic_propensity(compared)) == 1
