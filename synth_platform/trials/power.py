"""Power of the gates: how often would a fresh draw of the truth pass, on the rows that a cohort has? (8-1 §3.3, §3.4).

A verdict says little where the truth itself would often fail, and nothing in the verdict tells. Two ways to draw the
truth again:

world       a virtual cohort has a world: fresh people in R tables, each in its released form, against the real arm, by
            the rule of the gate in full (ratio, skill, hold). Real rows stay; the tables alone are drawn anew.
half_split  a real cohort has none: its training rows are split at random into two halves, one plays the synthetic arm.
            Both arms then have half the rows, and one table stands where the gate averages R, so preservation spreads
            wider and the real arm is sooner held uninformative than in the gate: a floor that is met here is met there.

Utility is tried in the registered design, on the test split or by cross-fitting; a world is drawn from for the former
alone. Membership has a law of its own, and so has the excess share. Seeds are public; nothing depends on a generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from synth_platform.contract.cohort_sections import EndpointName
from synth_platform.evaluation.calibration import excess_failure
from synth_platform.evaluation.closest_record import ClosestRecordVerdict, closest_record_gate
from synth_platform.evaluation.membership import confirmation_power, required_rows
from synth_platform.evaluation.null import registered_null
from synth_platform.evaluation.pooled import batch_groups, pool
from synth_platform.evaluation.preservation import Preservation, utility_status
from synth_platform.evaluation.statistics import jackknife_groups
from synth_platform.evaluation.utility import Arm, EndpointVerdict, freeze_arm, split_verdicts
from synth_platform.generators.controls import fit_control
from synth_platform.normalize.rows import EncodedRows, IntArray, concatenate
from synth_platform.sources.virtual import draw_fresh
from synth_platform.trials.cross_fit import DESIGN as CROSS_FIT
from synth_platform.trials.cross_fit import pooled_verdicts, split_fold
from synth_platform.trials.rows_needed import rows_needed
from synth_platform.trials.stage import Stage, trial_table

PASSING = frozenset({"PASS_CONFIRMED", "PASS_POINT"})
_SEED = 8_137_000

Document = Mapping[str, Any]
Judged = Mapping[EndpointName, EndpointVerdict]


def gate_power(stage: Stage) -> Document:
    """{"status": OK | LOW_POWER, "summary", "evidence", "registration"} of one cohort.

    summary: floor; by endpoint and for the whole utility gate, power over the registered draws; membership by its law;
    closest record by its law and by draws; `low` names whatever is below the floor.
    """
    spec = stage.spec
    seeds = [_SEED + draw for draw in range(spec.gates.power_draws)]
    tables = [fresh_tables(stage, seed) if spec.source.reader == "virtual" else () for seed in seeds]
    trial = UtilityTrial.of(stage)
    judged = [trial.judge(drawn, seed) for drawn, seed in zip(tables, seeds, strict=True)] if trial else []
    closest = [_closest_record(stage, drawn, seed) for drawn, seed in zip(tables, seeds, strict=True)]
    summary: dict[str, Any] = {
        "floor": spec.gates.power_floor,
        **_utility(stage, trial, judged, len(seeds)),
        "membership": _membership(stage),
        "closest_record": {
            "power": _share(verdict.status == "PASS" for verdict in closest),
            "false_alarm": _share(verdict.status == "FAIL" for verdict in closest),
            "excess_false_alarm": round(
                excess_failure(spec.synthetic.rows, spec.privacy.n_ref, spec.gates.excess_tolerance), 6
            ),
            "draws": len(seeds),
            "method": "world" if spec.source.reader == "virtual" else "public_gaussian",
        },
    }
    named = summary["utility"] | {name: summary[name] for name in ("utility_gate", "membership", "closest_record")}
    summary["low"] = [name for name, figures in named.items() if figures["power"] < spec.gates.power_floor]
    return {
        "status": "LOW_POWER" if summary["low"] else "OK",
        "summary": summary,
        "evidence": _evidence(seeds, judged, closest),
        "registration": spec.registration,
    }


def fresh_tables(stage: Stage, seed: int) -> tuple[EncodedRows, ...]:
    """R tables of S_ORACLE, made of the fresh people of `seed` as the control makes them of its own."""
    needed = stage.spec.synthetic.rows * len(stage.spec.synthetic.seeds)
    fresh = stage.correction.apply(stage.reference.encoder.encode(draw_fresh(stage.spec, needed, seed)))
    state = fit_control("S_ORACLE", reference=stage.reference, fresh=fresh)
    return tuple(trial_table(state, stage.spec, stage.reference, seed=s) for s in stage.spec.synthetic.seeds)


@dataclass(frozen=True)
class UtilityTrial:
    """The real side of the utility gate: training and held-out rows of every fold; the holdout design has one fold.

    fold, group [n] over all held-out rows: group is deleted by the jackknife.
    """

    stage: Stage
    training: Sequence[EncodedRows]
    held: Sequence[EncodedRows]
    fold: IntArray
    group: IntArray

    @classmethod
    def of(cls, stage: Stage) -> UtilityTrial | None:
        """The registered design; None where it has too few batches to be carried out, so that nothing ever passes."""
        gates = stage.spec.gates
        if gates.utility_design != CROSS_FIT:
            test = stage.real.where_split("test")
            test = replace(test, x=np.round(test.x, 6), time=np.round(test.time, 6))
            group = jackknife_groups(len(test), gates.groups)
            return cls(stage, [stage.real.where_split("train")], [test], np.zeros(len(test), np.int64), group)
        batches = len(np.unique(stage.rows.batch))
        if batches < gates.folds:
            return None
        assigned = batch_groups(stage.rows.batch, gates.folds)
        folds = [split_fold(stage.spec, stage.reference, stage.rows, assigned, k) for k in range(gates.folds)]
        held = [rows for _, _, rows in folds]
        fold = np.repeat(np.arange(gates.folds), [len(rows) for rows in held])
        group = batch_groups(concatenate(held).batch, min(gates.groups, batches))
        return cls(stage, [arm for _, arm, _ in folds], held, fold, group)

    @property
    def method(self) -> Literal["world", "half_split"]:
        """How the truth is drawn again."""
        holdout = self.stage.spec.gates.utility_design != CROSS_FIT
        return "world" if holdout and self.stage.spec.source.reader == "virtual" else "half_split"

    @cached_property
    def real(self) -> Arm:
        """The real arm of the holdout design."""
        return self._freeze(self.training[0], 0)

    def judge(self, tables: Sequence[EncodedRows], seed: int) -> Judged:
        """One draw judged: fresh tables of a world against the real arm, or half of the training rows against half."""
        if self.method == "world":
            return self._verdicts(self.real, [self._freeze(table, 0) for table in tables])
        rng = np.random.default_rng(seed)
        real, synthetic = [], []
        for k, rows in enumerate(self.training):
            order = rng.permutation(len(rows))
            real.append(self._freeze(rows.take(order[: len(rows) // 2]), k))
            synthetic.append(self._freeze(rows.take(order[len(rows) // 2 :]), k))
        if self.stage.spec.gates.utility_design != CROSS_FIT:
            return self._verdicts(real[0], synthetic)
        return self._verdicts(pool(real, self.fold), [pool(synthetic, self.fold)])

    def _freeze(self, training: EncodedRows, fold: int) -> Arm:
        return freeze_arm(training, self.held[fold], len(self.stage.spec.labels))

    def _verdicts(self, real: Arm, synthetic: Sequence[Arm]) -> Judged:
        endpoints, held = self.stage.spec.endpoints, concatenate(self.held)
        if self.stage.spec.gates.utility_design != CROSS_FIT:
            return dict(split_verdicts(endpoints, real, synthetic, None, test=held, group=self.group))
        return dict(pooled_verdicts(endpoints, real, synthetic, None, held_out=held, fold=self.fold, group=self.group))


def _utility(stage: Stage, trial: UtilityTrial | None, judged: Sequence[Judged], draws: int) -> dict[str, Any]:
    common = {"draws": draws, "method": trial.method if trial else "half_split"}
    rows, groups = (len(trial.group), int(trial.group.max()) + 1) if trial else (len(stage.rows), 0)
    return {
        "design": stage.spec.gates.utility_design,
        "utility": {
            endpoint.name: {
                "power": _share(_passes(verdicts[endpoint.name].judged) for verdicts in judged),
                "rows": rows,
                "rows_for_90": rows_needed(
                    [verdicts[endpoint.name].judged for verdicts in judged],
                    chance=endpoint.chance,
                    rows=rows,
                    groups=groups,
                ),
                **common,
            }
            for endpoint in stage.spec.endpoints
        },
        "utility_gate": {
            "power": _share(utility_status(v.judged.status for v in one.values()) in PASSING for one in judged),
            **common,
        },
    }


def _membership(stage: Stage) -> dict[str, Any]:
    """By the null law: given a table that nothing leaked into, scores of members and non-members are exchangeable.

    That takes a random split, and rows whose correction does not know it, as attacks score them.
    """
    gates = stage.spec.gates
    rows = min(len(stage.real.where_split("train")), len(stage.real.where_split("holdout", "test")))
    power = confirmation_power(gates.membership_limit, rows, rows, len(gates.attacks))
    return {
        "power": round(power, 6),
        "rows": rows,
        "required_rows": required_rows(gates.membership_limit, attacks=len(gates.attacks)),
    }


def _closest_record(stage: Stage, tables: Sequence[EncodedRows], seed: int) -> ClosestRecordVerdict:
    """A fresh table against the real rows; without a world, three independent samples of the public Gaussian."""
    real, gates = stage.real, stage.spec.gates
    if tables:
        return closest_record_gate(real.where_split("train"), real.where_split("holdout", "test"), tables[0], gates)
    drawn = registered_null(stage.spec, stage.reference).draw(seed)
    return closest_record_gate(drawn.train, drawn.holdout, drawn.synthetic, gates)


def _evidence(
    seeds: Sequence[int], judged: Sequence[Judged], closest: Sequence[ClosestRecordVerdict]
) -> dict[str, Any]:
    """Draw by draw, what the shares were counted from."""
    figures = ("tstr", "trtr", "preservation", "skill", "lcb_preservation", "lcb_trtr", "status")
    names = list(judged[0]) if judged else []
    return {
        "seeds": list(seeds),
        "utility": {n: {f: [getattr(one[n].judged, f) for one in judged] for f in figures} for n in names},
        "closest_record": {
            f: [getattr(verdict, f) for verdict in closest]
            for f in ("duplicates", "train_closer_upper", "excess_upper", "status")
        },
    }


def _passes(judged: Preservation) -> bool:
    return judged.status in PASSING


def _share(outcomes: Iterable[bool]) -> float:
    """Share of true outcomes, at six decimals; 0 where nothing could be tried."""
    counted = list(outcomes)
    return round(sum(counted) / len(counted), 6) if counted else 0.0
