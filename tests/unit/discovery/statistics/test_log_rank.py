"""The survival e-value: exact mean over permutations, Δ with group flips by enumeration, the log-rank's own."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines import NelsonAalenFitter
from scipy.optimize import minimize_scalar
from scipy.stats import hypergeom

from synth_platform.discovery.statistics.elementary_symmetric import log_elementary_symmetric
from synth_platform.discovery.statistics.log_rank import LogRank, Survival

TILTS = st.floats(0.05, 2.0)
CLIPS = st.floats(0.1, 3.0)


def log_rank(size: int, tilt: float, clip: float = 1.5, *, two_sided: bool = False) -> LogRank:
    """Λ0 is 0 before time 1, .4 before 2, and 2 from there on."""
    return LogRank(size, (1.0, 2.0), (0.4, 2.0), clip, 0.0, tilt, two_sided)


# With Λ0 above: the largest residual there is, one between, the smallest there is.
RECORDS = ((0.5, True), (1.5, True), (9.0, False))


def outcomes(size: int) -> list[Survival]:
    """Every outcome of `size` patients made of RECORDS."""
    chosen = itertools.product(RECORDS, repeat=size)
    return [Survival(np.array([t for t, _ in rows]), np.array([e for _, e in rows])) for rows in chosen]


def groupings(size: int) -> np.ndarray:
    """[size, 2^size] values: every way to lie below (−1) or above (1) the cut, one a column."""
    return np.array(list(itertools.product([-1.0, 1.0], repeat=size))).T


def every_log_e(statistic: LogRank) -> np.ndarray:
    """log E of every data set of RECORDS × groups, indexed [(record, group) of patient 0, ..., of patient n − 1]."""
    n = statistic.size
    table = np.array([statistic.log_e(groupings(n), outcome) for outcome in outcomes(n)])
    table = table.reshape((3,) * n + (2,) * n)
    order = [axis for i in range(n) for axis in (i, n + i)]
    return table.transpose(order).reshape((6,) * n)


def chosen_rows(size: int, group: int) -> np.ndarray:
    """[size, C(size, group)] values: every choice of `group` patients above the cut, one a column."""
    values = np.full((size, math.comb(size, group)), -1.0)
    for j, rows in enumerate(itertools.combinations(range(size), group)):
        values[list(rows), j] = 1.0
    return values


SURVIVALS = st.lists(st.tuples(st.floats(0, 4) | st.sampled_from([1.0, 2.0]), st.booleans()), min_size=2, max_size=7)


def survival(rows: list[tuple[float, bool]]) -> Survival:
    return Survival(np.array([t for t, _ in rows]), np.array([e for _, e in rows]))


class TestNull:
    @settings(deadline=None, max_examples=60)
    @given(rows=SURVIVALS, tilt=TILTS, clip=CLIPS, factor=st.floats(0.1, 10), two_sided=st.booleans())
    def test_mean_one_over_every_choice_of_a_group(
        self, rows: list[tuple[float, bool]], tilt: float, clip: float, factor: float, two_sided: bool
    ) -> None:
        """Claim: for any outcome, group size and public hazard, however wrong, the mean over all choices is 1."""
        n = len(rows)
        statistic = LogRank(n, (1.0, 2.0), (0.4 * factor, 2.0 * factor), clip, 0.0, tilt, two_sided)
        for group in range(n + 1):
            log_e = statistic.log_e(chosen_rows(n, group), survival(rows))
            assert np.exp(log_e).mean() == pytest.approx(1, rel=1e-10)

    @settings(deadline=None, max_examples=40)
    @given(rows=SURVIVALS, tilt=TILTS, clip=CLIPS)
    def test_it_is_its_definition(self, rows: list[tuple[float, bool]], tilt: float, clip: float) -> None:
        """Claim: log E = κ Σ r over the group − log of the mean over all choices, residuals by hand; −κ averaged in."""
        n, outcome = len(rows), survival(rows)
        residual = [min(max(e - (0.0 if t < 1 else 0.4 if t < 2 else 2.0), -clip), clip) for t, e in rows]
        for group in range(n + 1):
            sums = np.array([sum(chosen) for chosen in itertools.combinations(residual, group)])
            one, other = (sign * tilt * sums - np.log(np.exp(sign * tilt * sums).mean()) for sign in (1, -1))
            values = chosen_rows(n, group)
            assert log_rank(n, tilt, clip).log_e(values, outcome) == pytest.approx(one, abs=1e-9)
            both = log_rank(n, tilt, clip, two_sided=True).log_e(values, outcome)
            assert both == pytest.approx(np.log((np.exp(one) + np.exp(other)) / 2), abs=1e-9)

    def test_without_hazard_it_counts_events_as_fisher_does(self) -> None:
        """Claim: with Λ0 = 0, E is exp(κ · events strictly above the cut) over its hypergeometric mean (SciPy)."""
        rng = np.random.default_rng(3)
        event, values = rng.uniform(size=40) < 0.3, rng.integers(-1, 2, (40, 6)).astype(np.float64)
        log_e = LogRank(40, (1.0,), (0.0,), 1.0, 0.0, 0.8, two_sided=False).log_e(values, Survival(np.ones(40), event))
        for j, above in enumerate((values > 0).T):
            count = np.arange(41)
            mean = float(hypergeom(40, event.sum(), above.sum()).pmf(count) @ np.exp(0.8 * count))
            assert log_e[j] == pytest.approx(0.8 * (event & above).sum() - math.log(mean), abs=1e-10)

    def test_residuals_are_those_of_a_fitted_reference(self) -> None:
        """Claim: with Λ0 from lifelines' Nelson–Aalen fit of a reference arm, r is event − its prediction."""
        rng = np.random.default_rng(4)
        reference = NelsonAalenFitter().fit(rng.exponential(5, 60), rng.uniform(size=60) < 0.6).cumulative_hazard_
        times, hazard = tuple(reference.index), tuple(reference.iloc[:, 0])
        outcome = Survival(rng.exponential(5, 50), rng.uniform(size=50) < 0.5)
        fitted = reference.iloc[:, 0].reindex(reference.index.union(outcome.time)).ffill().loc[outcome.time].to_numpy()
        residuals = LogRank(50, times, hazard, 99.0, 0.0, 1.0).residuals(outcome)
        assert residuals == pytest.approx(outcome.event - fitted)


class TestSensitivity:
    @pytest.mark.parametrize("size", [2, 3, 4])
    @settings(deadline=None, max_examples=8)
    @given(tilt=TILTS, clip=CLIPS)
    def test_it_is_attained_one_sided(self, size: int, tilt: float, clip: float) -> None:
        """Claim: over every data set and every replaced record, group flips included, the largest step is Δ exactly."""
        statistic = log_rank(size, tilt, clip)
        log_e = every_log_e(statistic)
        largest = max(float(np.ptp(log_e, axis=i).max()) for i in range(size))
        assert largest == pytest.approx(statistic.sensitivity, rel=1e-9)

    @settings(deadline=None, max_examples=8)
    @given(tilt=TILTS, clip=CLIPS)
    def test_it_bounds_every_step_two_sided(self, tilt: float, clip: float) -> None:
        statistic = log_rank(4, tilt, clip, two_sided=True)
        log_e = every_log_e(statistic)
        assert max(float(np.ptp(log_e, axis=i).max()) for i in range(4)) <= statistic.sensitivity * (1 + 1e-10)

    @pytest.mark.parametrize("tilt", [0.2, 1.0, 3.0])
    def test_each_case_of_the_proof_is_attained(self, tilt: float) -> None:
        """Claim: staying in either group and joining group 1, for every group size of five, are as large as derived."""
        n, clip, width = 5, 1.5, 1 + 1.5
        log_e = every_log_e(log_rank(n, tilt, clip)).reshape((3, 2) + (6,) * (n - 1))
        others = sum(np.indices((6,) * (n - 1)) % 2)  # how many of the others are above the cut
        W = math.exp(tilt * width)
        for k in range(n):
            below, above = log_e[:, 0, others == k], log_e[:, 1, others == k]
            joins = W * (k * W + n - k) / ((k + 1) * W + n - k - 1)
            leaves = W * ((n - 1 - k) * W + k + 1) / ((n - k) * W + k)
            assert (above.max(axis=0) - below.min(axis=0)).max() == pytest.approx(math.log(joins))
            assert (below.max(axis=0) - above.min(axis=0)).max() == pytest.approx(math.log(leaves))
            if k:  # the record stays below, group 1 has the k others
                assert np.ptp(below, axis=0).max() == pytest.approx(math.log((k * W + n - k) / n))
            if k < n - 1:  # the record stays above, group 1 has k + 1
                assert np.ptp(above, axis=0).max() == pytest.approx(math.log(((n - k - 1) * W + k + 1) / n))

    def test_two_sided_it_is_approached(self) -> None:
        """Claim: of 3,000 patients 50 died early, all in group 1; one more such moves log E by 98 % of Δ."""
        n = 3000
        statistic = log_rank(n, 0.6, two_sided=True)
        above = np.where(np.arange(n) < n // 2, 1.0, -1.0)[:, None]
        died = (np.arange(n) < 50) | (np.arange(n) == n - 1)
        outcome = Survival(np.where(died, 0.5, 9.0), died)
        joined = above.copy()
        joined[-1] = 1.0
        step = float((statistic.log_e(joined, outcome) - statistic.log_e(above, outcome))[0])
        assert 0.98 * statistic.sensitivity < step <= statistic.sensitivity

    def test_a_hazard_that_ends_below_the_clip_is_the_bound(self) -> None:
        """Claim: where no residual reaches −C, Δ is that of the smallest residual there is."""
        assert log_rank(9, 0.5, 2.0).sensitivity == log_rank(9, 0.5, 50.0).sensitivity
        assert log_rank(9, 0.5, 1.9).sensitivity < log_rank(9, 0.5, 2.0).sensitivity
        assert log_rank(9, 0.5, 2.0).width == 1 + 2.0
        assert log_rank(9, 0.5, 0.3).width == 0.3 + 0.3

    @settings(deadline=None, max_examples=40)
    @given(data=st.data(), size=st.integers(2, 60), tilt=st.floats(0.01, 5.0), clip=CLIPS, two_sided=st.booleans())
    def test_no_neighbour_found_by_hypothesis_is_further(
        self, data: st.DataObject, size: int, tilt: float, clip: float, two_sided: bool
    ) -> None:
        """Claim: any data set, any record replaced by any other: |log E(D) − log E(D')| ≤ Δ, and both are finite."""
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        statistic = log_rank(size, tilt, clip, two_sided=two_sided)
        values, time, event = rng.normal(size=(size, 3)), rng.exponential(1.5, size), rng.uniform(size=size) < 0.5
        before = statistic.log_e(values, Survival(time, event))
        i = data.draw(st.integers(0, size - 1))
        values[i], time[i], event[i] = data.draw(st.sampled_from([-1.0, 1.0])), *data.draw(st.sampled_from(RECORDS))
        after = statistic.log_e(values, Survival(time, event))
        assert np.isfinite(before).all()
        assert np.abs(after - before).max() <= statistic.sensitivity * (1 + 1e-9)


class TestTheLogRankItself:
    @pytest.mark.parametrize("n", [10, 100, 1000])
    def test_one_patient_moves_it_by_log_n(self, n: int) -> None:
        """Claim: with scores event − Nelson–Aalen of the data (lifelines) the last of n patients to die moves
        κ(O − E) by κ(H_n − 1) when it changes its group, and the e-value tilted by it by nearly as much: κ log 10 more
        for ten times the patients, where the bounded statistic stays within one Δ for every n."""
        tilt, time, event = 0.5, np.arange(1.0, n + 1), np.ones(n, dtype=bool)
        fitted = NelsonAalenFitter(nelson_aalen_smoothing=False).fit(time, event).cumulative_hazard_.iloc[1:, 0]
        scores = event - fitted.to_numpy()
        harmonic = float((1 / np.arange(1, n + 1)).sum())
        assert scores[-1] == pytest.approx(1 - harmonic)

        values = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        flipped = values.copy()
        flipped[-1] = -flipped[-1]
        log_mean = log_elementary_symmetric(tilt * scores, n)
        choose = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)])

        def unbounded(column: np.ndarray) -> float:
            return tilt * float(scores[column > 0].sum()) - (log_mean - choose)[(column > 0).sum()]

        step = unbounded(values) - unbounded(flipped)
        assert abs(step) > tilt * (harmonic - 1) - 0.25

        bounded = LogRank(n, tuple(time / n), tuple(np.linspace(0.01, 2, n)), 1.0, 0.0, tilt, two_sided=False)
        ours = bounded.log_e(np.column_stack([values, flipped]), Survival(time / n, event))
        assert abs(ours[0] - ours[1]) <= bounded.sensitivity < 2 * tilt


class TestTilt:
    @pytest.mark.parametrize(("two_sided", "value_mu"), [(True, 0.1), (False, 0.1), (True, math.inf)])
    def test_it_has_the_least_detectable_effect(self, two_sided: bool, value_mu: float) -> None:
        """Claim: κ minimises (Vκ²/2 + (κv/μ)²/2 + L)/κ (SciPy), with V by enumeration of all choices of 4 of 8."""
        reference = survival([RECORDS[i] for i in (0, 1, 1, 2, 2, 2, 0, 2)])
        statistic = LogRank.designed(
            8, (1.0, 2.0), (0.4, 2.0), 0.5, 0.0, reference=reference, share_above=0.5,
            features=100, released=4, alpha=0.05, value_mu=value_mu, two_sided=two_sided,
        )  # fmt: skip
        sums = [sum(chosen) for chosen in itertools.combinations(statistic.residuals(reference), 4)]
        variance = float(np.var(sums)) * 7 / 8  # of a sample without replacement it is n/(n − 1) times the planned one
        level = math.log(100 / (0.05 * 4)) + math.log(2) * two_sided

        def effect(tilt: float) -> float:
            return (variance * tilt**2 / 2 + (tilt * 1.0 / value_mu) ** 2 / 2 + level) / tilt

        best = minimize_scalar(effect, bounds=(0.01, 20), method="bounded", options={"xatol": 1e-9}).x
        assert statistic.tilt == pytest.approx(best, rel=1e-5)
        assert statistic.two_sided == two_sided

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"share_above": 0.0}, "share_above"),
            ({"share_above": 1.0}, "share_above"),
            ({"released": 0}, "size"),
            ({"alpha": 0.0}, "alpha"),
            ({"value_mu": 0.0}, "value_mu"),
            ({"reference": survival([(0.5, False)] * 5)}, "reference"),
        ],
    )
    def test_plans_out_of_range_are_refused_by_name(self, change: dict[str, object], named: str) -> None:
        plan = {"reference": survival(list(RECORDS)), "share_above": 0.5, "features": 9, "released": 1, "alpha": 0.05}
        with pytest.raises(ValueError, match=named):
            LogRank.designed(9, (1.0,), (0.4,), 0.5, 0.0, **{**plan, "value_mu": 1.0, **change})


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"size": 1}, "size"),
            ({"tilt": 0.0}, "tilt"),
            ({"tilt": math.nan}, "tilt"),
            ({"clip": 0.0}, "clip"),
            ({"clip": math.inf}, "clip"),
            ({"cut": math.nan}, "cut"),
            ({"times": ()}, "times"),
            ({"times": (1.0,)}, "times"),
            ({"times": (1.0, 1.0)}, "times"),
            ({"times": (-1.0, 1.0)}, "times"),
            ({"times": (1.0, math.inf)}, "times"),
            ({"cumulative_hazard": (0.5, 0.4)}, "cumulative_hazard"),
            ({"cumulative_hazard": (-0.5, 0.4)}, "cumulative_hazard"),
            ({"cumulative_hazard": (0.5, math.nan)}, "cumulative_hazard"),
        ],
    )
    def test_constants_out_of_range_are_refused_by_name(self, change: dict[str, object], named: str) -> None:
        constants = {
            "size": 9,
            "times": (1.0, 2.0),
            "cumulative_hazard": (0.1, 0.2),
            "clip": 1.0,
            "cut": 0.0,
            "tilt": 0.5,
        }
        with pytest.raises(ValueError, match=named):
            LogRank(**{**constants, **change})

    @pytest.mark.parametrize(
        ("time", "event", "named"),
        [
            ([1.0, 2.0], [True], "time and event"),
            ([[1.0]], [[True]], "time and event"),
            ([1.0, math.nan], [True, False], "time holds"),
            ([1.0, -0.1234], [True, False], "time holds"),
            ([1.0, 2.0], [1, 0], "event must"),
        ],
    )
    def test_outcomes_out_of_range_are_refused_and_not_shown(self, time: list, event: list, named: str) -> None:
        with pytest.raises(ValueError, match=named) as refused:
            Survival(np.array(time), np.array(event))
        assert "1234" not in str(refused.value)

    def test_sizes_other_than_registered_are_refused(self) -> None:
        outcome = Survival(np.ones(4), np.ones(4, dtype=bool))
        with pytest.raises(ValueError, match="values must be"):
            log_rank(3, 0.5).log_e(np.zeros((4, 2)), outcome)
        with pytest.raises(ValueError, match="outcome must have"):
            log_rank(3, 0.5).log_e(np.zeros((3, 2)), outcome)
        with pytest.raises(ValueError, match="values holds a NaN"):
            log_rank(4, 0.5).log_e(np.full((4, 2), np.nan), outcome)

    def test_parameters_rebuild_the_statistic(self) -> None:
        """Claim: what the ledger writes down as JSON fixes the statistic."""
        statistic = log_rank(5, 0.5)
        document = json.loads(json.dumps(statistic.parameters))
        assert document == statistic.parameters
        rebuilt = {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
        assert LogRank(**rebuilt) == statistic
