"""Two sums of the log domain that several statistics need."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from synth_platform.discovery.statistics.protocol import FloatArray


def log_average(up: ArrayLike, down: ArrayLike) -> FloatArray:
    """log of the mean of two e-values, elementwise: one of either side, so that the mean is one of both."""
    return np.asarray(np.logaddexp(up, down) - math.log(2))


def log_choose(n: int, k: ArrayLike) -> FloatArray:
    """log C(n, k), of the shape of k, for 0 <= k <= n."""
    k = np.asarray(k)
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
