"""The utility gate: train on synthetic, test on real, against train on real, test on real (8-1 §3.1–3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from synth_platform.contract.cohort_sections import Endpoint, EndpointName
from synth_platform.evaluation.endpoints import auroc, c_index, macro_f1, spearman, top_k_jaccard
from synth_platform.evaluation.evidence import Evidence, rounded
from synth_platform.evaluation.learners import anova_f, fit_cox, fit_lda
from synth_platform.evaluation.preservation import Preservation, UtilityStatus, judge, utility_status
from synth_platform.evaluation.statistics import jackknife_groups
from synth_platform.normalize.rows import EncodedRows, FloatArray, IntArray

MINIMUM_REPLICATES = 5
Value = float | None
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Arm:
    """One training table's frozen predictions on the test split, rounded to six decimals.

    scores [n, K] class log odds, risk [n] Cox linear predictor, importance [p] ANOVA F on the training table itself.
    """

    scores: FloatArray
    risk: FloatArray
    importance: FloatArray


def freeze_arm(training: EncodedRows, test: EncodedRows, classes: int) -> Arm:
    """Fit the fixed learners on `training` alone and apply them to the test features (never to test outcomes)."""
    return Arm(
        scores=np.round(fit_lda(training.x, training.label, classes).scores(test.x), 6),
        risk=np.round(fit_cox(training.x, training.time, training.event).risk(test.x), 6),
        importance=np.round(anova_f(training.x, training.label, classes), 6),
    )


def endpoint_value(name: EndpointName, arm: Arm, *, test: EncodedRows, keep: Mask | slice = slice(None)) -> Value:
    """One endpoint of one arm on the test rows `keep`; None where it is not defined there."""
    classes = arm.scores.shape[1]
    label = test.label[keep]
    if name == "c_index":
        return c_index(arm.risk[keep], test.time[keep], test.event[keep])
    if name == "macro_f1":
        return macro_f1(arm.scores[keep].argmax(axis=1), label, classes)
    if name == "auroc":
        return auroc(arm.scores[keep], label)
    return spearman(arm.importance, _reference(test, classes, keep))


def score_table(training: EncodedRows, test: EncodedRows, classes: int) -> dict[EndpointName, Value]:
    """All four endpoints of one training table on one test split, without judging: for tuning and benchmarks."""
    arm = freeze_arm(training, test, classes)
    names: tuple[EndpointName, ...] = ("c_index", "macro_f1", "auroc", "spearman")
    return {name: endpoint_value(name, arm, test=test) for name in names}


@dataclass(frozen=True)
class EndpointVerdict:
    """One endpoint over all sampling seeds.

    judged: the verdict on the mean TSTR. replicates: TSTR of each seed's table, `minimum` the smallest. public: TSTR of
    public rows alone, lift = mean TSTR - public. jaccard, jaccard_real: top-k agreement with the test ranking of the
    synthetic (mean) and of the real arm, for the rank endpoint only.
    """

    judged: Preservation
    replicates: tuple[Value, ...]
    minimum: Value
    public: Value
    lift: Value
    jaccard: Value = None
    jaccard_real: Value = None

    def as_dict(self) -> dict[str, Any]:
        """Summary without arrays."""
        document: dict[str, Any] = {
            "tstr": self.judged.tstr,
            "trtr": self.judged.trtr,
            "preservation": self.judged.preservation,
            "skill": self.judged.skill,
            "lift": self.lift,
            "status": self.judged.status,
            "lcb_preservation": self.judged.lcb_preservation,
            "lcb_trtr": self.judged.lcb_trtr,
            "minimum": self.minimum,
        }
        if self.jaccard is not None:
            document |= {"jaccard": self.jaccard, "jaccard_real": self.jaccard_real}
        return document


@dataclass(frozen=True)
class UtilityVerdict:
    """The utility gate's answer; `evidence` holds the arrays it was computed from and stays restricted."""

    status: UtilityStatus
    endpoints: dict[EndpointName, EndpointVerdict]
    evidence: Evidence = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Summary without arrays: status and the endpoints by name."""
        return {"status": self.status, "endpoints": {name: v.as_dict() for name, v in self.endpoints.items()}}


def utility_gate(
    *,
    train: EncodedRows,
    replicates: Sequence[EncodedRows],
    test: EncodedRows,
    endpoints: Sequence[Endpoint],
    classes: int,
    groups: int = 20,
    public: EncodedRows | None = None,
) -> UtilityVerdict:
    """Judge R >= 5 synthetic tables of one generator against the real training rows on one frozen test split.

    train, test: real rows; replicates: one synthetic table per sampling seed, encoded again from their released form;
    public: public rows alone, for the private lift. All share one feature space: the cohort's frozen panel, over which
    the biomarker ranking is taken. classes: number of registered class labels. The verdict is on the mean TSTR over
    replicates; the jackknife deletes the same test groups in every arm.

    Raises ValueError for fewer than five replicates or differing feature spaces.
    """
    if len(replicates) < MINIMUM_REPLICATES:
        raise ValueError(f"{len(replicates)} synthetic tables: the utility gate needs at least {MINIMUM_REPLICATES}")
    if any(rows.features != test.features for rows in (train, *replicates, *([public] if public else []))):
        raise ValueError("all tables of the utility gate must have the test split's features")
    # Everything below is computed from rounded values, so that the evidence reproduces the verdict exactly.
    test = replace(test, x=np.round(test.x, 6), time=np.round(test.time, 6))
    real = freeze_arm(train, test, classes)
    synthetic = [freeze_arm(rows, test, classes) for rows in replicates]
    reference = freeze_arm(public, test, classes) if public is not None else None
    group = jackknife_groups(len(test), groups)
    verdicts = dict(split_verdicts(endpoints, real, synthetic, reference, test=test, group=group))
    return UtilityVerdict(
        status=utility_status(verdict.judged.status for verdict in verdicts.values()),
        endpoints=verdicts,
        evidence={
            "classes": classes,
            "groups": groups,
            "endpoints": [endpoint.model_dump() for endpoint in endpoints],
            "group": rounded(group),
            "label": rounded(test.label),
            "event": rounded(test.event),
            "time": rounded(test.time),
            "test_features": rounded(test.x),
            "arms": arms_evidence(real, synthetic, reference),
        },
    )


def split_verdicts(
    endpoints: Sequence[Endpoint],
    real: Arm,
    synthetic: Sequence[Arm],
    public: Arm | None,
    *,
    test: EncodedRows,
    group: IntArray,
) -> Iterator[tuple[EndpointName, EndpointVerdict]]:
    """Every endpoint over arms frozen on one test split; group [n] of its rows, group by group deleted."""
    importance = _reference(test, real.scores.shape[1])[None]
    kept = [group != g for g in range(int(group.max()) + 1)]
    for endpoint in endpoints:
        yield (
            endpoint.name,
            judge_endpoint(
                endpoint,
                value=partial(endpoint_value, endpoint.name, test=test),
                importance=importance,
                real=real,
                synthetic=synthetic,
                public=public,
                kept=kept,
            ),
        )


def arms_evidence(real: Arm, synthetic: Sequence[Arm], public: Arm | None) -> Evidence:
    """The frozen predictions of every arm by its name: real, synthetic_0, synthetic_1, ..., public."""
    arms = {"real": real, **{f"synthetic_{r}": arm for r, arm in enumerate(synthetic)}}
    if public is not None:
        arms["public"] = public
    return {
        name: {"scores": rounded(a.scores), "risk": rounded(a.risk), "importance": rounded(a.importance)}
        for name, a in arms.items()
    }


def judge_endpoint(
    endpoint: Endpoint,
    *,
    value: Callable[..., Value],
    importance: FloatArray,
    real: Arm,
    synthetic: Sequence[Arm],
    public: Arm | None,
    kept: Sequence[Mask],
) -> EndpointVerdict:
    """One endpoint over all arms: the mean TSTR judged against TRTR, the minimum, the private lift.

    value(arm, keep=mask): the endpoint of an arm on the held-out rows `keep`, on all of them without a mask.
    importance [folds, p]: the reference importance of the held-out rows of every fold (one fold in the utility gate),
    for the top-k agreement. kept: per jackknife group, the rows that stay.
    """
    single = tuple(value(arm) for arm in synthetic)
    judged = judge(
        tstr=_mean(single),
        trtr=value(real),
        tstr_groups=[_mean([value(arm, keep=keep) for arm in synthetic]) for keep in kept],
        trtr_groups=[value(real, keep=keep) for keep in kept],
        chance=endpoint.chance,
    )
    public_value = value(public) if public is not None else None
    defined = [v for v in single if v is not None]
    verdict = EndpointVerdict(
        judged=judged,
        replicates=tuple(_six(v) for v in single),
        minimum=_six(min(defined)) if len(defined) == len(single) else None,
        public=_six(public_value),
        lift=_six(judged.tstr - public_value) if judged.tstr is not None and public_value is not None else None,
    )
    if endpoint.name != "spearman":
        return verdict
    shared = [
        _mean(
            [
                top_k_jaccard(own, reference, endpoint.top_k)
                for own, reference in zip(np.atleast_2d(arm.importance), importance, strict=True)
            ]
        )
        for arm in (real, *synthetic)
    ]
    return replace(verdict, jaccard=_six(_mean(shared[1:])), jaccard_real=_six(shared[0]))


def _reference(test: EncodedRows, classes: int, keep: Mask | slice = slice(None)) -> FloatArray:
    """The reference importance F^test over the test rows `keep`, [p]."""
    return np.round(anova_f(test.x[keep], test.label[keep], classes), 6)


def _mean(values: Sequence[Value]) -> Value:
    defined = [v for v in values if v is not None]
    return float(np.mean(defined)) if len(defined) == len(values) else None


def _six(value: Value) -> Value:
    return None if value is None else round(value, 6)
