"""The virtual world is as hard as the one of 8-1 §3.7: real rows train, real rows test, four endpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from synth_platform.contract.cohort_spec import load_cohort_spec
from synth_platform.evaluation.utility import score_table
from synth_platform.normalize.real_arm import correct_real_arm
from synth_platform.normalize.reference import build_reference
from synth_platform.sources.virtual import draw_cohort

PATH = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
ENDPOINTS = ("auroc", "c_index", "macro_f1", "spearman")
WORLDS = 40
pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def scores() -> dict[str, np.ndarray]:
    """[worlds, endpoints] of the training rows and of the public rows, at a shift of .3, on the same test rows."""
    spec = load_cohort_spec(PATH)
    real, public = [], []
    for seed in range(WORLDS):
        options = spec.source.options | {"world_seed": 100 + seed, "row_seed": seed}
        drawn = spec.model_copy(update={"source": spec.source.model_copy(update={"options": options})})
        tables = draw_cohort(drawn)
        keys = tables.manifest.filter(pl.col("split") == "public").select("row_key")
        reference = build_reference(tables.map(lambda _, t, k=keys: t.join(k, on="row_key", how="semi")), drawn)
        private = tables.map(lambda _, t, k=keys: t.join(k, on="row_key", how="anti", maintain_order="left"))
        rows = correct_real_arm(reference.encoder.encode(private), reference, drawn)[1]
        test = rows.where_split("test")
        for arm, training in ((real, rows.where_split("train")), (public, reference.rows)):
            values = score_table(training, test, len(drawn.labels))
            arm.append([values[name] for name in ENDPOINTS])
    return {"real": np.array(real), "public": np.array(public)}


@pytest.mark.parametrize(
    ("endpoint", "published", "tolerance"),
    [("auroc", 0.908, 0.02), ("c_index", 0.721, 0.02), ("macro_f1", 0.733, 0.02), ("spearman", 0.958, 0.035)],
)
def test_the_real_arm_is_near_the_published_figures(
    scores: dict[str, np.ndarray], endpoint: str, published: float, tolerance: float
) -> None:
    """Mean of 40 worlds against AUROC .908, C-index .721, macro-F1 .733, Spearman .958 (8-1 §3.7, a single run).

    Over 100 other worlds the means are .903, .722, .735, .940 with a standard deviation between worlds of .016, .024,
    .032, .029, so the single run is within one of them. The tolerance is 5.9, 5.0, 3.6 and 3.7 standard errors of a
    mean of 40 away from those means: false alarm below 4e-4 in all if the worlds were drawn anew; the seeds are fixed.
    """
    assert scores["real"][:, ENDPOINTS.index(endpoint)].mean() == pytest.approx(published, abs=tolerance)


def test_a_shift_costs_public_rows_some_of_every_endpoint(scores: dict[str, np.ndarray]) -> None:
    """Public rows of a shifted population lose something at AUROC and Spearman, and are still worth having.

    Paired ratio to the real arm. A shift that did nothing would pass both of the first two lines with probability
    below .03; over 60 other worlds the ratios are .994 and .969, with errors of .001 and .006 for a mean of 40.
    """
    ratio = scores["public"] / scores["real"]
    mean, error = ratio.mean(axis=0), ratio.std(axis=0, ddof=1) / np.sqrt(WORLDS)
    assert mean[0] + 2 * error[0] < 1
    assert mean[3] + 2 * error[3] < 1
    assert np.all(mean > 0.93)
