"""The real-against-real null: what it draws from, and that no private row can reach it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synth_platform.contract.cohort_spec import CohortSpec, load_cohort_spec
from synth_platform.contract.tables import of_split
from synth_platform.evaluation.null import Sizes, registered_null
from synth_platform.normalize.reference import PublicReference, build_reference
from synth_platform.sources.read import read_cohort

COHORTS = Path(__file__).resolve().parents[3] / "cohorts"


def cohort(**source: Any) -> tuple[CohortSpec, PublicReference]:
    folder = COHORTS / "virtual"
    spec = load_cohort_spec(folder / "cohort.yaml")
    options = spec.source.options | source
    spec = spec.model_copy(update={"source": spec.source.model_copy(update={"options": options})})
    return spec, build_reference(of_split(read_cohort(spec, folder), "public"), spec)


def test_a_virtual_cohort_draws_fresh_people_of_its_world() -> None:
    """Registered sizes; four samples without a row in common; another seed, other people; the resampled table repeats
    rows: of 600 drawn from 600 with replacement 600 (1 - 1/e) = 379 +- 9 are distinct (six standard deviations).
    """
    spec, reference = cohort()
    null = registered_null(spec, reference)
    assert (null.source, null.sizes) == ("world", Sizes(720, 720, 600))
    drawn = null.draw(5)
    parts = (drawn.train, drawn.holdout, drawn.synthetic)
    assert [len(part) for part in parts] == [720, 720, 600]
    assert len(np.unique(np.concatenate([part.x for part in parts]).round(9), axis=0)) == 2040
    assert abs(len(np.unique(drawn.resampled.x, axis=0)) - 379) < 6 * 9
    assert not np.isin(null.draw(6).train.x[:, 0], drawn.train.x[:, 0]).any()
    assert np.array_equal(null.draw(5).synthetic.x, drawn.synthetic.x)


def test_private_rows_have_no_influence() -> None:
    """Another number of private rows, drawn otherwise: the same null, draw by draw."""
    (spec, reference), (other_spec, other_reference) = cohort(), cohort(train=100, holdout=50, test=30)
    null = registered_null(spec, reference)
    other = registered_null(other_spec, other_reference)
    assert np.array_equal(null.draw(1).train.x, other.draw(1).train.x)


def test_the_digest_is_that_of_world_and_public_rows() -> None:
    digests = [registered_null(*cohort(**change)).digest for change in ({}, {"world_seed": 16}, {"public": 500})]
    assert len(set(digests)) == 3
    spec, reference = cohort()
    moved = replace(reference, rows=replace(reference.rows, x=reference.rows.x + 1e-12))
    assert registered_null(spec, moved).digest == digests[0]


def test_a_real_cohort_mixes_public_rows() -> None:
    """Gaussian with the public covariance: 4,000 rows, entries within 5 standard errors of a covariance estimate.

    Without the scale by the number of public rows, or without the centring, the entries are far off.
    """
    spec, reference = cohort()
    spec = spec.model_copy(
        update={
            "source": spec.source.model_copy(update={"reader": "tables"}),
            "privacy": spec.privacy.model_copy(update={"n_ref": 4000}),
        }
    )
    null = registered_null(spec, reference)
    assert null.source == "public_gaussian"
    drawn = null.draw(2).train.x
    covariance = np.cov(reference.rows.x.T, bias=True)
    deviation = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / 4000)
    assert (np.abs(drawn.T @ drawn / 4000 - covariance) <= 5 * deviation).all()
    with pytest.raises(AssertionError):
        assert (np.abs(2 * drawn.T @ drawn / 4000 - covariance) <= 5 * deviation).all()
