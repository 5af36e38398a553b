"""log e_k(w) of positive weights: the normaliser of every tilted choice of k records among n.

    e_k(w) = sum over |S| = k of prod_{i in S} w_i,    e_k(w, v) = e_k(w) + v · e_{k−1}(w),

one record at a time in the log domain. Every term is positive, so nothing cancels.
"""

from __future__ import annotations

import numpy as np

from synth_platform.discovery.statistics.protocol import FloatArray


def log_elementary_symmetric(log_weights: FloatArray, order: int) -> FloatArray:
    """log_weights [n, ...] -> [order + 1, ...]: log e_0, ..., log e_order, each trailing index by itself.

    O(n · order) additions. Weights must be finite and order in [0, n].
    """
    log_e = np.full((order + 1, *log_weights.shape[1:]), -np.inf)
    log_e[0] = 0.0
    for i, log_weight in enumerate(log_weights):
        k = min(i + 1, order)
        log_e[1 : k + 1] = np.logaddexp(log_e[1 : k + 1], log_weight + log_e[:k])
    return log_e
