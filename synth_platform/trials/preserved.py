"""What trial tables preserve on a stage's test split, without judging: for curves and benchmarks."""

from __future__ import annotations

import math

from synth_platform.contract.cohort_sections import EndpointName, Plan
from synth_platform.contract.cohort_spec import GeneratorCode
from synth_platform.evaluation.utility import score_table
from synth_platform.generators.build import FRESH_SEED
from synth_platform.generators.controls import fit_control
from synth_platform.generators.protocol import GeneratorState
from synth_platform.normalize.rows import EncodedRows
from synth_platform.sources.virtual import draw_fresh
from synth_platform.trials.stage import Stage, fit_trial, trial_table

ENDPOINTS: tuple[EndpointName, ...] = ("c_index", "macro_f1", "auroc", "spearman")
Scores = dict[EndpointName, float]  # NaN where an endpoint is not defined


def real_scores(stage: Stage) -> Scores:
    """TRTR of every endpoint."""
    return _scores(stage, stage.real.where_split("train"))


def table_scores(stage: Stage, state: GeneratorState, seed: int) -> Scores:
    """TSTR of one table, in the form it would be released in."""
    return _scores(stage, trial_table(state, stage.spec, stage.reference, seed=seed))


def preserved(table: Scores, real: Scores) -> Scores:
    """P = TSTR / TRTR of every endpoint; NaN where TRTR is 0."""
    return {name: table[name] / real[name] if real[name] else math.nan for name in ENDPOINTS}


def fit_at(stage: Stage, code: GeneratorCode, epsilon: float, *, seed: int) -> GeneratorState:
    """The DP generator trained on the training split at epsilon and the domain's delta, with the noise of `seed`."""
    plan = Plan(epsilon=epsilon, delta=stage.spec.privacy.budget.delta)
    return fit_trial(code, stage.spec, stage.reference, plan, stage.rows.where_split("train"), seed=seed)


def oracle(stage: Stage, *, tables: int) -> GeneratorState | None:
    """S_ORACLE: fresh rows of the truth, enough for so many tables; None where nobody can draw any."""
    if stage.spec.source.reader != "virtual":
        return None
    drawn = draw_fresh(stage.spec, stage.spec.synthetic.rows * tables, FRESH_SEED)
    fresh = stage.correction.apply(stage.reference.encoder.encode(drawn))
    return fit_control("S_ORACLE", reference=stage.reference, fresh=fresh)


def _scores(stage: Stage, rows: EncodedRows) -> Scores:
    values = score_table(rows, stage.real.where_split("test"), len(stage.spec.labels))
    return {name: math.nan if (value := values[name]) is None else value for name in ENDPOINTS}
