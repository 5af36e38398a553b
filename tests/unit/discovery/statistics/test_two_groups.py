"""Every two-group e-value against all small data sets: its proven sensitivity, its null, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_platform.discovery.statistics import two_groups
from synth_platform.discovery.statistics.dosage import DosageStatistic
from synth_platform.discovery.statistics.mann_whitney import MannWhitney
from synth_platform.discovery.statistics.mixture import Mixture
from synth_platform.discovery.statistics.tilted_permutation import TiltedPermutation
from synth_platform.discovery.statistics.z_score import ZScore

SIZES = [(1, 1), (1, 4), (2, 3), (3, 2), (3, 3), (4, 1)]
Statistic = MannWhitney | TiltedPermutation | DosageStatistic | ZScore | Mixture

MAKERS: dict[str, tuple[Callable[[int, int], Statistic], Sequence[float]]] = {
    "mann_whitney": (lambda n1, n0: MannWhitney(n1, n0, 0.7, two_sided=False), (0, 1, 2)),
    "mann_whitney_lower": (lambda n1, n0: MannWhitney(n1, n0, -0.4, two_sided=False), (0, 1, 2)),
    "mann_whitney_two_sided": (lambda n1, n0: MannWhitney(n1, n0, 0.7), (0, 1, 2)),
    "tilted": (lambda n1, n0: TiltedPermutation(n1, n0, 0.8, -1.0, 0.5, two_sided=False), (-3, -1, 0, 0.5, 7)),
    "tilted_two_sided": (lambda n1, n0: TiltedPermutation(n1, n0, 0.8, -1.0, 0.5), (-3, 0, 0.4, 7)),
    "tilted_hard": (lambda n1, n0: TiltedPermutation(n1, n0, 9.0, -1.0, 1.0, two_sided=False), (-1, 0, 1)),
    "dosage": (lambda n1, n0: DosageStatistic(n1, n0, 0.6, two_sided=False), (-1, 0, 1, 2)),
    "dosage_two_sided": (lambda n1, n0: DosageStatistic(n1, n0, 0.6), (-1, 0, 1, 2)),
    "z_score": (lambda n1, n0: ZScore(n1, n0, 1.5, 0.0, 1.0, 0.5), (-2, 0, 0.3, 1)),
    "mixture": (
        lambda n1, n0: Mixture((MannWhitney(n1, n0, 0.7), TiltedPermutation(n1, n0, 0.5, 0.0, 2.0)), (0.3, 0.7)),
        (0, 1, 2),
    ),
}
ATTAINED = ["mann_whitney", "mann_whitney_lower", "tilted", "tilted_hard", "dosage"]
EXACT_MEAN = ["tilted", "tilted_two_sided", "tilted_hard", "dosage", "dosage_two_sided"]


def every_data_set(levels: Sequence[float], n: int) -> np.ndarray:
    """[n, len(levels)^n]: one data set per column, the last record varying fastest."""
    return np.array(list(product(levels, repeat=n)), dtype=np.float64).T


def first_are_cases(n1: int, n0: int) -> np.ndarray:
    return np.arange(n1 + n0) < n1


def brute_force_sensitivity(statistic: Statistic, levels: Sequence[float], n1: int, n0: int) -> float:
    """The largest |log E(D) − log E(D')| over every data set and every replacement of one record in its group."""
    log_e = statistic.log_e(every_data_set(levels, n1 + n0), first_are_cases(n1, n0))
    cube = log_e.reshape((len(levels),) * (n1 + n0))
    return float(max(np.ptp(cube, axis=record).max() for record in range(n1 + n0)))


def mean_over_assignments(statistic: Statistic, values: np.ndarray, n1: int) -> np.ndarray:
    """The mean of E over every choice of the cases, per column: the null in full."""
    n = len(values)
    chosen = list(combinations(range(n), n1))
    return np.mean([np.exp(statistic.log_e(values, np.isin(np.arange(n), rows))) for rows in chosen], axis=0)


class TestSensitivity:
    @pytest.mark.parametrize("name", MAKERS)
    @pytest.mark.parametrize(("n1", "n0"), SIZES)
    def test_no_replaced_record_moves_it_further(self, name: str, n1: int, n0: int) -> None:
        """Claim: over all data sets the proven Δ is an upper bound, and where it is said to be attained it is."""
        make, levels = MAKERS[name]
        statistic = make(n1, n0)
        largest = brute_force_sensitivity(statistic, levels, n1, n0)
        assert largest <= statistic.sensitivity + 1e-9
        if name in ATTAINED:
            assert largest == pytest.approx(statistic.sensitivity, rel=1e-9)

    @pytest.mark.parametrize(("n1", "n0"), SIZES)
    @pytest.mark.parametrize("t", [0.1, 1.0, 20.0])
    def test_the_two_sided_supremum_has_a_closed_form(self, n1: int, n0: int, t: float) -> None:
        """Claim: log cosh(th) − log cosh(t max(0, h − d)), which the docstring holds against |t| max(n1, n0)."""
        h, d = n1 * n0 / 2, max(n1, n0)
        # log cosh from exponentials, another way than the statistic's.
        closed = math.log(math.cosh(t * h)) - math.log(math.cosh(t * max(0.0, h - d)))
        assert brute_force_sensitivity(MannWhitney(n1, n0, t), (0, 1, 2), n1, n0) == pytest.approx(closed, rel=1e-9)

    @pytest.mark.parametrize(("n1", "n0"), [(2, 3), (3, 3), (4, 2)])
    def test_z_approaches_its_bound(self, n1: int, n0: int) -> None:
        """Claim: Δ of the z-score is not merely an upper bound: where z is large, it is reached up to e^−z."""
        statistic = ZScore(n1, n0, 40.0, 0.0, 1.0, 0.5)
        assert brute_force_sensitivity(statistic, (0, 1), n1, n0) == pytest.approx(statistic.sensitivity, rel=1e-9)

    @pytest.mark.parametrize("w", [1e-3, 0.5, 3.0])
    @pytest.mark.parametrize(("n1", "n0"), SIZES)
    def test_the_larger_group_decides_a_tilt(self, n1: int, n0: int, w: float) -> None:
        """Claim: one closed form is the larger of the two cases of the proof, of a replaced case and of a control."""
        n = n1 + n0
        case = w - math.log(n / (n0 + n1 * math.exp(-w)))
        control = math.log((n0 + n1 * math.exp(w)) / n)
        assert TiltedPermutation(n1, n0, w, 0.0, 1.0).sensitivity == pytest.approx(max(case, control), rel=1e-12)


class TestNull:
    @pytest.mark.parametrize("name", [name for name in MAKERS if name != "z_score"])
    @pytest.mark.parametrize(("n1", "n0"), SIZES)
    def test_the_mean_over_all_choices_of_cases_is_at_most_one(self, name: str, n1: int, n0: int) -> None:
        """Claim: given any values, ties and all, E is an e-value of the permutation null; a tilt has mean 1 exactly."""
        make, levels = MAKERS[name]
        values = every_data_set(levels[:4], n1 + n0) if n1 + n0 < 6 else every_data_set(levels[:3], n1 + n0)
        mean = mean_over_assignments(make(n1, n0), values, n1)
        assert (mean <= 1 + 1e-10).all()
        if name in EXACT_MEAN:
            assert mean == pytest.approx(np.ones(len(mean)), rel=1e-10)

    @settings(deadline=None, max_examples=40)
    @given(values=st.lists(st.floats(-1e300, 1e300), min_size=5, max_size=7), n1=st.integers(1, 4))
    def test_it_holds_for_values_of_any_size(self, values: list[float], n1: int) -> None:
        column = np.array(values)[:, np.newaxis]
        n0 = len(values) - n1
        for statistic in (MannWhitney(n1, n0, 0.5), TiltedPermutation(n1, n0, 2.0, -3.0, 3.0)):
            assert mean_over_assignments(statistic, column, n1)[0] <= 1 + 1e-10


PERMUTATION = [
    MannWhitney(3, 4, 0.3),
    TiltedPermutation(3, 4, 0.5, -1.0, 1.0),
    DosageStatistic(3, 4, 0.5),
    ZScore(3, 4, 1.0, -1.0, 1.0, 1.0),
    Mixture((MannWhitney(3, 4, 0.3), ZScore(3, 4, 1.0, -1.0, 1.0, 1.0)), (0.5, 0.5)),
]


@pytest.mark.parametrize("statistic", PERMUTATION, ids=lambda statistic: statistic.name)
class TestContract:
    CASE = first_are_cases(3, 4)

    def test_it_is_finite_and_one_number_per_column(self, statistic: Statistic) -> None:
        log_e = statistic.log_e(np.ones((7, 5)), self.CASE)
        assert log_e.shape == (5,)
        assert np.isfinite(log_e).all()
        assert statistic.log_e(np.ones((7, 0)), self.CASE).shape == (0,)

    def test_groups_of_other_sizes_are_refused(self, statistic: Statistic) -> None:
        """Claim: Δ belongs to the registered sizes, so other data are an error, which says no count of them."""
        with pytest.raises(ValueError, match="values must be"):
            statistic.log_e(np.ones((8, 2)), self.CASE)
        with pytest.raises(ValueError, match="values must be"):
            statistic.log_e(np.ones(7), self.CASE)
        with pytest.raises(ValueError, match="bool array with one entry"):
            statistic.log_e(np.ones((7, 2)), self.CASE[:6])
        with pytest.raises(ValueError, match="bool array with one entry"):
            statistic.log_e(np.ones((7, 2)), self.CASE.astype(np.int64))
        with pytest.raises(ValueError, match="another number of records than n_case, the registered size"):
            statistic.log_e(np.ones((7, 2)), ~self.CASE)

    def test_infinite_values_are_refused(self, statistic: Statistic) -> None:
        for bad in (math.inf, -math.inf):
            values = np.ones((7, 2))
            values[4, 1] = bad
            with pytest.raises(ValueError, match="values holds"):
                statistic.log_e(values, self.CASE)

    def test_the_order_of_records_and_the_block_do_not_matter(
        self, statistic: Statistic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rng = np.random.default_rng(5)
        values = rng.integers(0, 3, (7, 40)).astype(np.float64)
        whole = statistic.log_e(values, self.CASE)
        order = rng.permutation(7)
        assert statistic.log_e(values[order], self.CASE[order]) == pytest.approx(whole, rel=1e-12, abs=1e-12)
        monkeypatch.setattr(two_groups, "_BLOCK", 3 * 8 * 7)
        assert statistic.log_e(values, self.CASE) == pytest.approx(whole, rel=1e-12, abs=1e-12)

    def test_its_parameters_make_it_again(self, statistic: Statistic) -> None:
        """Claim: the ledger's parameters are all of the statistic."""
        if isinstance(statistic, Mixture):
            assert [c["weight"] for c in statistic.parameters["components"]] == [0.5, 0.5]  # type: ignore[attr-defined]
        else:
            assert type(statistic)(**statistic.parameters) == statistic  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MannWhitney(0, 3, 0.1), "n_case is 0"),
        (lambda: MannWhitney(3, 0, 0.1), "n_control 0"),
        (lambda: MannWhitney(3, 3, 0.0), "tilt is 0"),
        (lambda: MannWhitney(3, 3, math.inf), "tilt is inf"),
        (lambda: MannWhitney(3, 3, math.nan), "tilt is nan"),
        (lambda: TiltedPermutation(3, 0, 0.1, 0, 1), "n_control 0"),
        (lambda: TiltedPermutation(3, 3, 0.0, 0, 1), "kappa is 0"),
        (lambda: TiltedPermutation(3, 3, -1.0, 0, 1), "kappa is -1"),
        (lambda: TiltedPermutation(3, 3, math.inf, 0, 1), "kappa is inf"),
        (lambda: TiltedPermutation(3, 3, 101.0, 0, 1), "must not exceed 100"),
        (lambda: TiltedPermutation(3, 3, 1.0, 1, 1), "lower is 1"),
        (lambda: TiltedPermutation(3, 3, 1.0, 0, math.inf), "upper inf"),
        (lambda: TiltedPermutation(3, 3, 1.0, math.nan, 1), "lower is nan"),
        (lambda: DosageStatistic(3, 3, 0.0), "kappa is 0"),
        (lambda: DosageStatistic(3, 3, math.nan), "kappa is nan"),
        (lambda: DosageStatistic(0, 3, 0.1), "n_case is 0"),
        (lambda: ZScore(3, 3, 0.0, 0, 1, 0.5), "tilt is 0"),
        (lambda: ZScore(3, 3, 1.0, 0, 1, 0.6), "spread is 0.6"),
        (lambda: ZScore(3, 3, 1.0, 0, 1, 0.0), "spread is 0"),
        (lambda: ZScore(3, 3, 1.0, 2, 1, 0.5), "lower is 2"),
        (lambda: Mixture((), ()), "at least one"),
        (lambda: Mixture((MannWhitney(3, 3, 0.1),), (0.5, 0.5)), "as many"),
        (lambda: Mixture((MannWhitney(3, 3, 0.1),), (0.9,)), "their sum 1"),
        (lambda: Mixture((MannWhitney(3, 3, 0.1),) * 2, (1.5, -0.5)), "above 0"),
        (lambda: Mixture((MannWhitney(3, 3, 0.1),) * 2, (math.nan, 1.0)), "above 0"),
    ],
)
def test_constants_out_of_range_are_refused(make: Callable[[], Statistic], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
