"""How well real and synthetic rows can be told apart: pMSE over its mean under the null, of two propensity models.

With p̂ the modelled probability that a row is synthetic, pMSE = Σ (p̂ − c)² / N (Snoke et al. 2018, JRSS A 181).
The null is that of `compared`.

Logistic, main effects, k = rank of the design with its intercept: with independent labels N pMSE / (c (1 − c)) is a
score statistic of k − 1 degrees of freedom, whose mean is k − 1. The score is the difference of the two tables' sums;
with the real rows held fixed its variance is 1 − c of that, hence E pMSE = (k − 1) (1 − c)² c / N.

CART has no such closed form. Permuted labels keep both tables random, so the mean pMSE over permutations is multiplied
by the same 1 − c. Published software halves it, which is this for tables of one size and wrong for others. Trees chosen
on a process scaled by √(1 − c) split in the same places as long as no split is refused for gaining too little, so this
tree is bounded by the rows of a leaf and by nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synth_platform.margins.measures.compared import Compared
from synth_platform.margins.measures.logistic import fit_logistic, independent_columns, indicators

Floats = NDArray[np.float64]
LEAF_ROWS = 20  # fewest rows of a leaf; a tree has no other bound
PERMUTATIONS = 50


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


def cart_propensity(compared: Compared, generator: np.random.Generator, permutations: int = PERMUTATIONS) -> Propensity:
    """A classification tree on the codes, Gini, leaves of at least LEAF_ROWS rows, no pruning.

    A variable is split between neighbours in the order of its categories. generator: of the permuted labels and of
    equally good splits. Raises ValueError for no permutations.
    """
    if permutations < 1:
        raise ValueError("the null of a tree needs at least one permutation")
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 (a second of imports, which fits do not need)

    codes, c = compared.codes.astype(np.float32), compared.share

    def scores(labels: NDArray[np.bool_]) -> Floats:
        seed = int(generator.integers(2**31))
        tree = DecisionTreeClassifier(min_samples_leaf=LEAF_ROWS, random_state=seed).fit(codes, labels)
        return np.asarray(tree.predict_proba(codes)[:, 1], dtype=np.float64)

    own = scores(compared.is_synthetic)
    permuted = [_pmse(scores(generator.permutation(compared.is_synthetic)), c) for _ in range(permutations)]
    return Propensity(own, _pmse(own, c), (1 - c) * float(np.mean(permuted)))


def _pmse(scores: Floats, share: float) -> float:
    return float(((scores - share) ** 2).mean())
