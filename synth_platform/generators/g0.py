"""G0, the reference generator of 8-1 §2.2: a conditional factor Gaussian whose accounting closes in one formula."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from synth_platform.contract.options import G0Options
from synth_platform.generators.basis import PublicBasis, fit_basis
from synth_platform.generators.cells import Cells, CountContribution, MomentContribution, SumContribution
from synth_platform.generators.paid import require_paid, require_target
from synth_platform.generators.postprocess import LatentModel, fit_latent_model
from synth_platform.generators.protocol import Ask, GeneratorState, PrivacyTarget
from synth_platform.generators.synthetic import feature_names, synthetic_rows
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.accounting import rho_from_epsilon, sigma_from_rho
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease
from synth_platform.privacy.within_row import within_row

CODE = "G0"
CODES = ("G0_COUNTS", "G0_SUMS", "G0_MOMENT")
# exp() of anything inside stays finite and positive, however noisy the model is.
LOG_TIME_LIMIT = 700.0


@dataclass(frozen=True)
class G0:
    """Made from public things only; private rows are reached through `measure(ask)` and nothing else.

    Raises ValueError when the shares do not add up to 1, when delta is not below 1 / n_ref, or when the public rows
    do not span the latent directions asked for.
    """

    reference: PublicReference
    options: G0Options
    target: PrivacyTarget
    code: ClassVar[str] = CODE

    def __post_init__(self) -> None:
        require_target(self.target, n_ref=self.reference.n_ref, shares=self.options.shares, option="g0.shares")

    @cached_property
    def basis(self) -> PublicBasis:
        """The public latent basis."""
        return fit_basis(self.reference.rows, self.options.latent)

    @cached_property
    def cells(self) -> Cells:
        """The public conditioning cells."""
        return Cells(
            labels=tuple(self.reference.labels),
            batches=tuple(self.reference.batches),
            latent_batches=tuple(self.reference.latent_batches),
        )

    def queries(self) -> tuple[StatisticQuery[EncodedRows], ...]:
        """Counts, sums and moment with sensitivities 1, R, R^2 and sigma = sensitivity / sqrt(2 rho_share)."""
        basis, cells, clip = self.basis, self.cells, self.options.clip
        counted: dict[str, object] = {
            "labels": list(cells.labels),
            "batches": list(cells.batches),
            "groups": list(cells.groups),
        }
        projected = counted | {"basis": basis.digest(), "latent": self.options.latent, "clip": clip}
        rho = rho_from_epsilon(self.target.epsilon, self.target.delta)
        of_counts, of_sums, of_moment = (share * rho for share in self.options.shares)
        return (
            StatisticQuery(
                code="G0_COUNTS",
                contribution=within_row("generators.g0.counts", CountContribution(cells)),
                dimension=cells.size,
                sensitivity=1.0,
                sigma=sigma_from_rho(of_counts, 1.0),
                parameters=counted,
            ),
            StatisticQuery(
                code="G0_SUMS",
                contribution=within_row("generators.g0.sums", SumContribution(cells, basis, clip)),
                dimension=cells.size * basis.size,
                sensitivity=clip,
                sigma=sigma_from_rho(of_sums, clip),
                parameters=projected,
            ),
            StatisticQuery(
                code="G0_MOMENT",
                contribution=within_row("generators.g0.moment", MomentContribution(cells, basis, clip)),
                dimension=basis.size * (basis.size + 1) // 2,
                sensitivity=clip**2,
                sigma=sigma_from_rho(of_moment, clip**2),
                parameters=projected,
            ),
        )

    def measure(self, ask: Ask) -> tuple[StatisticRelease, ...]:
        """Ask for the three statistics; each call of `ask` is one ledger entry."""
        return tuple(ask(query) for query in self.queries())

    def fit(self, releases: tuple[StatisticRelease, ...]) -> GeneratorState:
        """Post-process the three noisy statistics.

        Raises ForeignStatisticError unless `releases` are the paid-for answers to `queries()`, in that order.
        """
        require_paid(CODE, releases, self.queries())
        counts, sums, moment = (release.values for release in releases)
        shape = (self.cells.count, len(self.cells.groups))
        model = fit_latent_model(
            counts.reshape(shape),
            sums.reshape(*shape, self.basis.size),
            moment,
            eigenvalue_bounds=self.options.eigenvalue_bounds,
            count_floor=self.options.count_floor,
        )
        return self._state(model, releases)

    def _state(self, model: LatentModel, releases: tuple[StatisticRelease, ...]) -> GeneratorState:
        cells, basis, options = self.cells, self.basis, self.options
        left_out = [
            f"{label}, event {event}"
            for c, (label, event) in enumerate((label, event) for label in cells.labels for event in (0, 1))
            if not model.fallback and not model.usable[c].any()
        ]
        return GeneratorState(
            generator=CODE,
            arrays={
                "mean": basis.mean,
                "directions": basis.directions,
                "eigenvalues": basis.eigenvalues,
                "residual_sd": basis.residual_sd,
                "log_time": np.array([basis.log_time_mean, basis.log_time_sd]),
                "cell_means": model.means,
                "batch_effects": model.effects,
                "covariance": model.covariance,
                "cell_weights": model.weights,
            },
            document={
                "features": list(self.reference.rows.features),
                "labels": list(cells.labels),
                "groups": list(cells.groups),
                "epsilon": self.target.epsilon,
                "delta": self.target.delta,
                "latent": options.latent,
                "clip": options.clip,
                "shares": list(options.shares),
                "eigenvalue_bounds": list(options.eigenvalue_bounds),
                "count_floor": options.count_floor,
                "basis": basis.digest(),
                "public_prior": model.fallback,
                "cells_below_floor": left_out,
            },
            entries=tuple(release.entry_id for release in releases),
            seeded=any(release.source == "seeded" for release in releases),
        )


def sample(state: GeneratorState, *, rows: int, seed: int) -> EncodedRows:
    """`rows` synthetic rows at the reference condition gamma = 0 (8-1 §2.2).

    c ~ noisy counts, z ~ N(mu_c, Sigma), x = m + W Lambda^(1/2) z_(1:k) + d * xi, t = exp(s z_(k+1) + m_t).
    """
    a = state.arrays
    rng = np.random.default_rng(seed)
    d = a["covariance"].shape[0]
    cell = rng.choice(len(a["cell_weights"]), size=rows, p=a["cell_weights"])
    z = a["cell_means"][cell] + rng.standard_normal((rows, d)) @ np.linalg.cholesky(a["covariance"]).T
    shared = (z[:, :-1] * np.sqrt(a["eigenvalues"])) @ a["directions"].T
    x = a["mean"] + shared + a["residual_sd"] * rng.standard_normal((rows, len(a["mean"])))
    log_time_mean, log_time_sd = a["log_time"]
    log_time = log_time_sd * z[:, -1] + log_time_mean
    return synthetic_rows(
        feature_names(state),
        x=x,
        label=cell // 2,
        event=cell % 2,
        time=np.exp(np.clip(log_time, -LOG_TIME_LIMIT, LOG_TIME_LIMIT)),
    )
