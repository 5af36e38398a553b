"""Power of the bounded survival e-value against lifelines' log-rank test, and what a wrong public hazard costs.

python -m benchmarks.discovery_survival [repetitions]

Exponential survival, hazard ratio 2 between the halves of a feature, uniform censoring, as many events as stated. By
clip C and public hazard (`none` is Λ0 = 0, a count of events):

- kept: the squared signal-to-noise ratio of Σ r over that of unclipped residuals of the true hazard;
- noisy: the same with the noise of μ-GDP, Δ²/μ², in the denominator: what decides power when privacy is dear;
- power at level α, simulated: E at 1/α, and the private E at K/α; the log-rank test by its p-value.

Then seconds for a genome.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass

import numpy as np
from lifelines import NelsonAalenFitter
from lifelines.statistics import logrank_test
from scipy.optimize import brentq

from synth_platform.discovery.canonical import privatise
from synth_platform.discovery.statistics.log_rank import LogRank, Survival
from synth_platform.discovery.threshold import log_calibration_constant
from synth_platform.privacy.noise import SeededNoise

HAZARD_RATIO = 2.0
FOLLOW_UP = 10.0  # years, the longest
GRID = np.linspace(0.1, FOLLOW_UP, 100)
CLIPS = (1.0, 0.5)
REFERENCE = 200  # patients of the public arm
MANY = 200_000


@dataclass(frozen=True)
class Cohort:
    patients: int
    events: int
    alpha: float
    mu: float

    @property
    def rates(self) -> np.ndarray:
        """[2] events per year below and above the cut, so that `events` are expected under uniform censoring."""

        def excess(log_rate: float) -> float:
            rates = math.exp(log_rate) * np.array([1.0, HAZARD_RATIO])
            seen = 1 + np.expm1(-FOLLOW_UP * rates) / (FOLLOW_UP * rates)
            return float(seen.mean()) - self.events / self.patients

        return math.exp(brentq(excess, -12, 3)) * np.array([1.0, HAZARD_RATIO])

    def draw(self, patients: int, rng: np.random.Generator) -> tuple[np.ndarray, Survival]:
        """values [patients, 1] and their outcome."""
        values = rng.normal(size=(patients, 1))
        until_event = rng.exponential(1 / self.rates[(values[:, 0] > 0).astype(int)])
        censored = rng.uniform(0, FOLLOW_UP, patients)
        return values, Survival(np.minimum(until_event, censored), until_event <= censored)

    @property
    def truth(self) -> np.ndarray:
        """The cumulative hazard of all patients on GRID."""
        return -np.log(np.exp(-np.outer(GRID, self.rates)).mean(axis=1))

    def statistics(self, mu: float, clips: tuple[float, ...] = CLIPS) -> dict[tuple[str, float], LogRank]:
        """By name of the public hazard and clip, each with the tilt that a public arm plans."""
        _, arm = self.draw(REFERENCE, np.random.default_rng(20))
        fitted = NelsonAalenFitter().fit(arm.time, arm.event).cumulative_hazard_.iloc[:, 0]
        curves = {
            "true": (GRID, self.truth),
            f"{REFERENCE} patients": (fitted.index.to_numpy(), fitted.to_numpy()),
            "true x 2": (GRID, 2 * self.truth),
            "true / 2": (GRID, self.truth / 2),
        }
        asked = {(name, clip): curve for clip in clips for name, curve in curves.items()}
        asked["none", 1.0] = GRID[:1], np.zeros(1)
        return {
            (name, clip): LogRank.designed(
                self.patients, tuple(times), tuple(hazard), clip, 0.0, reference=arm, share_above=0.5,
                features=1, released=1, alpha=self.alpha, value_mu=mu,
            )
            for (name, clip), (times, hazard) in asked.items()
        }  # fmt: skip


def squared_ratio(cohort: Cohort, statistic: LogRank, mu: float) -> float:
    """(mean of Σ r)² over its variance and that of the noise, for the cohort's size."""
    values, outcome = cohort.draw(MANY, np.random.default_rng(22))
    r, above = statistic.residuals(outcome), values[:, 0] > 0
    pairs = cohort.patients / 4
    return (pairs * (r[above].mean() - r[~above].mean())) ** 2 / (pairs * r.var() + (statistic.width / mu) ** 2)


def power(cohort: Cohort, repetitions: int) -> None:
    rng = np.random.default_rng(21)
    plain, noisy = cohort.statistics(math.inf), cohort.statistics(cohort.mu)
    drawn = [cohort.draw(cohort.patients, rng) for _ in range(repetitions)]
    classical = [
        logrank_test(o.time[above], o.time[~above], o.event[above], o.event[~above]).p_value <= cohort.alpha
        for above, o in ((values[:, 0] > 0, outcome) for values, outcome in drawn)
    ]
    print(f"\n{cohort.patients:,} patients, {cohort.events} events, alpha {cohort.alpha:.2g}, mu {cohort.mu:.3g}")
    if drawn:
        print(f"log-rank (lifelines), not private: power {np.mean(classical):.2f}")
    print(f"{'public hazard':>14} {'clip':>5} {'kept':>6} {'noisy':>6} {'Δ':>6}" + " power  private" * bool(drawn))
    full = squared_ratio(cohort, cohort.statistics(math.inf, clips=(99.0,))["true", 99.0], math.inf)
    for (name, clip), statistic in noisy.items():
        delta = statistic.sensitivity
        kept = squared_ratio(cohort, statistic, math.inf) / full
        kept_noisy = squared_ratio(cohort, statistic, cohort.mu) / full
        line = f"{name:>14} {clip:>5} {kept:>6.2f} {kept_noisy:>6.2f} {delta:>6.2f}"
        if drawn:
            log_e = np.concatenate([plain[name, clip].log_e(*data) for data in drawn])
            private = np.concatenate([statistic.log_e(*data) for data in drawn])
            released = privatise(private, delta, cohort.mu, SeededNoise(7))
            level = log_calibration_constant(delta / cohort.mu) - math.log(cohort.alpha)
            line += f" {np.mean(log_e >= -math.log(cohort.alpha)):>5.2f} {np.mean(released >= level):>8.2f}"
        print(line)


def speed() -> None:
    cohort = Cohort(1_000, 300, 0.05, 1.0)
    rng = np.random.default_rng(23)
    _, outcome = cohort.draw(cohort.patients, rng)
    values = rng.normal(size=(cohort.patients, 20_000))
    statistic = cohort.statistics(1.0)["true", 1.0]
    start = time.process_time()
    statistic.log_e(values, outcome)
    ours = time.process_time() - start
    start = time.process_time()
    for above in (values[:, :50] > 0).T:
        logrank_test(outcome.time[above], outcome.time[~above], outcome.event[above], outcome.event[~above])
    theirs = (time.process_time() - start) / 50 * 20_000
    print(f"\n20,000 features of 1,000 patients: {ours:.2f} s; lifelines {theirs:.0f} s, {theirs / ours:,.0f} x")


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 160
    power(Cohort(537, 73, 0.05, 1.0), repetitions)  # one hypothesis
    # One of 40 values released out of 20,000, at FDR .05, when values have half of μ² = 1.
    power(Cohort(2_000, 600, 0.05 * 40 / 20_000, math.sqrt(0.5 / 40)), repetitions // 4)
    power(Cohort(2_000, 1_400, 0.05 * 40 / 20_000, math.sqrt(0.5 / 40)), 0)
    speed()


if __name__ == "__main__":
    main()
