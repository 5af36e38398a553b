"""SPECKS: how far apart the propensity scores of real and of synthetic rows are, as Kolmogorov and Smirnov measure it.

The largest gap between the two distribution functions of p̂ (Bowen, Liu and Su 2021), nought to one. The scores are of
the rows that the model was fitted to, so it is above nought for a perfect fit too, and more so for a tree.
"""

from __future__ import annotations

from synth_platform.margins.measures.compared import Compared
from synth_platform.margins.measures.pmse import Propensity


def specks(compared: Compared, propensity: Propensity) -> float:
    """Kolmogorov-Smirnov distance of the scores, no unit: 0 alike, 1 wholly told apart."""
    from scipy.stats import ks_2samp  # noqa: PLC0415 (half a second of imports, which fits do not need)

    synthetic = compared.is_synthetic
    return float(ks_2samp(propensity.scores[~synthetic], propensity.scores[synthetic], method="asymp").statistic)
