"""The gates under one signature: from a cohort's rows and synthetic tables to a verdict document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from synth_platform.contract.cohort_spec import CohortSpec
from synth_platform.evaluation.attribute_inference import registered_secrets
from synth_platform.evaluation.closest_record import ClosestRecordVerdict, closest_record_gate
from synth_platform.evaluation.explain import (
    explain_closest_record,
    explain_inference,
    explain_membership,
    explain_utility,
)
from synth_platform.evaluation.inference_risk import InferenceVerdict, inference_risk
from synth_platform.evaluation.membership import MembershipVerdict, membership_gate
from synth_platform.evaluation.utility import UtilityVerdict, utility_gate
from synth_platform.normalize.reference import PublicReference
from synth_platform.normalize.replicates import encode_replicates
from synth_platform.normalize.rows import EncodedRows

Judge = Callable[[CohortSpec, PublicReference, EncodedRows, EncodedRows, pl.DataFrame], Mapping[str, Any]]


@dataclass(frozen=True)
class Gate:
    """A gate as an asset sees it.

    judge(spec, reference, real arm, attacked rows, synthetic tables) -> {"status", "summary", "evidence",
    "registration"}: JSON values; the last is the digest of the registration it was judged under. Both are all private
    rows: utility and closest records are judged on the real arm, attacks on `normalize.real_arm.correct_attacked`.
    passing: the statuses that do not stand in the way of a release. explain(verdict document) -> what stands in the
    way, in words.
    """

    name: str
    claim: str
    passing: frozenset[str]
    judge: Judge
    explain: Callable[[Mapping[str, Any]], tuple[str, ...]]


def _document(
    verdict: UtilityVerdict | ClosestRecordVerdict | MembershipVerdict | InferenceVerdict, spec: CohortSpec
) -> Mapping[str, Any]:
    return {
        "status": verdict.status,
        "summary": verdict.as_dict(),
        "evidence": verdict.evidence,
        "registration": spec.registration,
    }


def _utility(
    spec: CohortSpec, reference: PublicReference, real: EncodedRows, _: EncodedRows, tables: pl.DataFrame
) -> Mapping[str, Any]:
    verdict = utility_gate(
        train=real.where_split("train"),
        replicates=encode_replicates(tables, spec, reference.encoder),
        test=real.where_split("test"),
        endpoints=spec.endpoints,
        classes=len(spec.labels),
        groups=spec.gates.groups,
        public=reference.rows,
    )
    return _document(verdict, spec)


def _closest_record(
    spec: CohortSpec, reference: PublicReference, real: EncodedRows, _: EncodedRows, tables: pl.DataFrame
) -> Mapping[str, Any]:
    verdict = closest_record_gate(
        real.where_split("train"),
        real.where_split("holdout", "test"),
        encode_replicates(tables, spec, reference.encoder)[0],
        spec.gates,
    )
    return _document(verdict, spec)


def _membership(
    spec: CohortSpec, reference: PublicReference, _: EncodedRows, attacked: EncodedRows, tables: pl.DataFrame
) -> Mapping[str, Any]:
    verdict = membership_gate(
        attacked.where_split("train"),
        attacked.where_split("holdout", "test"),
        encode_replicates(tables, spec, reference.encoder)[0],
        reference.rows,
        spec.gates,
    )
    return _document(verdict, spec)


def _inference(
    spec: CohortSpec, reference: PublicReference, _: EncodedRows, attacked: EncodedRows, tables: pl.DataFrame
) -> Mapping[str, Any]:
    verdict = inference_risk(
        attacked.where_split("train"),
        attacked.where_split("holdout", "test"),
        encode_replicates(tables, spec, reference.encoder)[0],
        registered_secrets(reference.encoder),
    )
    return _document(verdict, spec)


# The three that 8-1's release rule decides on.
GATES: tuple[Gate, ...] = (
    Gate(
        "utility_gate",
        "Models trained on the synthetic tables keep at least 95 % of every endpoint on real test rows.",
        frozenset({"PASS_CONFIRMED", "PASS_POINT"}),
        _utility,
        explain_utility,
    ),
    Gate(
        "closest_record_gate",
        "The released table is no nearer to training rows than to rows the generator never saw.",
        frozenset({"PASS"}),
        _closest_record,
        explain_closest_record,
    ),
    Gate(
        "membership_gate",
        "No named attack tells training rows from fresh rows with AUROC above the limit, confirmed by its upper bound.",
        frozenset({"PASS_CONFIRMED"}),
        _membership,
        explain_membership,
    ),
)

INFERENCE_GATE = Gate(
    "inference_gate",
    "Attributes of training rows are guessed, and training rows singled out, at most five points more often than those "
    "of rows the generator never saw; UNDECIDED where the rows are too few to tell.",
    frozenset({"PASS", "UNDECIDED"}),
    _inference,
    explain_inference,
)
