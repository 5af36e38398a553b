"""Options of generators and gates as a cohort registers them: public constants, all of them."""

from __future__ import annotations

import math
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

Share = Annotated[float, Field(gt=0, lt=1)]
Shares = TypeVar("Shares", bound=tuple[float, ...])
AttackCode = Literal["A1", "A2", "A3"]


def _whole(shares: Shares) -> Shares:
    if not math.isclose(sum(shares), 1.0, abs_tol=1e-9):
        raise ValueError(f"the shares add up to {sum(shares):.6g}; they must add up to 1")
    return shares


def _ascending(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError("the lower bound is above the upper one")
    return bounds


class Strict(BaseModel):
    """Base of every section: unknown keys are errors, values do not change after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class G0Options(Strict):
    """8-1 §2.2: latent size k, clip R, shares of rho, eigenvalue bounds and the floor of a usable noisy count."""

    latent: PositiveInt = 6
    clip: PositiveFloat = 4.5
    shares: Annotated[tuple[Share, Share, Share], AfterValidator(_whole)] = (0.2, 0.4, 0.4)
    eigenvalue_bounds: Annotated[tuple[PositiveFloat, PositiveFloat], AfterValidator(_ascending)] = (0.05, 4.0)
    count_floor: PositiveFloat = 4.0


class G0AOptions(Strict):
    """The anchored generator, docs/generators.md. All are public constants, chosen on public rows and n_ref.

    mean_directions:   principal directions in which the class means follow the private rows.
    hazard_directions: principal directions in which the log hazard does.
    moment_directions: directions of the second moment; 0 keeps the public covariance within classes.
    clip_quantile:     clip norms are this quantile of the public norms.
    shares:            shares of mu^2 of counts, means, hazard and moment; without a moment its share is shared out.
    smoothing:         share of the residual variance that a synthetic row takes from a second public donor.
    """

    mean_directions: PositiveInt = 30
    hazard_directions: PositiveInt = 30
    moment_directions: Annotated[int, Field(ge=0)] = 4
    clip_quantile: Share = 0.5
    shares: Annotated[tuple[Share, Share, Share, Share], AfterValidator(_whole)] = (0.05, 0.65, 0.2, 0.1)
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.05


def _each_once(attacks: tuple[AttackCode, ...]) -> tuple[AttackCode, ...]:
    if not attacks or len(set(attacks)) != len(attacks):
        raise ValueError("attacks: at least one, and each once")
    return attacks


class GateOptions(Strict):
    """Frozen tolerances and designs of the gates (8-1 §3.3, §3.4). All are fixed before a synthetic table is seen.

    membership_limit:  an AUROC, of which 1/2 is chance.
    attacks:           the membership attacks; their number is the Bonferroni count.
    power_floor:       a gate that a fresh draw of the truth passes less often than this says so.
    power_draws:       fresh draws by which the power of the gates is measured.
    membership_design: `direct` attacks the released table; `half_split` judges by `repetitions` audit trainings on
                       random halves as well, for cohorts with too few rows to confirm anything directly.
    utility_design:    `holdout` judges on the test split, `cross_fit` on every private row by `folds` of whole batches.
    """

    train_closer_tolerance: PositiveFloat = 0.115
    excess_tolerance: PositiveFloat = 0.035
    membership_limit: Annotated[float, Field(ge=0.501, lt=1)] = 0.55
    attacks: Annotated[tuple[AttackCode, ...], AfterValidator(_each_once)] = ("A1", "A2", "A3")
    neighbours: PositiveInt = 5
    groups: PositiveInt = 20
    power_floor: Share = 0.8
    power_draws: Annotated[int, Field(ge=8)] = 32
    membership_design: Literal["direct", "half_split"] = "direct"
    repetitions: Annotated[int, Field(ge=8)] = 32
    utility_design: Literal["holdout", "cross_fit"] = "holdout"
    folds: Annotated[int, Field(ge=2)] = 5
