"""What a steward registers, of whichever kind."""

from __future__ import annotations

from synth_platform.contract.census_spec import CensusSpec
from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.genotype_spec import GenotypeSpec

Contrasted = CohortSpec | GenotypeSpec
"""What has contrasts, so that lists of discoveries are made of it."""

Registered = Contrasted | CensusSpec
