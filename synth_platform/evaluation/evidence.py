"""Evidence: the arrays a verdict was computed from, as JSON values rounded to six decimals.

Evidence is private (scores and distances are membership information): it stays in the restricted zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Evidence = Mapping[str, Any]


def rounded(values: np.ndarray[Any, np.dtype[Any]]) -> list[Any]:
    """Nested lists of `values`: floats to six decimals with None for what is not finite, everything else as it is."""
    if not np.issubdtype(values.dtype, np.floating):
        return list(values.tolist())
    digits = np.round(values, 6) + 0.0
    if np.isfinite(digits).all():
        return list(digits.tolist())
    cells = digits.astype(object)
    cells[~np.isfinite(digits)] = None
    return list(cells.tolist())
