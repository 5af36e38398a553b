from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from synth_platform.contract.cohort_spec import CONTROLS
from synth_platform.generators import controls
from synth_platform.generators.controls import fit_control


@pytest.fixture(scope="module")
def pools(rows):
    return {"train": rows(240, 21), "fresh": rows(900, 22, split="synthetic")}


def copied(table, source):
    """How many rows of `table` are rows of `source`, outcome included."""
    known = {row.tobytes() for row in np.column_stack([source.x, source.label, source.event, source.time])}
    return sum(row.tobytes() in known for row in np.column_stack([table.x, table.label, table.event, table.time]))


def test_copy_holds_every_training_row_once(reference, pools):
    state = fit_control("S_COPY", reference=reference, train=pools["train"])
    table = controls.sample(state, rows=200, seed=1)
    assert copied(table, pools["train"]) == 200
    assert len({row.tobytes() for row in table.x}) == 200


def test_a_table_longer_than_the_pool_uses_each_row_equally_often(reference, pools):
    state = fit_control("S_COPY", reference=reference, train=pools["train"])
    table = controls.sample(state, rows=600, seed=1)
    _, times = np.unique(table.x, axis=0, return_counts=True)
    assert set(times) == {2, 3}
    assert copied(table, pools["train"]) == 600


@pytest.mark.parametrize("with_fresh", [True, False])
def test_mix_copies_fifteen_percent(reference, pools, with_fresh):
    """The rest is fresh where there is a world to draw from, public rows where there is none."""
    fresh = pools["fresh"] if with_fresh else None
    state = fit_control("S_MIX", reference=reference, train=pools["train"], fresh=fresh)
    table = controls.sample(state, rows=600, seed=1)
    assert copied(table, pools["train"]) == 90
    assert copied(table, pools["fresh"] if with_fresh else reference.rows) == 510
    where = np.flatnonzero([copied(table.take(slice(i, i + 1)), pools["train"]) for i in range(600)])
    assert where.min() < 60
    assert where.max() > 540


def test_oracle_draws_fresh_rows_without_repeating_any(reference, pools):
    state = fit_control("S_ORACLE", reference=reference, fresh=pools["fresh"])
    table = controls.sample(state, rows=600, seed=1)
    assert copied(table, pools["fresh"]) == 600
    assert copied(table, pools["train"]) == 0
    assert len(np.unique(table.x, axis=0)) == 600


def test_marginal_keeps_every_column_and_no_relation(reference, pools):
    """Columns are the training columns, each in its own order: 55 rank correlations within 4.5 SE, false alarm 4e-4."""
    train = pools["train"]
    table = controls.sample(fit_control("S_MARGINAL", reference=reference, train=train), rows=240, seed=2)
    for j in range(8):
        assert np.array_equal(np.sort(table.x[:, j]), np.sort(train.x[:, j]))
    assert np.array_equal(np.sort(table.time), np.sort(train.time))
    assert np.bincount(table.label).tolist() == np.bincount(train.label).tolist()
    assert table.event.sum() == train.event.sum()
    assert copied(table, train) == 0
    together = np.column_stack([table.x, table.label, table.event, table.time])
    rank = stats.spearmanr(together).statistic
    assert np.abs(rank[np.triu_indices(11, 1)]).max() < 4.5 / np.sqrt(240)


def test_public_resamples_public_rows_and_reads_nothing_private(reference, pools):
    state = fit_control("S_PUBLIC", reference=reference, train=pools["train"], fresh=pools["fresh"])
    without = fit_control("S_PUBLIC", reference=reference)
    assert all(np.array_equal(state.arrays[name], without.arrays[name]) for name in state.arrays | without.arrays)
    table = controls.sample(state, rows=300, seed=1)
    assert copied(table, reference.rows) == 300
    distinct = len(np.unique(table.x, axis=0))
    # Expected distinct rows of 300 draws with replacement: 300 (1 - e^-1) = 189.7, standard deviation 5.4.
    assert 160 < distinct < 220


@pytest.mark.parametrize(
    ("code", "purposes"),
    [
        ("S_ORACLE", ("control S_ORACLE: fresh rows",)),
        ("S_COPY", ("control S_COPY: train rows",)),
        ("S_MIX", ("control S_MIX: train rows", "control S_MIX: fresh rows")),
        ("S_MARGINAL", ("control S_MARGINAL: train rows",)),
        ("S_PUBLIC", ()),
    ],
)
def test_private_reads_without_a_ledger_entry_are_named(reference, pools, code, purposes):
    state = fit_control(code, reference=reference, **pools)
    assert state.unledgered == purposes
    assert state.entries == ()
    assert state.generator == code


@pytest.mark.parametrize("code", CONTROLS)
def test_tables_are_anonymous_and_deterministic_in_the_seed(reference, pools, code):
    state = fit_control(code, reference=reference, **pools)
    one, same, other = (controls.sample(state, rows=150, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.x, same.x)
    assert not np.array_equal(one.x, other.x)
    assert one.key.tolist() == [f"S-{i:06d}" for i in range(1, 151)]
    assert set(one.split) == {"synthetic"}
    assert set(one.batch) == {-1}
    assert one.features == reference.rows.features


def test_missing_empty_and_foreign_rows_are_refused(reference, pools):
    with pytest.raises(ValueError, match="S_COPY needs train rows"):
        fit_control("S_COPY", reference=reference)
    with pytest.raises(ValueError, match="S_ORACLE needs fresh rows"):
        fit_control("S_ORACLE", reference=reference, train=pools["train"])
    with pytest.raises(ValueError, match="S_MARGINAL needs train rows"):
        fit_control("S_MARGINAL", reference=reference, train=pools["train"].take(slice(0)))
    renamed = replace(pools["train"], features=tuple(f"g{j}" for j in range(8)))
    with pytest.raises(ValueError, match="other features"):
        fit_control("S_COPY", reference=reference, train=renamed)
    with pytest.raises(ValueError, match="'G0' is not a control"):
        fit_control("G0", reference=reference, train=pools["train"])
