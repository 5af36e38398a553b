"""Safe synthetic data from coarsened margins: categorical tables whose preserved relations are named.

curate → two_way_margins (or read_tables: published counts, no rows at all) → coarsen → disclosure_bounds → fit → sample
→ utility. What others rely on stands here.
"""

from synth_platform.margins.coarsen import coarsen
from synth_platform.margins.disclosure.audit import disclosure_bounds
from synth_platform.margins.fitting.fit import fit
from synth_platform.margins.reading.curate import curate
from synth_platform.margins.rows import two_way_margins
from synth_platform.margins.sample import sample
from synth_platform.margins.utility import utility

__all__ = ["coarsen", "curate", "disclosure_bounds", "fit", "sample", "two_way_margins", "utility"]
