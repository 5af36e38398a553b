"""G0A, the anchored generator: public rows moved by what a few noisy statistics say about the private ones.

Each statistic is centred and scaled by public constants, each estimate is shrunk towards its public value with its
known noise variance, and each synthetic row starts from a public donor. docs/generators.md has reasons and figures.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synth_platform.contract.options import G0AOptions
from synth_platform.generators.g0a.anchor import DECIMALS, Anchor, fit_anchor
from synth_platform.generators.g0a.codes import clinical_layout, fit_codes
from synth_platform.generators.g0a.hazard import fit_hazard
from synth_platform.generators.g0a.model import Noisy, Prevalence, fit_means, fit_moment, fit_prevalence
from synth_platform.generators.g0a.statistics import (
    CountContribution,
    HazardContribution,
    MeanContribution,
    MomentContribution,
)
from synth_platform.generators.paid import require_paid, require_target
from synth_platform.generators.protocol import Ask, GeneratorState, PrivacyTarget
from synth_platform.normalize.reference import PublicReference, public_batch_map
from synth_platform.normalize.rows import EncodedRows, FloatArray
from synth_platform.privacy.accounting import gaussian_mu, sigma_from_mu, split_mu
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease
from synth_platform.privacy.within_row import within_row

CODE = "G0A"
NAMES = ("counts", "means", "hazard", "moment")
Contribution = CountContribution | MeanContribution | HazardContribution | MomentContribution


@dataclass(frozen=True)
class G0A:
    """Made from public things only; private rows are reached through `measure(ask)` and nothing else.

    Raises ValueError when delta is not below 1 / n_ref, or the shares do not add up to 1.
    """

    reference: PublicReference
    options: G0AOptions
    target: PrivacyTarget
    code: str = CODE

    def __post_init__(self) -> None:
        require_target(self.target, n_ref=self.reference.n_ref, shares=self.options.shares, option="g0a.shares")

    @cached_property
    def anchor(self) -> Anchor:
        """The public constants."""
        return fit_anchor(self.reference.rows, len(self.reference.labels), self.options)

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the statistics asked for, in order."""
        return NAMES if self.options.moment_directions else NAMES[:-1]

    def queries(self) -> tuple[StatisticQuery[EncodedRows], ...]:
        """The statistics that need nothing private to be asked for: counts, means and hazard scores."""
        K = self.anchor.classes
        return (
            self._query("counts", CountContribution(self.anchor), K),
            self._query("means", MeanContribution(self.anchor), K * self.anchor.mean.project.shape[1]),
            self._query("hazard", HazardContribution(self.anchor), len(self.anchor.cox.beta) + 2),
        )

    def measure(self, ask: Ask) -> tuple[StatisticRelease, ...]:
        """Ask for every statistic; the moment comes last, around the class means that the first answers give.

        The sigmas are fixed beforehand and each mechanism is mu_i-GDP whatever came before it, so the composition is
        sqrt(sum mu_i^2)-GDP although the last query depends on earlier answers (Dong, Roth, Su 2022, Theorem 4).
        """
        releases = tuple(ask(query) for query in self.queries())
        if self.anchor.moment is None:
            return releases
        means, _, _ = self._means(releases)
        return (*releases, ask(self._moment_query(self.anchor.means + means)))

    def fit(self, releases: tuple[StatisticRelease, ...]) -> GeneratorState:
        """Post-process the noisy statistics.

        Raises ForeignStatisticError unless `releases` are the paid-for answers to this generator's queries, in order.
        """
        queries = self.queries()
        if self.anchor.moment is not None:
            queries = (*queries, self._moment_query(self.anchor.means))
        require_paid(CODE, releases, queries)
        anchor = self.anchor
        means, prevalence, means_null = self._means(releases)
        null = {"counts": prevalence.null, "means": means_null}
        hazard = fit_hazard(
            anchor,
            _noisy(releases[2]),
            float(prevalence.counts.sum()),
            share=prevalence.share,
            means=means,
        )
        null["hazard"] = hazard.null
        p = len(anchor.centre)
        project, restore, change = np.zeros((p, 1)), np.zeros((1, p)), np.zeros((1, 1))
        if anchor.moment is not None:
            root, null["moment"] = fit_moment(anchor, _noisy(releases[3]), prevalence.counts)
            project, restore, change = anchor.moment.project, anchor.moment.restore, root - np.eye(len(root))
        layout = clinical_layout(self.reference.encoder)
        codes, offset = fit_codes(layout, anchor.rows.x, anchor.rows.label, means=anchor.means, shift=means)
        return GeneratorState(
            generator=CODE,
            arrays={
                "donor.x": anchor.rows.x,
                "donor.label": anchor.rows.label,
                "donor.event": anchor.rows.event,
                "donor.time": anchor.rows.time,
                "share": prevalence.share,
                "means": anchor.means,
                "offset": offset,
                "moment.project": project,
                "moment.restore": restore,
                "moment.change": change,
                "centre": anchor.centre,
                "hazard.project": anchor.hazard.project,
                "beta": anchor.cox.beta,
                "beta_shift": hazard.beta,
                "survival": np.array([anchor.longest, hazard.level, hazard.censoring]),
                "baseline.times": anchor.baseline.times,
                "baseline.values": anchor.baseline.values,
                "censoring.times": anchor.censoring.times,
                "censoring.values": anchor.censoring.values,
            }
            | codes,
            document={
                "features": list(self.reference.rows.features),
                "labels": list(self.reference.labels),
                "epsilon": self.target.epsilon,
                "delta": self.target.delta,
                "anchor": anchor.digest(),
                "smoothing": self.options.smoothing,
                "options": self.options.model_dump(mode="json"),
                "null_weights": null,
                "clinical": {
                    "coded": [[list(coded.columns), coded.indicator] for coded in layout.coded],
                    "nullable": [list(pair) for pair in layout.nullable],
                },
            },
            entries=tuple(release.entry_id for release in releases),
            seeded=any(release.source == "seeded" for release in releases),
        )

    def _means(self, releases: tuple[StatisticRelease, ...]) -> tuple[FloatArray, Prevalence, float]:
        """Shift of class means [K, p] (a constant of the moment query, hence rounded), class shares, null weight."""
        prevalence = fit_prevalence(self.anchor, _noisy(releases[0]), self.reference.n_ref)
        means, null = fit_means(self.anchor, _noisy(releases[1]), prevalence.counts)
        return means.round(DECIMALS), prevalence, null

    def _query(
        self, name: str, contribution: Contribution, dimension: int, **constants: object
    ) -> StatisticQuery[EncodedRows]:
        mu = gaussian_mu(self.target.epsilon, self.target.delta)
        shares = self.options.shares[: len(self.statistics)]
        parts = split_mu(mu, [share / math.fsum(shares) for share in shares])
        return StatisticQuery(
            code=f"{CODE}_{name.upper()}",
            contribution=within_row(f"generators.g0a.{name}", self._corrected(contribution)),
            dimension=dimension,
            sensitivity=contribution.sensitivity,
            sigma=sigma_from_mu(parts[self.statistics.index(name)], contribution.sensitivity),
            parameters={"anchor": self.anchor.digest(), "labels": list(self.reference.labels), **constants},
        )

    def _moment_query(self, means: FloatArray) -> StatisticQuery[EncodedRows]:
        assert self.anchor.moment is not None
        k = self.anchor.moment.project.shape[1]
        digest = hashlib.sha256((means + 0.0).astype("<f8").tobytes()).hexdigest()
        return self._query("moment", MomentContribution(self.anchor, means), k * (k + 1) // 2, centre=digest)

    def _corrected(self, contribution: Contribution) -> Callable[[EncodedRows], FloatArray]:
        """The contribution of a row after the public batch correction, itself within-row."""
        correct = public_batch_map(self.reference)
        return lambda rows: contribution(correct(rows))


def _noisy(release: StatisticRelease) -> Noisy:
    return Noisy(release.values, release.sigma)
