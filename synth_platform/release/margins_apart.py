"""One coarsening of the same people: two of them, side by side, say more than either.

Counts that were rounded by two rules, or before and after somebody came, intersect to narrower intervals than the
disclosure audit of each looked at. So a census has one set of coarsened margins outside, however many plans it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from synth_platform.margins.margin import MarginSet
from synth_platform.margins.reading.published import read_tables
from synth_platform.release.margins import SDC_STAGE
from synth_platform.release.margins_package import released_margins
from synth_platform.release.register import Release


def other_coarsenings(
    protected: MarginSet, table: str, name: str, cohort: str, releases: Iterable[Release], root: Path
) -> list[str]:
    """Names of releases of a census that left with other margins than `protected`, or of which that cannot be told.

    table: SHA-256 of the table that is to be released under `name`. releases: of the register, whatever their status:
    what was withdrawn or recalled has left all the same. root: the released zone.
    """
    others = []
    for release in releases:
        if release.cohort != cohort or release.generator != SDC_STAGE:
            continue
        package = root / release.name
        same = _same(protected, package) if package.is_dir() else release.name == name and table in release.tables
        if not same:
            others.append(release.name)
    return others


def _same(protected: MarginSet, package: Path) -> bool:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        released_margins(package, folder)
        try:
            left = read_tables(folder, totals="differ")
        except ValueError:  # somebody altered the package: what it was cannot be told
            return False
    return left.domain == protected.domain and {m.names: m.counts.tobytes() for m in left} == {
        m.names: np.ascontiguousarray(m.counts).tobytes() for m in protected
    }
