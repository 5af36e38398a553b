"""One door to every cohort: read_cohort."""

from __future__ import annotations

from pathlib import Path

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import CohortTables
from synth_platform.sources.tables import read_tables
from synth_platform.sources.virtual import draw_cohort


def read_cohort(spec: CohortSpec, folder: Path) -> CohortTables:
    """The tables of a cohort, not yet validated, under opaque row keys; `folder` is where its cohort.yaml is.

    Raises SourceError or CohortSpecError, naming the file or field and what to do.
    """
    match spec.source.reader:
        case "virtual":
            return draw_cohort(spec)
        case "tables":
            return read_tables(spec, folder)
