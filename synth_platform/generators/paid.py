"""What both DP generators insist on: a promise they can keep, and statistics that somebody paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from synth_platform.generators.protocol import PrivacyTarget
from synth_platform.normalize.rows import EncodedRows
from synth_platform.privacy.statistics import StatisticQuery, StatisticRelease


class ForeignStatisticError(ValueError):
    """Something other than the statistics a generator asked for was handed to its `fit`."""


def require_target(target: PrivacyTarget, *, n_ref: int, shares: Sequence[float], option: str) -> None:
    """Raise ValueError when delta is not below 1 / n_ref (8-1 §2.1), or the shares of `option` do not add up to 1."""
    if not math.isclose(sum(shares), 1.0, abs_tol=1e-9):
        raise ValueError(f"{option} add up to {sum(shares):.6g}; they must add up to 1")
    if target.delta >= 1 / n_ref:
        raise ValueError(
            f"delta = {target.delta:.3g} is not below 1/n_ref = {1 / n_ref:.3g} (8-1 §2.1): lower the plan's delta"
        )


def require_paid(
    code: str, releases: tuple[StatisticRelease, ...], queries: Sequence[StatisticQuery[EncodedRows]]
) -> None:
    """Raise ForeignStatisticError unless `releases` are the paid-for answers to `queries`, in that order."""
    if not isinstance(releases, tuple) or any(type(release) is not StatisticRelease for release in releases):
        raise ForeignStatisticError(f"{code}.fit takes a tuple of StatisticRelease and nothing else")
    codes = [query.code for query in queries]
    if [release.code for release in releases] != codes:
        raise ForeignStatisticError(f"{code}.fit takes exactly {', '.join(codes)}, in that order")
    for release, query in zip(releases, queries, strict=True):
        if release.values.shape != (query.dimension,):
            raise ForeignStatisticError(f"{release.code}: {release.values.shape} values for ({query.dimension},)")
        if not np.isfinite(release.values).all():
            raise ForeignStatisticError(f"{release.code}: a value is not finite")
        if not math.isclose(release.sensitivity, query.sensitivity) or not math.isclose(release.sigma, query.sigma):
            raise ForeignStatisticError(f"{release.code}: sensitivity or sigma differ from the query of this plan")
        if not release.entry_id:
            raise ForeignStatisticError(f"{release.code}: no ledger entry id, so nobody paid for it")
