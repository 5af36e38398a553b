"""Does a logistic regression say the same of real and of synthetic rows? Coefficients, intervals and their overlap.

Overlap of two 95 % intervals [l, u] (Karr et al. 2006, Am. Stat. 60), negative when they are apart:

    ½ [(min u − max l) / (u_o − l_o) + (min u − max l) / (u_s − l_s)]

Rows of a perfect fit, as many as the real ones, have coefficients β_s ~ N(β_o, se²) around the real estimates. The
intervals are then equally wide, w = 2 · 1.96 se, and overlap by 1 − |β_s − β_o| / w, on average 1 − √(2/π) / 3.92 =
.796. Another sample of the population has twice the variance and overlaps by .712. z = (β_s − β_o) / se_s, mean |z|
of a perfect fit √(2/π) = .798.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from synth_platform.margins.measures.compared import Compared
from synth_platform.margins.measures.logistic import LogisticFit, fit_logistic, independent_columns, indicators
from synth_platform.margins.rows import Rows

QUANTILE = float(ndtri(0.975))
LARGEST_ERROR = 10.0  # of a log odds; an infinite coefficient that stopped growing has a larger one


@dataclass(frozen=True)
class LogisticModel:
    """Log odds of `category` of `target` by main effects of the predictors' categories."""

    target: str
    category: str
    predictors: tuple[str, ...]

    @property
    def title(self) -> str:
        """The model as people read it: sex = female ~ age + region."""
        return f"{self.target} = {self.category} ~ {' + '.join(self.predictors)}"


@dataclass(frozen=True)
class Coefficient:
    """One term's log odds in both tables, with standard errors. term: "(Intercept)" or "age = 65+"."""

    term: str
    real: float
    real_error: float
    synthetic: float
    synthetic_error: float

    @property
    def sign_kept(self) -> bool:
        """Whether both say up or both say down."""
        return (self.real > 0) == (self.synthetic > 0)

    @property
    def z(self) -> float:
        """Difference in standard errors of the synthetic coefficient."""
        return (self.synthetic - self.real) / self.synthetic_error

    @property
    def overlap(self) -> float:
        """Overlap of the 95 % intervals, at most 1, negative for intervals that are apart."""
        shared = min(self.real + QUANTILE * self.real_error, self.synthetic + QUANTILE * self.synthetic_error) - max(
            self.real - QUANTILE * self.real_error, self.synthetic - QUANTILE * self.synthetic_error
        )
        return shared / (4 * QUANTILE) * (1 / self.real_error + 1 / self.synthetic_error)


@dataclass(frozen=True)
class ModelUtility:
    """A model fitted on both tables.

    reference: category of each predictor that the others are compared with. left_out: terms without a finite
    coefficient in one of the tables, since no row, or rows of one outcome only, have the category there, and terms
    that earlier ones determine in one of the tables, which are in neither model.
    """

    model: LogisticModel
    reference: tuple[str, ...]
    coefficients: tuple[Coefficient, ...]
    left_out: tuple[str, ...]

    @property
    def mean_overlap(self) -> float:
        """Mean interval overlap of the terms, intercept included; .796 for a perfect fit of as many rows."""
        return float(np.mean([one.overlap for one in self.coefficients]))

    @property
    def mean_absolute_z(self) -> float:
        """Mean |z| of the terms; .798 for a perfect fit."""
        return float(np.mean([abs(one.z) for one in self.coefficients]))

    @property
    def signs_kept(self) -> float:
        """Share of the terms whose sign both tables agree on."""
        return float(np.mean([one.sign_kept for one in self.coefficients]))


def model_utility(real: Rows, synthetic: Rows, model: LogisticModel) -> ModelUtility:
    """Fit the model on both tables and compare.

    The reference category of a predictor is the one whose rarer outcome is most frequent in the table where it is
    rarest. Raises ValueError for an unknown variable or category, no predictors, a target among them, a predictor
    without a category that has both outcomes in both tables, predictors that determine the target, and as
    `Compared` does.
    """
    Compared(real, synthetic)
    domain = real.domain
    (target,), predictors = domain.axes((model.target,)), domain.axes(model.predictors)
    if not predictors or target in predictors or len(set(predictors)) < len(predictors):
        raise ValueError(f"model {model.title}: it needs predictors, each of them once and not the target")
    if model.category not in domain.variables[target].categories:
        raise ValueError(f"model {model.title}: {model.target} has no such category")
    label = domain.variables[target].categories.index(model.category)
    widths = tuple(domain.shape[axis] for axis in predictors)

    orders, references, comparable = [], [], [np.ones(1, dtype=bool)]
    for name, axis in zip(model.predictors, predictors, strict=True):
        rarest = np.min([_rarer_outcome(rows, axis, target, label) for rows in (real, synthetic)], axis=0)
        reference = int(rarest.argmax())
        if not rarest[reference]:
            raise ValueError(
                f"model {model.title}: no category of {name} has both outcomes in both tables: band or group it"
            )
        others = np.delete(np.arange(domain.shape[axis]), reference)
        order = np.empty(domain.shape[axis], dtype=np.int64)
        order[np.concatenate([[reference], others])] = np.arange(domain.shape[axis])
        orders.append(order)
        references.append(reference)
        comparable.append(rarest[others] > 0)
    compared = np.concatenate(comparable)

    designs = [
        indicators(
            np.column_stack([order[rows.codes[:, axis]] for order, axis in zip(orders, predictors, strict=True)]),
            widths,
        )
        for rows in (real, synthetic)
    ]
    present = [np.asarray(design.sum(axis=0)) > 0 for design in designs]
    determined = np.zeros(len(compared), dtype=bool)
    for design, own in zip(designs, present, strict=True):
        candidates = np.flatnonzero(own & ~determined)
        determined[np.delete(candidates, independent_columns(design[:, candidates]))] = True
    compared &= ~determined
    estimates = []
    for rows, design, own in zip((real, synthetic), designs, present, strict=True):
        columns = np.flatnonzero(own & ~determined)
        fit = fit_logistic(design[:, columns], rows.codes[:, target] == label)
        estimates.append(_estimates(fit, compared[columns], model))
    terms = ["(Intercept)"]
    for axis, reference in zip(predictors, references, strict=True):
        variable = domain.variables[axis]
        terms += [f"{variable.name} = {one}" for code, one in enumerate(variable.categories) if code != reference]
    (real_values, real_errors), (values, errors) = estimates
    kept = [term for term, both in zip(terms, compared, strict=True) if both]
    return ModelUtility(
        model,
        tuple(domain.variables[axis].categories[one] for axis, one in zip(predictors, references, strict=True)),
        tuple(map(Coefficient, kept, real_values, real_errors, values, errors)),
        tuple(term for term, both in zip(terms, compared, strict=True) if not both),
    )


def _rarer_outcome(rows: Rows, axis: int, target: int, label: int) -> NDArray[np.int64]:
    """Rows of the rarer outcome in each category of a predictor."""
    outcome = (rows.codes[:, target] == label).astype(np.int64)
    width = rows.domain.shape[axis]
    counts: NDArray[np.int64] = np.bincount(2 * rows.codes[:, axis] + outcome, minlength=2 * width)
    return np.minimum(counts[::2], counts[1::2])


def _estimates(fit: LogisticFit, chosen: NDArray[np.bool_], model: LogisticModel) -> tuple[list[float], list[float]]:
    """Coefficients and standard errors of the compared columns."""
    errors = fit.standard_errors[chosen]
    if (errors > LARGEST_ERROR).any():
        raise ValueError(f"model {model.title}: predictors determine the target: leave one out or group categories")
    return fit.coefficients[chosen].tolist(), errors.tolist()
