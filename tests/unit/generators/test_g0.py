import contextlib
import inspect
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from synth_platform.contract.options import G0Options
from synth_platform.generators import g0
from synth_platform.generators.g0 import G0
from synth_platform.generators.paid import ForeignStatisticError
from synth_platform.generators.protocol import PrivacyTarget
from synth_platform.privacy.statistics import StatisticQuery

OPTIONS = G0Options(latent=3)
TARGET = PrivacyTarget(epsilon=2.0, delta=1e-5)


@pytest.fixture(scope="module")
def model(reference):
    return G0(reference, OPTIONS, TARGET)


@pytest.fixture(scope="module")
def releases(model, rows, ask_noisily):
    return model.measure(ask_noisily(rows(400, 11), 1))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("shares", [(0.2, 0.4, 0.4), (0.5, 0.3, 0.2)])
def test_the_three_noises_compose_to_the_target(reference, epsilon, shares):
    """8-1 §2.2 closed form: rho = sum of Delta^2 / 2 sigma^2 and epsilon = rho + 2 sqrt(rho ln(1/delta))."""
    queries = G0(reference, G0Options(latent=3, shares=shares), PrivacyTarget(epsilon, 1e-5)).queries()
    rho = [query.sensitivity**2 / (2 * query.sigma**2) for query in queries]
    assert sum(rho) + 2 * math.sqrt(sum(rho) * math.log(1e5)) == pytest.approx(epsilon, rel=1e-9)
    assert [part / sum(rho) for part in rho] == pytest.approx(shares)


def test_the_noise_table_of_the_source_reproduces(reference):
    """8-1 §2.2: sigma_S / n and sigma_N / n for cells of 42 and 330 at epsilon 1, 3, 8."""
    published = {
        1.0: (0.830, 0.261, 0.106, 0.033),
        3.0: (0.288, 0.090, 0.037, 0.012),
        8.0: (0.117, 0.037, 0.015, 0.005),
    }
    for epsilon, figures in published.items():
        counts, sums, _ = G0(reference, OPTIONS, PrivacyTarget(epsilon, 1e-5)).queries()
        got = (sums.sigma / 42, counts.sigma / 42, sums.sigma / 330, counts.sigma / 330)
        assert got == pytest.approx(figures, abs=0.0005)


def test_queries_are_named_and_shaped_by_public_settings(model):
    """3 labels x 2 events x 3 batches, k + 1 = 4."""
    counts, sums, moment = model.queries()
    assert [q.code for q in model.queries()] == ["G0_COUNTS", "G0_SUMS", "G0_MOMENT"]
    assert (counts.dimension, sums.dimension, moment.dimension) == (18, 72, 10)
    assert (counts.sensitivity, sums.sensitivity, moment.sensitivity) == (1.0, 4.5, 20.25)
    assert sums.parameters["basis"] == model.basis.digest()


def public_part(query: StatisticQuery):
    return (query.code, query.contribution.name, query.dimension, query.sensitivity, query.sigma, query.parameters)


def test_nothing_of_the_private_rows_reaches_a_query(reference, rows, ask_exactly):
    """n, label sets, ranges and missingness of private rows change what a query answers, never the query."""
    base = rows(80, 12)
    tables = {
        "as it is": base,
        "no rows": base.take(slice(0)),
        "one label": base.take(base.label == 0),
        "one batch": base.take(base.batch == 0),
        "undeclared batches": replace(base, batch=np.full(80, -1)),
        "other ranges": replace(base, x=base.x * 1e3, time=base.time * 1e3),
        "all missing": replace(base, x=np.zeros_like(base.x)),
        "no events": replace(base, event=np.zeros(80, dtype=np.int64)),
    }
    asked, answers = {}, {}
    for what, private in tables.items():
        model = G0(reference, OPTIONS, TARGET)
        answer = ask_exactly(private)

        def ask(query, what=what, answer=answer):
            asked.setdefault(what, []).append(public_part(query))
            return answer(query)

        answers[what] = np.concatenate([release.values for release in model.measure(ask)])
        assert [public_part(query) for query in model.queries()] == asked[what]
    assert all(questions == asked["as it is"] for questions in asked.values())
    assert not any(np.array_equal(answers["as it is"], answers[what]) for what in list(tables)[1:])
    assert list(inspect.signature(G0.queries).parameters) == ["self"]


def test_measure_asks_once_for_each_statistic(model, rows, ask_noisily):
    calls = []
    ask = ask_noisily(rows(50, 1), 3)

    def counted(query):
        calls.append(query.code)
        return ask(query)

    assert [release.code for release in model.measure(counted)] == calls == list(g0.CODES)


def test_changing_public_settings_makes_another_query(model, reference, make_reference):
    base = [public_part(query) for query in model.queries()]
    for other in (
        G0(reference, G0Options(latent=4), TARGET),
        G0(reference, G0Options(latent=3, clip=3.0), TARGET),
        G0(make_reference(n=299), OPTIONS, TARGET),
        G0(make_reference(latent_batches=("north",)), OPTIONS, TARGET),
        G0(make_reference(labels=("luminal", "basal", "normal")), OPTIONS, TARGET),
        G0(make_reference(batches=("west", "south", "north")), OPTIONS, TARGET),
        G0(reference, OPTIONS, PrivacyTarget(1.0, 1e-5)),
    ):
        assert [public_part(query) for query in other.queries()] != base


def test_fit_takes_nothing_but_its_own_statistics(model, releases, rows):
    private = rows(10, 1)
    counts, sums, moment = releases
    foreign = {
        "a list": list(releases),
        "private rows": private,
        "a tuple of rows": (private, private, private),
        "bare arrays": tuple(release.values for release in releases),
        "one missing": (counts, sums),
        "one too many": (counts, sums, moment, moment),
        "wrong order": (sums, counts, moment),
        "another code": (replace(counts, code="G0A_COUNTS"), sums, moment),
        "another shape": (replace(counts, values=np.zeros(17)), sums, moment),
        "not finite": (counts, replace(sums, values=np.full_like(sums.values, np.nan)), moment),
        "less noise than planned": (counts, replace(sums, sigma=sums.sigma / 2), moment),
        "another sensitivity": (counts, sums, replace(moment, sensitivity=4.5)),
        "no ledger entry": (counts, sums, replace(moment, entry_id="")),
    }
    taken = []
    for what, handed in foreign.items():
        with contextlib.suppress(ForeignStatisticError):
            model.fit(handed)
            taken.append(what)
    assert taken == []


def test_refusals_repeat_no_value(model, releases):
    values = np.full(72, 123.456789)
    values[0] = np.inf
    with pytest.raises(ForeignStatisticError) as caught:
        model.fit((releases[0], replace(releases[1], values=values), releases[2]))
    assert "123" not in str(caught.value)


def test_state_carries_entries_and_the_noise_source(model, releases):
    state = model.fit(releases)
    assert state.generator == "G0"
    assert state.entries == ("entry-G0_COUNTS", "entry-G0_SUMS", "entry-G0_MOMENT")
    assert state.unledgered == ()
    assert state.seeded
    trusted = tuple(replace(release, source="cryptographic") for release in releases)
    assert not model.fit(trusted).seeded
    assert model.fit((releases[0], *trusted[1:])).seeded


def test_fit_is_a_function_of_the_releases(model, releases, reference):
    first, second = model.fit(releases), G0(reference, OPTIONS, TARGET).fit(releases)
    assert first.document == second.document
    assert all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)


@pytest.mark.parametrize("seed", range(5))
def test_an_empty_private_table_still_releases_a_model(model, rows, ask_noisily, seed):
    """It is the neighbour of a table with one row, so it must answer in the same shape (8-1 §2.2)."""
    state = model.fit(model.measure(ask_noisily(rows(1, 1).take(slice(0)), seed)))
    full = model.fit(model.measure(ask_noisily(rows(400, 1), seed)))
    assert {name: array.shape for name, array in state.arrays.items()} == {
        name: array.shape for name, array in full.arrays.items()
    }
    table = g0.sample(state, rows=50, seed=0)
    assert np.isfinite(table.x).all()


def test_no_rows_and_no_noise_fall_back_to_the_public_prior(model, rows, ask_exactly, reference):
    """Then the table is the public population without classes: its covariance is the public one."""
    state = model.fit(model.measure(ask_exactly(rows(1, 1).take(slice(0)))))
    assert state.document["public_prior"] is True
    assert state.document["cells_below_floor"] == []
    table = g0.sample(state, rows=20_000, seed=4)
    assert np.bincount(2 * table.label + table.event, minlength=6) / 20_000 == pytest.approx(
        np.full(6, 1 / 6), abs=0.015
    )
    assert np.diag(np.cov(table.x.T)) == pytest.approx(reference.rows.x.var(axis=0, ddof=1), rel=0.06)


def test_cells_below_the_floor_are_named(model, rows, ask_exactly):
    private = rows(300, 2)
    private = private.take((private.label != 2) | (private.event == 0))
    state = model.fit(model.measure(ask_exactly(private)))
    assert state.document["cells_below_floor"] == ["normal, event 1"]
    table = g0.sample(state, rows=2000, seed=1)
    assert not np.any((table.label == 2) & (table.event == 1))


def test_sampled_moments_match_the_fitted_model(model, rows, ask_exactly):
    """40,000 rows: each of about 140 figures within 5 standard errors, false alarm below 1e-4."""
    fitted = model.fit(model.measure(ask_exactly(rows(3000, 13))))
    root = np.array([[1.2, 0, 0, 0], [0.8, 0.5, 0, 0], [-0.3, 0.6, 0.7, 0], [0.9, -0.4, 0.2, 0.6]])
    state = replace(fitted, arrays={**fitted.arrays, "covariance": root @ root.T})  # far from a multiple of I
    a = state.arrays
    table = g0.sample(state, rows=40_000, seed=5)
    cell = 2 * table.label + table.event
    share = np.bincount(cell, minlength=6) / 40_000
    assert np.abs(share - a["cell_weights"]).max() < 5 * 0.5 / 200
    lift = (a["directions"] * np.sqrt(a["eigenvalues"])).T
    within = a["covariance"][:-1, :-1]
    expected = lift.T @ within @ lift + np.diag(a["residual_sd"] ** 2)
    log_time_mean, log_time_sd = a["log_time"]
    for c in range(6):
        part = table.take(cell == c)
        n = len(part)
        mean = a["mean"] + a["cell_means"][c, :-1] @ lift
        assert np.all(np.abs(part.x.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(expected) / n))
        mu, sd = log_time_mean + log_time_sd * a["cell_means"][c, -1], log_time_sd * math.sqrt(a["covariance"][-1, -1])
        assert abs(np.log(part.time).mean() - mu) < 5 * sd / math.sqrt(n)
        assert stats.kstest(np.log(part.time), "norm", args=(mu, sd)).pvalue > 1e-5
    centred = table.x - a["mean"] - a["cell_means"][cell, :-1] @ lift
    tau = (np.log(table.time) - log_time_mean) / log_time_sd - a["cell_means"][cell, -1]
    with_time = a["covariance"][-1, :-1] @ lift
    spread = np.sqrt(np.diag(expected) * a["covariance"][-1, -1])
    assert np.all(np.abs(tau @ centred / 40_000 - with_time) < 5 * math.sqrt(2) * spread / 200)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.all(np.abs(centred.T @ centred / 40_000 - expected) < 5 * math.sqrt(2) * scale / 200)


def test_a_batch_effect_stays_out_of_the_table_even_where_batch_and_label_go_together(
    make_reference, rows, ask_exactly
):
    """Generation is at gamma = 0 (8-1 §1.2 L2b): a shift of one batch must not turn up as a difference of labels.

    Nearly all rows of the first label are in the first batch; pooling the batches takes their shift for a label effect.
    """
    private = rows(20_000, 14)
    chance = np.where((private.label == 0) == (private.batch == 0), 1.0, 0.1)
    private = private.take(np.random.default_rng(1).uniform(size=20_000) < chance)
    shifted = replace(private, x=private.x + (private.batch == 0)[:, None])
    moved = {}
    for latent_batches in (("north", "south", "west"), ()):
        g = G0(make_reference(latent_batches=latent_batches), G0Options(latent=3, clip=50.0), TARGET)
        before, after = (g.fit(g.measure(ask_exactly(table))).arrays["cell_means"] for table in (private, shifted))
        change = after - before
        moved[latent_batches] = np.abs(change - change.mean(axis=0)).max()
    assert moved[("north", "south", "west")] < 1e-6
    assert moved[()] > 0.1


def test_table_shape_keys_and_markers(model, releases, reference):
    table = g0.sample(model.fit(releases), rows=1200, seed=0)
    assert table.features == reference.rows.features
    assert (table.key[0], table.key[-1]) == ("S-000001", "S-001200")
    assert set(table.split) == {"synthetic"}
    assert set(table.batch) == {-1}
    assert (table.time > 0).all()
    assert set(table.label) <= {0, 1, 2}
    assert set(table.event) <= {0, 1}


def test_sampling_is_deterministic_in_the_seed(model, releases):
    state = model.fit(releases)
    one, same, other = (g0.sample(state, rows=100, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.x, same.x)
    assert np.array_equal(one.time, same.time)
    assert not np.array_equal(one.x, other.x)


@settings(deadline=None, max_examples=25)
@given(epsilon=st.floats(1e-3, 50.0), n=st.integers(0, 60), seed=st.integers(0, 1000))
def test_any_budget_and_size_give_a_finite_table(reference, rows, ask_noisily, epsilon, n, seed):
    g = G0(reference, OPTIONS, PrivacyTarget(epsilon, 1e-5))
    table = g0.sample(g.fit(g.measure(ask_noisily(rows(60, 1).take(slice(n)), seed))), rows=20, seed=seed)
    assert np.isfinite(table.x).all()
    assert np.isfinite(table.time).all()
    assert (table.time > 0).all()


def test_a_mean_of_pure_noise_overflows_no_time(model, releases):
    state = model.fit(releases)
    noisy = replace(state, arrays={**state.arrays, "cell_means": np.array([[1e5] * 4, [-1e5] * 4] * 3)})
    table = g0.sample(noisy, rows=100, seed=0)
    assert np.isfinite(table.time).all()
    assert (table.time > 0).all()


def test_shares_must_add_up_to_one(reference):
    with pytest.raises(ValueError, match=r"shares add up to 1\.2"):
        G0(reference, G0Options(shares=(0.4, 0.4, 0.4)), TARGET)


def test_delta_must_stay_below_one_in_n_ref(reference):
    with pytest.raises(ValueError, match=r"not below 1/n_ref = 0\.001"):
        G0(reference, OPTIONS, PrivacyTarget(2.0, 1e-3))
