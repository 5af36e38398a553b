"""Models on both tables: odds ratios by hand, overlaps worked out, terms without a coefficient, errors."""

import numpy as np
import pytest
from scipy.stats import norm

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.measures.models import Coefficient, LogisticModel, model_utility
from synth_platform.margins.rows import Rows

DOMAIN = Domain(
    (Variable("sex", ("f", "m")), Variable("age", ("0-15", "16-64", "65+")), Variable("ill", ("no", "yes")))
)
MODEL = LogisticModel("ill", "yes", ("age",))


def of(*counts, sex=0):
    """Rows by age and illness: counts of (age 0, no), (age 0, yes), (age 1, no), …"""
    return Rows(DOMAIN, np.repeat([[sex, age, ill] for age in range(3) for ill in range(2)], counts, axis=0))


REAL, SYNTHETIC = of(20, 10, 40, 50, 15, 30), of(25, 8, 50, 45, 12, 30)


def test_one_predictor_has_the_odds_ratios_of_its_table():
    found = model_utility(REAL, SYNTHETIC, MODEL)
    assert MODEL.title == "ill = yes ~ age"
    assert found.reference == ("16-64",)
    assert [one.term for one in found.coefficients] == ["(Intercept)", "age = 0-15", "age = 65+"]
    expected = [np.log(50 / 40), np.log(10 * 40 / (20 * 50)), np.log(30 * 40 / (15 * 50))]
    assert [one.real for one in found.coefficients] == pytest.approx(expected)
    errors = [np.sqrt(1 / 50 + 1 / 40), np.sqrt(1 / 50 + 1 / 40 + 1 / 10 + 1 / 20)]
    assert [one.real_error for one in found.coefficients[:2]] == pytest.approx(errors)
    assert found.coefficients[2].synthetic == pytest.approx(np.log(30 * 50 / (12 * 45)))
    assert [one.sign_kept for one in found.coefficients] == [False, True, True]
    assert found.signs_kept == pytest.approx(2 / 3)
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("real", "real_error", "synthetic", "synthetic_error", "overlap"),
    [
        (1.0, 0.1, 1.0, 0.1, 1),
        (1.0, 0.5, 1.5, 1.0, (1 + 1 / 2) / 2),  # one inside the other: all of one, half of the other
        (0.0, 1.0, 2 * norm.ppf(0.975), 1.0, 0),  # they touch
        (0.0, 1.0, 4 * norm.ppf(0.975), 1.0, -1),  # apart by a whole width
        (0.0, 1.0, 1.25, 1.0, 1 - 1.25 / (2 * norm.ppf(0.975))),
    ],
)
def test_overlaps_worked_out(real, real_error, synthetic, synthetic_error, overlap):
    one = Coefficient("x", real, real_error, synthetic, synthetic_error)
    assert one.overlap == pytest.approx(overlap)
    assert one.z == pytest.approx((synthetic - real) / synthetic_error)


def test_a_mean_z_of_a_quarter_above_one_is_an_overlap_of_sixty_eight_hundredths():
    assert Coefficient("x", 0, 1, 1.25, 1).overlap == pytest.approx(0.68, abs=0.002)  # the published pair of figures


def test_a_category_without_both_outcomes_in_one_table_is_left_out_and_changes_nothing_else():
    found = model_utility(REAL, of(25, 0, 50, 45, 12, 30), MODEL)
    assert found.left_out == ("age = 0-15",)
    assert [one.term for one in found.coefficients] == ["(Intercept)", "age = 65+"]
    assert found.coefficients[1].synthetic == pytest.approx(np.log(30 * 50 / (12 * 45)), abs=1e-6)
    without = model_utility(of(0, 0, 40, 50, 15, 30), SYNTHETIC, MODEL)
    assert without.left_out == ("age = 0-15",)
    assert without.coefficients[1].real == pytest.approx(np.log(30 * 40 / (15 * 50)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fitted(target="pain"), "unknown variable pain"),
        (lambda: fitted(category="maybe"), "ill has no such category"),
        (lambda: fitted(predictors=()), "it needs predictors"),
        (lambda: fitted(predictors=("age", "ill")), "not the target"),
        (lambda: model_utility(of(9, 0, 0, 9, 9, 0), SYNTHETIC, MODEL), "no category of age has both outcomes"),
    ],
)
def test_what_is_wrong_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_predictors_that_determine_the_target_together_are_an_error():
    # each category has both outcomes, but the four combinations are told apart: intercept −t, both terms t
    rows = Rows(DOMAIN, np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]] * 9 + [[0, 1, 0], [1, 0, 0]]))
    with pytest.raises(ValueError, match="determine the target"):
        model_utility(rows, rows, LogisticModel("ill", "yes", ("sex", "age")))


def test_terms_that_earlier_ones_determine_are_in_neither_model():
    twins = [
        Rows(DOMAIN, np.column_stack([one.codes[:, 1] == 2, one.codes[:, 1:]]).astype(int)) for one in (REAL, SYNTHETIC)
    ]
    alone = model_utility(*twins, MODEL)
    for pair in (twins, (twins[0], Rows(DOMAIN, SYNTHETIC.codes)), (Rows(DOMAIN, REAL.codes), twins[1])):
        found = model_utility(*pair, LogisticModel("ill", "yes", ("age", "sex")))
        assert found.left_out == ("sex = m",)
        assert [one.term for one in found.coefficients] == [one.term for one in alone.coefficients]
        assert [one.overlap for one in found.coefficients] == pytest.approx([one.overlap for one in alone.coefficients])


def fitted(**changes):
    model = LogisticModel(**({"target": "ill", "category": "yes", "predictors": ("age",)} | changes))
    return model_utility(REAL, SYNTHETIC, model)
