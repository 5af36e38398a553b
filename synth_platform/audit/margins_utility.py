"""G3, utility: every table's statistic by way of Pearson's test of homogeneity, bands and status by tables of our own.

The Voas-Williamson statistic of real and synthetic rows is Pearson's of their 2 × k contingency table over 1 − c, c the
share of synthetic rows. S_pMSE is it over k − 1: below 3 good, below 10 acceptable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.stats import chi2_contingency

from synth_platform.audit.findings import Findings
from synth_platform.audit.margins_tables import Names, Space, title
from synth_platform.audit.reading import Document, FloatArray, item, mapping, number, sequence, text, whole

NOT_ASSESSED = "NOT_ASSESSED"
BANDS = ((3.0, "good"), (10.0, "acceptable"), (math.inf, "poor"))
MODELS = ("logistic", "cart")
_RELATIVE = 1e-9


def band(s_pmse: float) -> str:
    """The word for a ratio."""
    return next(word for above, word in BANDS if s_pmse < above)


def voas_williamson(real: FloatArray, synthetic: FloatArray) -> tuple[float, int]:
    """Statistic and degrees of freedom over cells with anybody in them."""
    both = np.stack([real.ravel(), synthetic.ravel()])
    both = both[:, both.any(axis=0)]
    if both.shape[1] == 1:
        return 0.0, 0
    statistic, _, degrees, _ = chi2_contingency(both, correction=False)
    return float(statistic) * both.sum() / both[0].sum(), int(degrees)


def audit_utility_of_margins(
    found: Findings,
    stage: str,
    space: Space,
    document: Document,
    margins: Sequence[Names],
    real: Sequence[FloatArray | None] | None,
    synthetic: Sequence[FloatArray | None],
) -> None:
    """The utility document of the first replicate. real: None where there are no private rows to compare with."""
    name = f"G3/{stage}/utility_gate"
    status = text(document, "status")
    if real is None:
        found.same(f"{name}/status", "status", status, NOT_ASSESSED)
        return
    held = dict(zip(space.tables, zip(real, synthetic, strict=True), strict=True))
    by_variables = {frozenset(names): names for names in held}
    rows = [
        sum(float(side.sum()) for side in pair if side is not None)
        for pair in zip(real[:1], synthetic[:1], strict=True)
    ]
    share = float(synthetic[0].sum()) / rows[0] if synthetic[0] is not None else math.nan
    claimed = number(document, "independent_sample")
    found.close(f"{name}/independent_sample", "ratio", claimed, 1 / (1 - share), tolerance=_RELATIVE * claimed)
    worst, unheld = [], set()
    fitted = {frozenset(part) for margin in margins for size in (2, 3) for part in combinations(margin, size)}
    for size, key in ((2, "two_way"), (3, "three_way")):
        tables = [mapping({key: table}, key) for table in sequence(document, key)]
        due = math.comb(len(space.names), size)
        have = {frozenset(sequence(table, "names")) for table in tables}
        found.same(f"{name}/{key}", "tables", (len(tables), len(have)), (due, due))
        for table in tables:
            names = tuple(map(str, sequence(table, "names")))
            here = f"{name}/{title(names)}"
            with found.section(here):
                preserved = frozenset(names) in fitted
                found.same(f"{here}/preserved", "preserved", item(table, "preserved"), preserved)
                ratio = number(table, "s_pmse")
                found.same(f"{here}/band", "band", text(table, "band"), band(ratio), public=False)
                worst += [band(ratio)] if preserved and size == 2 else []
                sides = held.get(by_variables.get(frozenset(names), ()))
                if sides is None or sides[0] is None or sides[1] is None:
                    unheld.add(key)
                    continue
                statistic, degrees = voas_williamson(sides[0], sides[1])
                found.same(f"{here}/df", "df", whole(table, "df"), degrees, public=False)
                tolerance = _RELATIVE * max(1.0, statistic)
                found.close(f"{here}/vw", "voas_williamson", number(table, "vw"), statistic, tolerance=tolerance)
                own = statistic / degrees if degrees else 0.0
                found.close(f"{here}/s_pmse", "ratio", ratio, own, tolerance=tolerance)
    found.uncovered += [f"{name}/{key}/vw_of_some" for key in sorted(unheld)]
    order = [word for _, word in BANDS]
    found.same(f"{name}/status", "status", status, max(worst, key=order.index) if worst else NOT_ASSESSED)
    for model in MODELS:
        with found.section(f"{name}/{model}"):
            _model(found, f"{name}/{model}", mapping(document, model))


def _model(found: Findings, name: str, model: Document) -> None:
    """A propensity model's ratio and band follow from its figures; its scores are not in the evidence."""
    pmse, expected, ratio = (number(model, key) for key in ("pmse", "expected", "s_pmse"))
    own = pmse / expected if expected else 0.0
    found.close(f"{name}/s_pmse", "ratio", ratio, own, tolerance=_RELATIVE * max(1.0, own))
    found.same(f"{name}/band", "band", text(model, "band"), band(ratio), public=False)
    found.holds(f"{name}/specks", "range", 0 <= number(model, "specks") <= 1, "not a distance of distributions")
    found.uncovered += [f"{name}/{figure}" for figure in ("pmse", "expected", "specks")]
