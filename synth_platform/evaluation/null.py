"""Real against real: rows that nobody trained on, in the place of all arms, drawn without a private row (8-1 §3.4).

A tolerance must be fixed before a synthetic table is seen, and without the private rows it will judge. A virtual cohort
has a world to draw from. A real one has its public rows: random mixtures of them are Gaussian with exactly the public
covariance, whatever its rank.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.contract.tables import from_wide
from synth_platform.normalize.real_arm import correct_real_arm
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows
from synth_platform.sources.virtual import draw_fresh

NullSource = Literal["world", "public_gaussian"]


@dataclass(frozen=True)
class Sizes:
    """Rows of each side, all public constants: training arm, rows nobody trained on, one synthetic table."""

    train: int
    holdout: int
    synthetic: int


@dataclass(frozen=True)
class NullRows:
    """One draw of one population: two real arms, and two tables of a generator that leaks nothing, as gates see them.

    synthetic: independent rows. resampled: drawn with replacement from as many sources as there are public rows, as
    S_PUBLIC and the donors of G0A are; it leaks nothing either, but its rows are not independent.
    """

    train: EncodedRows
    holdout: EncodedRows
    synthetic: EncodedRows
    resampled: EncodedRows


@dataclass(frozen=True)
class Null:
    """A real-against-real null of one cohort: `draw(seed)` gives independent rows for every seed.

    digest: SHA-256 of all that a draw depends on beside its seed and the sizes, public rows at six decimals.
    """

    source: NullSource
    sizes: Sizes
    digest: str
    draw: Callable[[int], NullRows]


def registered_null(spec: CohortSpec, reference: PublicReference) -> Null:
    """The null of a cohort at its registered sizes: n_ref rows in each real arm, the registered rows in the table."""
    sizes = Sizes(spec.privacy.n_ref, spec.privacy.n_ref, spec.synthetic.rows)
    if spec.source.reader == "virtual":
        return Null("world", sizes, _digest(spec, reference), lambda seed: _of_world(spec, reference, sizes, seed))
    return Null(
        "public_gaussian", sizes, _digest(spec, reference), lambda seed: _of_public(reference.rows, sizes, seed)
    )


def _of_world(spec: CohortSpec, reference: PublicReference, sizes: Sizes, seed: int) -> NullRows:
    """Fresh people, batch-corrected as the real arm is: the correction is fitted on the drawn training rows."""
    splits = _splits(sizes, len(reference.rows))
    drawn = reference.encoder.encode(draw_fresh(spec, sum(splits.values()), seed))
    split = np.repeat(list(splits), list(splits.values()))
    corrected = correct_real_arm(replace(drawn, split=split), reference, spec)[1]
    sources = reference.encoder.decode(corrected.where_split("synthetic"))
    return _null_rows(
        corrected.where_split("train"),
        corrected.where_split("holdout"),
        reference.encoder.encode(from_wide(sources, spec)),
        sizes.synthetic,
        len(reference.rows),
        seed,
    )


def _of_public(public: EncodedRows, sizes: Sizes, seed: int) -> NullRows:
    rng = np.random.default_rng(seed)
    centred = public.x - public.x.mean(axis=0)

    def mixtures(rows: int) -> EncodedRows:
        x = rng.normal(size=(rows, len(centred))) @ centred / np.sqrt(len(centred))
        return replace(public.take(np.zeros(rows, np.int64)), x=x)

    train, holdout, sources = map(mixtures, _splits(sizes, len(public)).values())
    return _null_rows(train, holdout, sources, sizes.synthetic, len(public), seed)


def _splits(sizes: Sizes, public: int) -> dict[str, int]:
    """Rows to draw: the two real arms, and sources enough for both tables."""
    return {"train": sizes.train, "holdout": sizes.holdout, "synthetic": max(sizes.synthetic, public)}


def _null_rows(
    train: EncodedRows, holdout: EncodedRows, sources: EncodedRows, rows: int, public: int, seed: int
) -> NullRows:
    repeated = np.random.default_rng([seed, rows]).integers(public, size=rows)
    return NullRows(train, holdout, synthetic=sources.take(slice(rows)), resampled=sources.take(repeated))


def _digest(spec: CohortSpec, reference: PublicReference) -> str:
    world = spec.source.options if spec.source.reader == "virtual" else None
    head = json.dumps([spec.source.reader, world, list(reference.rows.features)], sort_keys=True)
    # At six decimals: the last bits of an encoded row depend on the machine's linear algebra.
    public = (np.round(reference.rows.x, 6) + 0.0).astype("<f8").tobytes()
    return hashlib.sha256(head.encode() + public).hexdigest()
