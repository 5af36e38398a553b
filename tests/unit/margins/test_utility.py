"""All figures together: the same as of each part, JSON values, and census rows whose relations are cut."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from synth_platform.margins.domain import Domain, Variable
from synth_platform.margins.measures.compared import Compared
from synth_platform.margins.measures.pmse import logistic_propensity
from synth_platform.margins.measures.specks import specks
from synth_platform.margins.measures.tables import table_utility
from synth_platform.margins.rows import Rows
from synth_platform.margins.utility import utility

CENSUS = Path(__file__).parents[4] / "shared" / "data" / "census" / "nist_acs_national2019.csv.gz"
DOMAIN = Domain(tuple(Variable(name, tuple("0123")) for name in "abc"))


def rows(count, seed):
    return Rows(DOMAIN, np.random.default_rng(seed).integers(0, 4, (count, 3)))


def test_it_is_the_figures_of_its_parts_in_json_values():
    real, synthetic = rows(400, 1), rows(100, 2)
    found = utility(real, synthetic, np.random.default_rng(0), [("a", "b")])
    assert found.independent_sample == pytest.approx(1.25)
    assert list(found.two_way) == table_utility(real, synthetic, 2, [("a", "b")])
    assert list(found.three_way) == table_utility(real, synthetic, 3)
    compared = Compared(real, synthetic)
    logistic = logistic_propensity(compared)
    assert found.logistic.s_pmse == logistic.s_pmse
    assert found.logistic.specks == specks(compared, logistic)
    assert found.cart.s_pmse == pytest.approx(found.cart.pmse / found.cart.expected)
    assert found == utility(real, synthetic, np.random.default_rng(0), [("a", "b")])

    document = json.loads(json.dumps(found.document(), allow_nan=False))
    assert document["zone"] == "restricted"
    assert [table["preserved"] for table in document["two_way"]] == [True, False, False]
    assert document["two_way"][0]["s_pmse"] == found.two_way[0].s_pmse
    assert document["logistic"]["band"] == "good"


def test_two_variables_have_no_tables_of_three():
    two = [Rows(DOMAIN.project(("a", "b")), one.codes[:, :2]) for one in (rows(100, 1), rows(100, 2))]
    assert utility(*two, np.random.default_rng(0)).three_way == ()


@pytest.mark.skipif(not CENSUS.exists(), reason="nist_acs_national2019.csv.gz is not there")
def test_census_rows_drawn_again_are_good_and_rows_without_relations_are_poor():
    names = ["SEX", "MSP", "HISP", "RAC1P", "OWN_RENT", "EDU", "DVET", "DPHY"]
    frame = pl.read_csv(CENSUS, columns=names, infer_schema=False).fill_null("?").head(6000)
    categories = {name: sorted(frame[name].unique()) for name in names}
    domain = Domain(tuple(Variable(name, tuple(categories[name])) for name in names))
    codes = np.column_stack([np.searchsorted(categories[name], frame[name].to_list()) for name in names])
    rng = np.random.default_rng(4)
    real = Rows(domain, codes.astype(np.int64))
    again = utility(real, Rows(domain, real.codes[rng.integers(0, 6000, 6000)]), rng)
    cut = utility(real, Rows(domain, rng.permuted(real.codes, axis=0)), rng)
    assert np.mean([table.s_pmse for table in again.two_way]) == pytest.approx(1, abs=0.25)
    assert np.mean([table.s_pmse for table in again.three_way]) == pytest.approx(1, abs=0.25)
    assert again.logistic.band == again.cart.band == "good"
    assert cut.logistic.s_pmse == pytest.approx(
        0, abs=1e-9
    )  # every variable alone is the same: main effects see nothing
    assert cut.cart.band == "poor"
    assert np.mean([table.s_pmse for table in cut.two_way]) > 10


def test_a_domain_of_one_variable_has_no_tables_of_two() -> None:
    domain = Domain((Variable("age", ("0-15", "16+")),))
    real, synthetic = (Rows(domain, np.random.default_rng(seed).integers(0, 2, (60, 1))) for seed in (1, 2))
    compared = utility(real, synthetic, np.random.default_rng(3), [("age",)])
    assert (compared.two_way, compared.three_way) == ((), ())
