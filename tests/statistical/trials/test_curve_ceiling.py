"""What G0 preserves without noise, beside the ceiling that 8-1 §3.7 publishes (its probe seeds were four)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from synth_platform.contract.cohort_spec import load_cohort_spec
from synth_platform.sources.read import read_cohort
from synth_platform.trials.curve import CEILING
from synth_platform.trials.preserved import ENDPOINTS, fit_at, preserved, real_scores, table_scores
from synth_platform.trials.stage import make_stage

VIRTUAL = Path(__file__).resolve().parents[3] / "cohorts" / "virtual"
PUBLISHED = {"c_index": 0.948, "macro_f1": 0.962, "auroc": 0.986, "spearman": 0.963}
PROBES = 4
WORLDS = range(61, 71)


@pytest.mark.statistical
def test_the_ceiling_of_g0_is_the_published_one_but_for_the_c_index() -> None:
    """Macro-F1, AUROC and Spearman within three standard errors of the difference of two means, of ten worlds of ours
    and of four of the source's: missed by chance for 1 % of all seeds. The C-index is above the published .948; so is
    that of the source's own G0 at epsilon 2, 1.001, which tells how much its seeds vary.
    """
    found = []
    for world in WORLDS:
        spec = load_cohort_spec(VIRTUAL / "cohort.yaml")
        options = spec.source.options | {"world_seed": world, "row_seed": 0}
        spec = spec.model_copy(update={"source": spec.source.model_copy(update={"options": options})})
        stage = make_stage(spec, read_cohort(spec, VIRTUAL))
        scores = preserved(table_scores(stage, fit_at(stage, "G0", CEILING, seed=world), 1), real_scores(stage))
        found.append([scores[name] for name in ENDPOINTS])
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
    error = spread * np.sqrt(1 / len(found) + 1 / PROBES)
    for name, own, allowed in zip(ENDPOINTS, mean, 3 * error, strict=True):
        if name == "c_index":
            assert own > PUBLISHED[name]
        else:
            assert own == pytest.approx(PUBLISHED[name], abs=allowed)
    assert (mean > 0.95).all()
