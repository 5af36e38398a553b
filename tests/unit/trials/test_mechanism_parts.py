"""Parts of the mechanism audit where the answer is known: canaries, the distinguisher, independent rows, rehearsals."""

from __future__ import annotations

import numpy as np
import pytest

from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.noise import CryptographicNoise, SeededNoise
from synth_platform.privacy.rehearsal import REHEARSAL, Rehearsal
from synth_platform.privacy.row_independence import RowDependence
from synth_platform.privacy.statistics import StatisticQuery
from synth_platform.privacy.within_row import within_row
from synth_platform.trials.canaries import FAR, broken_rows, extreme_rows, with_canary, worst_rows
from synth_platform.trials.distinguisher import fit_distinguishers, precision
from synth_platform.trials.one_run_audit import independent_rows, judge_run


def reference() -> PublicReference:
    rng = np.random.default_rng(1)
    n = 40
    rows = EncodedRows(
        features=("f0", "f1", "f2"),
        x=rng.normal(size=(n, 3)) * [3.0, 2.0, 1.0],
        label=rng.integers(2, size=n),
        event=rng.integers(2, size=n),
        time=rng.uniform(1, 9, n),
        batch=np.zeros(n, np.int64),
        split=np.full(n, "public"),
        key=np.array([f"R-{i}" for i in range(n)]),
    )
    return PublicReference(None, rows, ("a", "b"), ("north", "south", "west"), ("south",), n_ref=100)  # type: ignore[arg-type]


def query(sigma: float = 2.0) -> StatisticQuery[EncodedRows]:
    return StatisticQuery("SUM", within_row("tests.mechanism.sum", lambda rows: rows.x[:, :2]), 2, 1.0, sigma)


def test_every_kind_of_cell_has_its_canary() -> None:
    found = extreme_rows(reference(), directions=2)
    kinds = set(zip(found.label, found.event, found.batch, strict=True))
    assert kinds == {(label, event, batch) for label in (0, 1) for event in (0, 1) for batch in (1, 0, -1)}
    public = reference().rows
    assert set(found.time) == {public.time.min(), public.time.max()}
    distance = np.linalg.norm(found.x - public.x.mean(axis=0), axis=1)
    assert distance.min() > FAR  # the second direction has a spread above 1


def test_broken_rows_are_broken_in_every_way() -> None:
    rows = broken_rows(reference())
    assert np.isnan(rows.x).any()
    assert np.isinf(rows.x).any()
    assert np.isnan(rows.time).any()
    assert (rows.time <= 0).sum() == 2
    assert {-1, 2} <= set(rows.label)
    assert len(worst_rows(reference())) > len(rows)


def test_a_neighbour_holds_copies_of_one_candidate() -> None:
    candidates = worst_rows(reference())
    neighbour = with_canary(reference().rows, candidates, 3, 5)
    assert len(neighbour) == 45
    assert np.array_equal(neighbour.x[-5:], np.tile(candidates.x[3], (5, 1)))


def test_the_learned_weights_take_a_direction_without_noise_for_what_it_is_worth() -> None:
    """Two canaries of the same length; the second moves a number whose noise another number repeats."""
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(400, 4))
    noise[:, 3] = noise[:, 2]
    shifts = np.array([[2.0, 0, 0, 0], [0, 0, 1.9, 0]])
    claimed, learned = fit_distinguishers(noise, shifts)
    assert (claimed.row, learned.row) == (0, 1)
    fresh = rng.normal(size=(50, 4))
    fresh[:, 3] = fresh[:, 2]
    assert np.abs(learned.scores(fresh)).max() < 1e-6
    assert np.allclose(learned.scores(fresh + shifts[1]), 1, atol=1e-6)
    assert claimed.scores(fresh + shifts[0]).std() == pytest.approx(1 / 2, rel=0.4)
    assert claimed.strength == 2


def test_precision_is_the_inverse_covariance() -> None:
    values = np.random.default_rng(3).normal(size=(200, 3)) @ np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 2]])
    assert np.allclose(precision(values) @ np.cov(values, rowvar=False), np.eye(3), atol=1e-9)


def test_independent_rows_leave_out_what_others_explain() -> None:
    shifts = np.array([[5.0, 0, 0], [4.9, 0.1, 0], [0, 0.01, 0], [0, 0, 0], [0, 0, 3]])
    assert set(independent_rows(shifts)) in ({0, 2, 4}, {1, 2, 4})


def test_a_leak_without_end_is_seen_in_one_run() -> None:
    """128 canaries in coordinates without noise: every guess is right, and the bounds are far above nothing."""
    included = np.arange(128) % 2 == 0
    shifts = np.eye(128)
    found = judge_run(included * 1.0, shifts, np.eye(128) * 1e9, included, delta=1e-5, confidence=0.99)
    assert found.guesses == ((48, 48),)
    assert found.epsilon > 1.5
    assert found.mu > 1
    silent = judge_run(np.zeros(128), shifts, np.eye(128), included, delta=1e-5, confidence=0.9999)
    assert silent.epsilon == silent.mu == 0


def test_a_rehearsal_is_the_curator_without_a_ledger() -> None:
    """Clipped to the sensitivity, charged by the event, named by no entry, drawn anew every time."""
    rows = reference().rows
    rehearsal = Rehearsal(rows, CryptographicNoise())
    first, second = rehearsal.ask(query()), rehearsal.ask(query())
    assert first.entry_id == REHEARSAL
    assert first.source == "cryptographic"
    assert not np.array_equal(first.values, second.values)
    assert [event.noise_multiplier for event in rehearsal.events] == [2.0, 2.0]
    far = Rehearsal(with_canary(rows.take(slice(0, 0)), worst_rows(reference()), 0, 1), SeededNoise(1))
    assert np.linalg.norm(far.ask(query(1e-4)).values) == pytest.approx(1, abs=1e-3)


def test_a_rehearsal_insists_on_within_row_maps() -> None:
    centred = within_row("tests.mechanism.centred", lambda rows: rows.x[:, :2] - rows.x[:, :2].mean(axis=0))
    with pytest.raises(RowDependence):
        Rehearsal(reference().rows, SeededNoise(1)).ask(StatisticQuery("SUM", centred, 2, 1.0, 1.0))
