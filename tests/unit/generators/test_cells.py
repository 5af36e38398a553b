from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.contract.options import G0Options
from synth_platform.generators.basis import fit_basis
from synth_platform.generators.cells import Cells, CountContribution, MomentContribution, SumContribution
from synth_platform.generators.g0 import G0
from synth_platform.generators.protocol import PrivacyTarget

ALL = ("north", "south", "west")
CLIP = 1.5  # low enough that most rows are clipped
LABELS = ("basal", "luminal", "normal")


def contributions(rows, cells):
    basis = fit_basis(rows(300, 99), 3)
    return (CountContribution(cells), SumContribution(cells, basis, CLIP), MomentContribution(cells, basis, CLIP))


def test_removing_any_of_60_rows_moves_each_statistic_by_at_most_its_sensitivity(reference, rows):
    """8-1 §2.2: 1, R and R^2; reached by a clipped row, so a smaller sensitivity would be wrong."""
    private = rows(60, 5)
    private = replace(private, x=private.x * np.linspace(0.1, 10, 60)[:, None])
    model = G0(reference, G0Options(latent=5), PrivacyTarget(2.0, 1e-5))
    for query in model.queries():
        total = query.contribution(private).sum(axis=0)
        assert total.shape == (query.dimension,)
        keep = np.arange(60)
        moved = [
            np.linalg.norm(total - query.contribution(private.take(keep != removed)).sum(axis=0)) for removed in keep
        ]
        assert max(moved) <= query.sensitivity * (1 + 1e-9)
    counts, sums, moment = model.queries()
    assert np.linalg.norm(counts.contribution(private), axis=1) == pytest.approx(np.ones(60))
    assert np.linalg.norm(sums.contribution(private), axis=1).max() == pytest.approx(4.5)
    along_an_axis = replace(
        private, x=1e6 * model.basis.directions[:, 0] + np.zeros((60, 1)), time=np.full(60, private.time[0])
    )
    assert np.linalg.norm(moment.contribution(along_an_axis), axis=1).max() == pytest.approx(4.5**2)


def test_the_three_statistics_are_those_of_the_formulas(rows):
    """Row by row, in plain loops: one count per cell and batch, one clipped sum, one triangle."""
    private = rows(40, 6)
    cells = Cells(LABELS, ALL, ALL)
    basis = fit_basis(rows(300, 99), 3)
    counts, sums, moment = np.zeros((6, 3)), np.zeros((6, 3, 4)), np.zeros((4, 4))
    for i in range(40):
        z = np.append(
            (private.x[i] - basis.mean) @ basis.directions / np.sqrt(basis.eigenvalues),
            (np.log(private.time[i]) - basis.log_time_mean) / basis.log_time_sd,
        )
        z = z * min(1.0, CLIP / np.linalg.norm(z))
        c = 2 * private.label[i] + private.event[i]
        counts[c, private.batch[i]] += 1
        sums[c, private.batch[i]] += z
        moment += np.outer(z, z)
    got = [contribution(private).sum(axis=0) for contribution in contributions(rows, cells)]
    assert got[0] == pytest.approx(counts.ravel())
    assert got[1] == pytest.approx(sums.ravel())
    assert got[2] == pytest.approx(moment[np.triu_indices(4)])


@pytest.mark.parametrize(
    ("latent_batches", "groups", "expected"),
    [
        ((), ("(all)",), [0, 0, 0, 0, 0]),
        (ALL, ALL, [0, 1, 2, 0, 0]),
        (("south",), ("south", "(other)"), [1, 0, 1, 1, 1]),
        (("west", "north"), ("west", "north", "(other)"), [1, 2, 0, 2, 2]),
    ],
)
def test_every_row_counts_in_exactly_one_group(rows, latent_batches, groups, expected):
    """Declared batches in their own group, the rest by a rule fixed before any row is read; -1 and 7 are undeclared."""
    private = replace(rows(5, 7), batch=np.array([0, 1, 2, -1, 7]), label=np.zeros(5, int), event=np.zeros(5, int))
    cells = Cells(LABELS, ALL, latent_batches)
    assert cells.groups == groups
    membership = cells.membership(private)
    assert membership.sum(axis=1) == pytest.approx(np.ones(5))
    assert membership.argmax(axis=1).tolist() == expected


def test_a_row_without_a_declared_label_is_in_no_statistic(rows):
    cells = Cells(LABELS, ALL, ALL)
    stray = replace(rows(2, 8), label=np.array([-1, 3]))
    for contribution in contributions(rows, cells):
        assert not contribution(stray).any()


@settings(deadline=None, max_examples=25)
@given(subset=st.lists(st.integers(0, 39), min_size=1, max_size=20))
def test_contributions_look_at_one_row_at_a_time(rows, subset):
    private = rows(40, 9)
    for contribution in contributions(rows, Cells(LABELS, ALL, ("south",))):
        assert contribution(private)[subset] == pytest.approx(contribution(private.take(np.array(subset))), abs=1e-12)


def test_no_rows_give_the_same_shapes(rows):
    empty = rows(3, 1).take(slice(0))
    assert [c(empty).shape for c in contributions(rows, Cells(LABELS, ALL, ALL))] == [(0, 18), (0, 72), (0, 10)]
