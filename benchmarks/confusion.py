"""The confusion table of docs/gates.md: controls of known verdict on fresh worlds, and power against what passed.

    python -m benchmarks.confusion                  the 20 worlds of the table
    python -m benchmarks.confusion --worlds 101 104

Every world is the virtual cohort with another world seed, judged as the assets judge it: control, tables in their
released form, all gates, decision. A control is judged right where `evaluation.controls` finds nothing to say. The
second table holds how often S_ORACLE, a fresh draw of the truth, passed each endpoint and gate against the mean power
that `gates/power` predicts in the same worlds; the p-value is that of so many passes or a count further from what is
expected, if each world passed with its own power. Membership's power is a lower bound, so only fewer passes speak
against it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from synth_platform.contract.cohort_spec import CONTROLS, CohortSpec, GeneratorCode, load_cohort_spec
from synth_platform.evaluation.controls import misjudged
from synth_platform.evaluation.gates import GATES, INFERENCE_GATE
from synth_platform.generators.build import fresh_rows
from synth_platform.generators.controls import fit_control
from synth_platform.generators.registry import sample
from synth_platform.normalize.replicates import draw_replicates
from synth_platform.privacy.ledger import Ledger
from synth_platform.privacy.statistic_store import StatisticStore
from synth_platform.release.assess import assess
from synth_platform.sources.read import read_cohort
from synth_platform.trials.power import PASSING, gate_power
from synth_platform.trials.stage import Stage, make_stage

VIRTUAL = Path(__file__).resolve().parents[1] / "cohorts" / "virtual"
WORLDS = tuple(range(101, 121))
Document = Mapping[str, Any]


def world_stage(seed: int, draws: int | None = None) -> Stage:
    """The virtual cohort in another world."""
    spec = load_cohort_spec(VIRTUAL / "cohort.yaml")
    source = spec.source.model_copy(update={"options": spec.source.options | {"world_seed": seed}})
    gates = spec.gates.model_copy(update={} if draws is None else {"power_draws": draws})
    spec = spec.model_copy(update={"source": source, "gates": gates})
    return make_stage(spec, read_cohort(spec, VIRTUAL))


def judge_controls(stage: Stage, power: Document) -> dict[GeneratorCode, Document]:
    """The decision document of every control, by the functions that the assets call."""
    with tempfile.TemporaryDirectory() as folder:
        ledger, store = Ledger(f"sqlite:///{folder}/ledger.db"), StatisticStore(Path(folder))
        return {code: _decision(code, stage, power, ledger, store) for code in CONTROLS}


def _decision(code: GeneratorCode, stage: Stage, power: Document, ledger: Ledger, store: StatisticStore) -> Document:
    spec: CohortSpec = stage.spec
    state = fit_control(
        code,
        reference=stage.reference,
        train=stage.real.where_split("train"),
        fresh=fresh_rows(spec, stage.reference, stage.correction),
    )
    tables = draw_replicates(
        lambda seed: sample(state, rows=spec.synthetic.rows, seed=seed),
        stage.reference.encoder,
        spec.synthetic.seeds,
    )
    verdicts = {
        gate.name: gate.judge(spec, stage.reference, stage.real, stage.attacked, tables)
        for gate in (*GATES, INFERENCE_GATE)
    }
    return assess(
        spec=spec,
        code=code,
        plan_key=None,
        tables=tables,
        state=state,
        verdicts=verdicts,
        power=power,
        ledger=ledger,
        store=store,
    ).as_dict()


@dataclass(frozen=True)
class Agreement:
    """One endpoint or gate over worlds: passes of S_ORACLE and the power predicted in each world.

    draws: over which a power was counted; None where it is a lower bound by theory.
    """

    name: str
    passes: int
    predicted: tuple[float, ...]
    draws: int | None

    @property
    def bound(self) -> bool:
        """Whether the power is a lower bound."""
        return self.draws is None

    @property
    def p_value(self) -> float:
        """Of the passes, as if each world passed with its predicted power.

        A power counted over draws is itself uncertain: it is drawn from its posterior at Jeffreys' prior.
        """
        rng = np.random.default_rng(1)
        power = np.array(self.predicted)
        if self.draws is not None:
            counted = np.round(power * self.draws)
            power = rng.beta(counted + 0.5, self.draws - counted + 0.5, size=(20_000, len(power)))
        simulated = (rng.random((20_000, len(self.predicted))) < power).sum(axis=1)
        below, above = float((simulated <= self.passes).mean()), float((simulated >= self.passes).mean())
        return below if self.bound else min(1.0, 2 * min(below, above))


def agreements(decisions: Sequence[Document], powers: Sequence[Document]) -> list[Agreement]:
    """S_ORACLE's decisions and the power summaries of the same worlds, endpoint by endpoint and gate by gate."""
    rows = []
    for name in powers[0]["utility"]:
        passed = sum(decision["endpoints"][name]["status"] in PASSING for decision in decisions)
        predicted = tuple(power["utility"][name]["power"] for power in powers)
        rows.append(Agreement(name, passed, predicted, powers[0]["utility"][name]["draws"]))
    gates = {
        "utility_gate": lambda d: d["utility"]["status"] in PASSING,
        "closest_record": lambda d: d["closest_record"]["status"] == "PASS",
        "membership": lambda d: d["membership"]["status"] == "PASS_CONFIRMED",
    }
    for name, passes in gates.items():
        predicted = tuple(power[name]["power"] for power in powers)
        rows.append(Agreement(name, sum(map(passes, decisions)), predicted, powers[0][name].get("draws")))
    return rows


def interval(count: int, trials: int) -> tuple[float, float]:
    """Two-sided 95 % Clopper-Pearson interval."""
    lower = beta.ppf(0.025, count, trials - count + 1) if count else 0.0
    upper = beta.ppf(0.975, count + 1, trials - count) if count < trials else 1.0
    return float(lower), float(upper)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs=2, type=int, default=(WORLDS[0], WORLDS[-1]), metavar=("FIRST", "LAST"))
    first, last = parser.parse_args().worlds
    judged, powers = [], []
    for seed in range(first, last + 1):
        stage = world_stage(seed)
        power = gate_power(stage)
        decisions = judge_controls(stage, power)
        judged.append(decisions)
        powers.append(power["summary"])
        for code, decision in decisions.items():
            for fault in misjudged(decision):
                print(f"world {seed}: {code}: {fault}: {_why(decision)}", flush=True)
    n = len(judged)
    print(f"\n| control | judged right, of {n} | utility | closest record | membership | inference | ledger |")
    print("|---|---|---|---|---|---|---|")
    for code in CONTROLS:
        own = [decisions[code] for decisions in judged]
        right = sum(not misjudged(decision) for decision in own)
        parts = ("utility", "closest_record", "membership", "inference", "ledger")
        cells = [_counts(decision[part]["status"] for decision in own) for part in parts]
        print(f"| `{code}` | {right} | {' | '.join(cells)} |")
    print(f"\n| endpoint or gate | S_ORACLE passes, of {n} | 95 % interval | mean power predicted | p-value |")
    print("|---|---|---|---|---|")
    for row in agreements([decisions["S_ORACLE"] for decisions in judged], powers):
        lower, upper = interval(row.passes, n)
        print(
            f"| {row.name} | {row.passes} | {lower:.2f}–{upper:.2f} | {'at least ' if row.bound else ''}"
            f"{np.mean(row.predicted):.3f} | {row.p_value:.2f} |"
        )


def _counts(statuses: Any) -> str:
    return ", ".join(f"{status} {count}" for status, count in sorted(Counter(statuses).items()))


def _why(decision: Document) -> str:
    endpoints = {name: e["status"] for name, e in decision["endpoints"].items() if e["status"] not in PASSING}
    shares = {k: decision["closest_record"][k] for k in ("duplicates", "train_closer_upper", "excess_upper")}
    aurocs = {name: attack["auroc"] for name, attack in decision["membership"]["attacks"].items()}
    return f"{endpoints} {shares} {aurocs} inference {decision['inference']['status']}"


if __name__ == "__main__":
    main()
