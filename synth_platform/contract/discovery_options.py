"""Private discoveries as they are registered: contrasts, what they may cost, and how plans of them are named.

Everything here is a public constant, group sizes included: how many patients stand on each side of a contrast is told
to whoever reads a release, and the privacy of an e-value is that of one record replaced within its group.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PositiveInt, field_validator, model_validator

from synth_platform.contract.cohort_sections import Budget, MatrixName
from synth_platform.contract.options import Share, Strict


def _as_text(values: object) -> object:
    return tuple(str(value) for value in values) if isinstance(values, (list, tuple)) else values


Values = Annotated[tuple[str, ...], BeforeValidator(_as_text)]  # a value of 1 is "1", as tables have it
Size = int | Literal["adaptive"]
ContrastName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]

LARGEST_MU = 60.0
"""Of a list; a greater one promises nothing."""

EXPECTED = 20
"""How many discoveries adaptive e-values are made for, unless a cohort registers another number."""

_KEY = re.compile(r"([a-z][a-z0-9_]*)-mu(\d+(?:\.\d+)?)-alpha(0\.\d+)(?:-top([1-9]\d*)|-for([1-9]\d*))?")


class Terms(Strict):
    """What one contrast costs and how often it may be wrong, unless it is asked for otherwise.

    mu:       composed over the choice of size, the selection and the values; at most 60.
    alpha:    the false discovery rate.
    size:     how many hypotheses are selected; `adaptive` spends part of mu² on choosing it.
    expected: how many discoveries the e-values are made for where the size is adaptive; they find more or fewer too.
              Those of a fixed size are made for that size, and this is not looked at.
    """

    mu: Annotated[float, Field(gt=0, le=LARGEST_MU)] = 1.0
    alpha: Share = 0.05
    size: PositiveInt | Literal["adaptive"] = "adaptive"
    expected: PositiveInt = EXPECTED

    @field_validator("mu", "alpha")
    @classmethod
    def _can_be_named(cls, figure: float) -> float:
        if not math.isfinite(figure) or round(figure, 6) != figure:
            raise ValueError("finite, and at most six decimals: plans are named by it")
        return figure


class Contrast(Strict):
    """Which patients are compared, feature by feature.

    variable:  a registered clinical variable: categorical, ordinal, binary or event for two groups; the survival time
               for `log_rank`, with the event of `outcome` beside it.
    case:      values that make a case; a binary variable's are "0" and "1". Empty for `log_rank`.
    control:   values that make a control; by default every other one. A missing value is neither.
    sizes:     private rows that are cases and controls; for `log_rank`, the number of private rows alone.
    features:  the matrices whose features are the family of hypotheses.
    statistic: `mann_whitney` for two groups, `log_rank` for survival.
    """

    variable: str
    case: Values = ()
    control: Values = ()
    sizes: tuple[PositiveInt, ...]
    features: Annotated[tuple[MatrixName, ...], Field(min_length=1)]
    statistic: Literal["mann_whitney", "log_rank"] = "mann_whitney"
    description: str = ""

    @model_validator(mode="after")
    def _fits_its_statistic(self) -> Contrast:
        if len(set(self.features)) != len(self.features):
            raise ValueError("features: a matrix appears twice")
        if self.statistic == "log_rank":
            if self.case or self.control:
                raise ValueError("case, control: a log_rank contrast compares a feature's two sides; leave both out")
            if len(self.sizes) != 1 or self.sizes[0] < 2:
                raise ValueError("sizes: a log_rank contrast has one, the number of private rows, at least 2")
            return self
        if not self.case:
            raise ValueError("case: needs at least one value of the variable")
        if set(self.case) & set(self.control):
            raise ValueError("case, control: a value stands on both sides")
        if len({*self.case, *self.control}) != len(self.case) + len(self.control):
            raise ValueError("case, control: a value appears twice")
        if len(self.sizes) != 2:
            raise ValueError("sizes: write [cases, controls], the public numbers of private rows on either side")
        return self


class Discovery(Terms):
    """The contrasts of a cohort, by name, and their terms."""

    contrasts: Annotated[dict[ContrastName, Contrast], Field(min_length=1)]


@dataclass(frozen=True)
class DiscoveryPlan:
    """One request for discoveries: a contrast with its terms. Where the size is fixed, `expected` is that size."""

    contrast: str
    mu: float
    alpha: float
    size: Size
    expected: int = EXPECTED

    def __post_init__(self) -> None:
        if self.size != "adaptive":
            object.__setattr__(self, "expected", self.size)

    @property
    def key(self) -> str:
        """The one name of this plan, which says all of it.

        `basal-mu1-alpha0.05`, with `-for40` where adaptive e-values are made for another number of discoveries than
        `EXPECTED`, and with `-top40` where the size is fixed.
        """
        end = f"-top{self.size}" if self.size != "adaptive" else ""
        if self.size == "adaptive" and self.expected != EXPECTED:
            end = f"-for{self.expected}"
        return f"{self.contrast}-mu{figure(self.mu)}-alpha{figure(self.alpha)}{end}"


def plan_on(terms: Terms, contrast: str) -> DiscoveryPlan:
    """The plan of a contrast on its registered terms."""
    return DiscoveryPlan(contrast, terms.mu, terms.alpha, terms.size, terms.expected)


def plan_of_key(contrasts: Collection[str], key: str) -> DiscoveryPlan:
    """The plan that `key` names. Raises ValueError where it is not the one name of a plan of these contrasts."""
    match = _KEY.fullmatch(key)
    if match is None or match[1] not in contrasts:
        raise ValueError(
            f"no discovery plan is called {key!r}; contrasts are {', '.join(contrasts)}, and a plan is named "
            f"CONTRAST-mu<number>-alpha<number>, with -top<size> where the size is fixed, or -for<number> where an "
            f"adaptive one is made for another number of discoveries than {EXPECTED}"
        )
    size: Size = "adaptive" if match[4] is None else int(match[4])
    plan = DiscoveryPlan(match[1], float(match[2]), float(match[3]), size, int(match[5] or EXPECTED))
    if plan.key != key or not (0 < plan.mu <= LARGEST_MU and plan.alpha > 0):
        raise ValueError(
            f"discovery plan {key!r} is called {plan.key!r}: mu and alpha above 0, at most six decimals, mu at most "
            f"{LARGEST_MU:g}"
        )
    return plan


def impossible(plan: DiscoveryPlan, hypotheses: int | None, budget: Budget) -> dict[str, str]:
    """Why no list can ever be made on these terms: by term (`mu`, `size`) what is wrong and what to do, else nothing.

    A list of cost mu alone is epsilon = mu²/2 + mu√(2 ln(1/delta)) (8-1 §2.1, rho = mu²/2), which the cap of the domain
    has to hold. hypotheses: how many its contrast has; None where that is not known yet.
    """
    wrong = {}
    root = math.sqrt(2 * math.log(1 / budget.delta))
    epsilon = plan.mu**2 / 2 + plan.mu * root
    if epsilon > budget.epsilon * (1 + 1e-9):
        affordable = 2 * budget.epsilon / (root + math.sqrt(root**2 + 2 * budget.epsilon))
        wrong["mu"] = (
            f"a list at mu = {plan.mu:g} costs epsilon = {epsilon:.4g} at delta = {budget.delta:g} (8-1 §2.1), above "
            f"privacy.budget.epsilon = {budget.epsilon:g}: it could never be paid; mu may be at most "
            f"{figure(math.floor(affordable * 1e6) / 1e6)}"
        )
    if hypotheses is not None and plan.size != "adaptive" and plan.size > hypotheses:
        wrong["size"] = f"{plan.size} of the {hypotheses} hypotheses of {plan.contrast!r} cannot be selected; use fewer"
    return wrong


def require_contrasts(
    discovery: Discovery, variables: Mapping[str, tuple[str, tuple[str, ...]]], matrices: Sequence[str], time: str
) -> None:
    """Hold contrasts to the cohort: `variables` by name (kind, categories), its matrices, its survival time.

    Raises ValueError naming the field that does not fit.
    """
    for name, contrast in discovery.contrasts.items():
        where, variable = f"discovery.contrasts.{name}", contrast.variable
        survival = contrast.statistic == "log_rank"
        kinds = ("survival_time",) if survival else ("categorical", "ordinal", "binary", "event")
        kind, categories = variables.get(variable, (None, ()))
        if kind not in kinds:
            raise ValueError(f"{where}.variable: {variable!r} must be a clinical variable of kind {' or '.join(kinds)}")
        if survival and variable != time:
            raise ValueError(f"{where}.variable: log_rank needs the outcome's survival time, {time!r}")
        values = set(categories or ("0", "1"))
        unknown = sorted({*contrast.case, *contrast.control} - values)
        if unknown:
            raise ValueError(f"{where}: {', '.join(map(repr, unknown))} are not values of {variable!r}")
        if set(contrast.case) == values:
            raise ValueError(f"{where}.case: every value of {variable!r} is a case, nothing is left to compare with")
        absent = [matrix for matrix in contrast.features if matrix not in matrices]
        if absent:
            raise ValueError(f"{where}.features: the cohort has no {absent[0]}")


def figure(value: float) -> str:
    """A number as the keys of plans write it: at most six decimals, no nought at the end."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
