"""How well real and synthetic rows can be told apart: pMSE over its mean under the null, of two propensity models.

With p̂ the modelled probability that a row is synthetic, pMSE = Σ (p̂ − c)² / N (Snoke et al. 2018, JRSS A 181).
The null is that of `compared`.

Logistic, main effects, k = rank of the design with its intercept: with independent labels N pMSE / (c (1 − c)) is a
score statistic of k − 1 degrees of freedom, whose mean is k − 1. The score is the difference of the two tables' sums;
with the real rows held fixed its variance is 1 − c of that, hence E pMSE = (k − 1) (1 − c)² c / N.

CART has no such closed form. Permuted labels keep both tables random, so the mean pMSE over permutations is multiplied
by the same 1 − c. Published software halves it, which is this for tables of one size and wrong for others. The more
leaves, the less pMSE varies between permutations: as many are drawn as its mean needs to be known to 1 %. Trees chosen
on a process scaled by √(1 − c) split in the same places as long as no split is refused for gaining too little, so this
tree is bounded by the rows of a leaf and by nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.measures.compared import Compared, numbered_cells
from synth_platform.margins.measures.logistic import fit_logistic, independent_columns, indicators

Floats = NDArray[np.float64]
LEAF_ROWS = 20  # fewest rows of a leaf; a tree has no other bound
FEWEST_PERMUTATIONS, MOST_PERMUTATIONS = 5, 50
LARGEST_ERROR = 0.01  # standard error of the mean over permutations, as a share of it


@dataclass(frozen=True, eq=False)
class Propensity:
    """A fitted model of which rows are synthetic. scores: p̂ [rows], real rows first; expected: mean pMSE of a null."""

    scores: Floats
    pmse: float
    expected: float

    @property
    def s_pmse(self) -> float:
        """pMSE over its mean under the null: 1 for a perfect fit; nought where no variable varies."""
        return self.pmse / self.expected if self.expected else 0.0


def logistic_propensity(compared: Compared) -> Propensity:
    """Main effects of every variable, unpenalised; columns that depend on others are left out, so k is the rank.

    Raises ValueError as `fit_logistic` does.
    """
    design = indicators(compared.codes, compared.real.domain.shape)
    columns = independent_columns(design)
    scores = fit_logistic(design[:, columns], compared.is_synthetic).probabilities
    c = compared.share
    return Propensity(scores, _pmse(scores, c), (len(columns) - 1) * (1 - c) ** 2 * c / len(scores))


def cart_propensity(
    compared: Compared, generator: np.random.Generator, permutations: int = MOST_PERMUTATIONS
) -> Propensity:
    """A classification tree on the codes, Gini, leaves of at least LEAF_ROWS rows, no pruning.

    A variable is split between neighbours in the order of its categories. generator: of the permuted labels and of
    equally good splits. permutations: most of them; FEWEST_PERMUTATIONS or more end where the standard error of their
    mean is at most LARGEST_ERROR of it. Raises ValueError for no permutations.

    Rows of one cell fall into one leaf, and Gini's 2p (1 − p) is twice the variance of the labels, of which splits see
    what is between the cells alone: the tree is a regression of the cells' synthetic shares, weighted by their rows.
    """
    if permutations < 1:
        raise ValueError("the null of a tree needs at least one permutation")
    cell = numbered_cells(compared.codes)
    _, first, size = np.unique(cell, return_index=True, return_counts=True)
    codes, weight, c = compared.codes[first].astype(np.float32), size.astype(np.float64), compared.share

    def shares(synthetic: NDArray[np.bool_]) -> Floats:
        return _tree_means(codes, np.bincount(cell, synthetic) / weight, weight, int(generator.integers(2**31)))

    def pmse(fitted: Floats) -> float:
        return float(np.average((fitted - c) ** 2, weights=weight))

    own = shares(compared.is_synthetic)
    permuted: list[float] = []
    while len(permuted) < permutations and not _known(permuted):
        permuted.append(pmse(shares(generator.permutation(compared.is_synthetic))))
    return Propensity(own[cell], pmse(own), (1 - c) * float(np.mean(permuted)))


def _tree_means(codes: NDArray[np.float32], shares: Floats, weight: Floats, seed: int) -> Floats:
    """Mean share in the leaf of each cell, [cells]; codes [cells, variables]."""
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415 (a second of imports, which fits do not need)

    rows = weight.sum()
    if rows < 2 * LEAF_ROWS:
        return np.full(len(weight), np.average(shares, weights=weight))
    # The bound is a share of all rows: between two whole numbers of them, it is no matter of rounding.
    tree = DecisionTreeRegressor(min_weight_fraction_leaf=(LEAF_ROWS - 0.5) / rows, random_state=seed)
    return np.asarray(tree.fit(codes, shares, sample_weight=weight).predict(codes), dtype=np.float64)


def _known(figures: Sequence[float]) -> bool:
    """Whether the mean of figures has a small enough standard error, as far as they tell."""
    if len(figures) < FEWEST_PERMUTATIONS:
        return False
    return float(np.std(figures, ddof=1)) <= LARGEST_ERROR * float(np.mean(figures)) * math.sqrt(len(figures))


def _pmse(scores: Floats, share: float) -> float:
    return float(((scores - share) ** 2).mean())
