"""From a stored state back to rows: which sampler belongs to which generator code."""

from __future__ import annotations

from synth_platform.contract.cohort_spec import CONTROLS
from synth_platform.generators import controls, g0
from synth_platform.generators.g0a import sampling as g0a
from synth_platform.generators.protocol import GeneratorState, Sampler
from synth_platform.normalize.rows import EncodedRows

SAMPLERS: dict[str, Sampler] = {"G0": g0.sample, "G0A": g0a.sample} | dict.fromkeys(CONTROLS, controls.sample)


def sample(state: GeneratorState, *, rows: int, seed: int) -> EncodedRows:
    """`rows` synthetic rows in model space, deterministic in `seed`.

    Raises ValueError for a generator code nobody registered and for a table without rows.
    """
    if state.generator not in SAMPLERS:
        raise ValueError(f"no sampler for generator {state.generator!r}; known are {', '.join(sorted(SAMPLERS))}")
    if rows < 1:
        raise ValueError(f"rows = {rows}: a synthetic table needs at least one row")
    return SAMPLERS[state.generator](state, rows=rows, seed=seed)
