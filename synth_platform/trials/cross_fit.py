"""Utility by cross-fitting: every private row is held out once, with its whole institution (8-1 §3.3).

One test split is too small to judge a small cohort. Here the private rows are dealt into folds of whole batches; the
generator is trained again on the rows of the other folds, at the plan's (epsilon, delta), and its tables and those rows
train the models that score the fold. The scores are pooled and every endpoint is computed once.

What is judged is the procedure, not one table: every fold has its own training and its own noise, and the tables of the
r-th registered seed in all folds make arm r. The jackknife deletes groups of whole batches with the models frozen, so
its error is that of rows and institutions; it does not see the noise or the draw of the training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from synth_platform.contract.cohort_sections import Endpoint, EndpointName, Plan
from synth_platform.contract.cohort_spec import CohortSpec, GeneratorCode
from synth_platform.evaluation.evidence import rounded
from synth_platform.evaluation.explain import explain_utility
from synth_platform.evaluation.pooled import batch_groups, pool, pooled_value, reference_importance, undefined_endpoints
from synth_platform.evaluation.preservation import Preservation, utility_status
from synth_platform.evaluation.utility import (
    Arm,
    EndpointVerdict,
    Value,
    arms_evidence,
    freeze_arm,
    judge_endpoint,
)
from synth_platform.normalize.batch import fit_batch
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.rows import EncodedRows, IntArray, concatenate
from synth_platform.trials.stage import fit_trial, trial_table

DESIGN = "cross_fit"
NOT_REGISTERED = "NOT_REGISTERED"
PASSING = frozenset({NOT_REGISTERED, "PASS_CONFIRMED", "PASS_POINT"})
TOO_FEW_BATCHES = "the private rows come from fewer batches than the registered folds"
_NOISE_SEED = 8_133_000

Document = Mapping[str, Any]
# (fold, training rows as generators see them, the same rows as the real arm) -> R tables in model space
Tables = Callable[[int, EncodedRows, EncodedRows], Sequence[EncodedRows]]


def not_registered(spec: CohortSpec) -> Document | None:
    """The document of a cohort whose utility is judged on its test split; None where cross-fitting is registered."""
    if spec.gates.utility_design == DESIGN:
        return None
    summary = {"design": spec.gates.utility_design, "status": NOT_REGISTERED, "endpoints": {}}
    return {"status": NOT_REGISTERED, "summary": summary, "evidence": {}, "registration": spec.registration}


def cross_fit_utility(
    code: GeneratorCode, spec: CohortSpec, reference: PublicReference, plan: Plan, rows: EncodedRows
) -> Document:
    """The cross-fit verdict on generator `code` at `plan`, over all private rows before batch correction."""

    def tables(fold: int, train: EncodedRows, _: EncodedRows) -> Sequence[EncodedRows]:
        state = fit_trial(code, spec, reference, plan, train, seed=_NOISE_SEED + fold)
        size = table_rows(spec, train)
        return [trial_table(state, spec, reference, seed=seed, rows=size) for seed in spec.synthetic.seeds]

    return cross_fit(spec, reference, rows, tables)


def cross_fit(spec: CohortSpec, reference: PublicReference, rows: EncodedRows, tables: Tables) -> Document:
    """The verdict document over `rows`, whoever makes the tables.

    Evidence: as of the utility gate, over all rows in fold order, with fold, batch and jackknife group of each and
    every arm's importance as [folds, p].
    """
    classes, folds = len(spec.labels), spec.gates.folds
    batches = len(np.unique(rows.batch))
    if batches < folds:
        return _document(spec, {e.name: _undefined() for e in spec.endpoints}, {}, fault=TOO_FEW_BATCHES)
    assigned = batch_groups(rows.batch, folds)
    real, synthetic, public = [], [], []
    held_out = []
    for k in range(folds):
        training, arm, held = split_fold(spec, reference, rows, assigned, k)
        real.append(freeze_arm(arm, held, classes))
        synthetic.append([freeze_arm(table, held, classes) for table in tables(k, training, arm)])
        public.append(freeze_arm(reference.rows, held, classes))
        held_out.append(held)
    pooled, fold = concatenate(held_out), np.repeat(np.arange(folds), [len(held) for held in held_out])
    arms = pool(real, fold), [pool(runs, fold) for runs in zip(*synthetic, strict=True)], pool(public, fold)
    groups = min(spec.gates.groups, batches)
    group = batch_groups(pooled.batch, groups)
    return _document(
        spec,
        dict(pooled_verdicts(spec.endpoints, *arms, held_out=pooled, fold=fold, group=group)),
        {
            "classes": classes,
            "folds": folds,
            "groups": groups,
            "endpoints": [endpoint.model_dump() for endpoint in spec.endpoints],
            "fold": rounded(fold),
            "batch": rounded(pooled.batch),
            "group": rounded(group),
            "label": rounded(pooled.label),
            "event": rounded(pooled.event),
            "time": rounded(pooled.time),
            "test_features": rounded(pooled.x),
            "arms": arms_evidence(*arms),
        },
    )


def table_rows(spec: CohortSpec, train: EncodedRows) -> int:
    """Rows of a fold's table: as many per training row as the cohort registers, lest the real arm win by its size."""
    return max(1, round(spec.synthetic.rows * len(train) / spec.privacy.n_ref))


def split_fold(
    spec: CohortSpec, reference: PublicReference, rows: EncodedRows, fold: IntArray, k: int
) -> tuple[EncodedRows, EncodedRows, EncodedRows]:
    """(training rows as generators see them, the same as the real arm, held-out rows) of fold k.

    Batch correction is fitted on the training rows. Batches are whole in a fold, so every held-out one is unseen: it is
    aligned by its own features without a label (8-1 §1.2 mode B), as a new institution would be.
    """
    train, held = rows.take(fold != k), rows.take(fold == k)
    correction = fit_batch(train, columns=reference.encoder.omics_columns, minimum_batch=spec.reference.minimum_batch)
    corrected = correction.apply(held)
    # The evidence holds six decimals and has to reproduce the verdict exactly.
    corrected = replace(corrected, x=np.round(corrected.x, 6), time=np.round(corrected.time, 6))
    return train, correction.apply(train), corrected


def explain_cross_fit(document: Document) -> tuple[str, ...]:
    """What stands in the way of a release, in words; empty exactly for the passing statuses."""
    fault = document["summary"].get("fault")
    return ((fault,) if fault else ()) + explain_utility(document)


def pooled_verdicts(
    endpoints: Sequence[Endpoint],
    real: Arm,
    synthetic: Sequence[Arm],
    public: Arm | None,
    *,
    held_out: EncodedRows,
    fold: IntArray,
    group: IntArray,
) -> Iterator[tuple[EndpointName, EndpointVerdict]]:
    """Every endpoint over pooled arms; fold and group [n] of the held-out rows, group by group deleted."""
    classes = real.scores.shape[1]
    undefined = set(undefined_endpoints(held_out, fold, classes))
    references = np.array([reference_importance(held_out.take(fold == k), classes) for k in range(fold.max() + 1)])
    for endpoint in endpoints:
        if endpoint.name in undefined:
            yield endpoint.name, _undefined()
            continue
        yield (
            endpoint.name,
            judge_endpoint(
                endpoint,
                value=partial(pooled_value, endpoint.name, held_out=held_out, fold=fold),
                importance=references,
                real=real,
                synthetic=synthetic,
                public=public,
                kept=[group != g for g in range(int(group.max()) + 1)],
            ),
        )


def _undefined() -> EndpointVerdict:
    nothing: Value = None
    judged = Preservation(nothing, nothing, nothing, nothing, nothing, nothing, "HOLD_UNDEFINED")
    return EndpointVerdict(judged=judged, replicates=(), minimum=None, public=None, lift=None)


def _document(
    spec: CohortSpec, verdicts: Mapping[EndpointName, EndpointVerdict], evidence: Document, fault: str | None = None
) -> Document:
    status = utility_status(verdict.judged.status for verdict in verdicts.values())
    summary = {
        "design": DESIGN,
        "folds": spec.gates.folds,
        "status": status,
        "endpoints": {name: verdict.as_dict() for name, verdict in verdicts.items()},
    }
    return {
        "status": status,
        "summary": summary | ({"fault": fault} if fault else {}),
        "evidence": evidence,
        "registration": spec.registration,
    }
