"""G3, utility: every endpoint again from scores, risks, importances and test features (8-1 §3.2, §3.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from synth_platform.audit.findings import Findings, MalformedError
from synth_platform.audit.reading import (
    Document,
    FloatArray,
    IntArray,
    array,
    codes,
    figure,
    item,
    mapping,
    number,
    sequence,
    text,
    whole,
)
from synth_platform.audit.rules import preservation_status, preserved, utility_status
from synth_platform.audit.statistics import (
    anova,
    concordance,
    macro_f1,
    one_against_rest,
    rank_correlation,
    top_k,
    twice_ranks,
)

# A jackknife value that lies on the edge of two sixth decimals may be rounded either way; its bound then moves by less.
BOUND = 3e-6
GROUP_SEED = 8_133

Value = Fraction | float | None
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class TestRows:
    """The frozen test split: features [n, p], label, event and time [n]."""

    x: FloatArray
    label: IntArray
    event: IntArray
    time: FloatArray


@dataclass(frozen=True)
class Arm:
    """One training table's predictions: scores [n, K], risk [n]; importance [p], None where a value is not defined."""

    scores: FloatArray
    risk: FloatArray
    importance: list[float] | None


def audit_utility(found: Findings, name: str, document: Document, registered: Document) -> None:
    """Recompute every figure and status of one utility document. name: `G3/<generator>/<document>`."""
    evidence, summary = mapping(document, "evidence"), mapping(document, "summary")
    classes, groups = whole(evidence, "classes"), whole(evidence, "groups")
    found.same(f"{name}/classes", "registration", classes, item(registered, "classes"))
    found.same(f"{name}/groups", "registration", groups, item(registered, "gates", "groups"))
    found.same(f"{name}/endpoints", "registration", item(evidence, "endpoints"), item(registered, "endpoints"))
    test, arms = _read(evidence, classes)
    group = codes(evidence, "group", shape=(len(test.label),))
    found.same(f"{name}/group", "jackknife", group.tolist(), _dealt(len(group), groups), public=False)
    replicates = [arms[f"synthetic_{r}"] for r in range(len(sequence(registered, "seeds")))]
    found.same(f"{name}/arms", "length", sorted(arms), sorted([*_expected_arms(registered), *_public(arms)]))
    kept = [group != g for g in range(groups)]
    judge = _Judge(found, test, arms["real"], replicates, arms.get("public"), kept)
    statuses = []
    for endpoint in sequence(registered, "endpoints"):
        code = text(endpoint, "name")
        with found.section(f"{name}/{code}"):
            claimed = mapping(summary, "endpoints", code)
            judge.endpoint(f"{name}/{code}", claimed, endpoint)
            statuses.append(text(claimed, "status"))
    found.same(f"{name}/status", "status", item(summary, "status"), utility_status(statuses))


@dataclass(frozen=True)
class _Judge:
    found: Findings
    test: TestRows
    real: Arm
    synthetic: Sequence[Arm]
    public: Arm | None
    kept: Sequence[Mask]

    def endpoint(self, name: str, claimed: Document, registered: Document) -> None:
        """All figures of one endpoint and the status that follows from the claimed ones."""
        code, chance = text(registered, "name"), number(registered, "chance")
        everyone = np.ones(len(self.test.label), bool)
        value = _values(code, self.test, [everyone, *self.kept])
        single = [value(arm, 0) for arm in self.synthetic]
        tstr, trtr = _mean(single), value(self.real, 0)
        own = preserved(
            tstr,
            trtr,
            [_mean([value(arm, 1 + g) for arm in self.synthetic]) for g in range(len(self.kept))],
            [value(self.real, 1 + g) for g in range(len(self.kept))],
            chance,
        )
        public = None if self.public is None else value(self.public, 0)
        undefined = tstr is None or public is None
        figures: dict[str, tuple[Value, float]] = {
            "tstr": (tstr, 0.6e-6),
            "trtr": (trtr, 0.6e-6),
            "preservation": (own.preservation, BOUND),
            "skill": (own.skill, 3e-5),
            "lcb_preservation": (own.lcb_preservation, BOUND),
            "lcb_trtr": (own.lcb_trtr, BOUND),
            "minimum": (None if None in single else min(v for v in single if v is not None), 0.6e-6),
            "lift": (None if undefined else float(tstr or 0) - float(public or 0), 1.1e-6),
        }
        for figure_name, (own_value, tolerance) in figures.items():
            kind = "jackknife" if figure_name.startswith("lcb") else code
            self.found.close(
                f"{name}/{figure_name}", kind, figure(claimed, figure_name), own_value, tolerance=tolerance
            )
        self._exact_ratios(name, claimed, chance)
        status = preservation_status(
            tstr=figure(claimed, "tstr"),
            trtr=figure(claimed, "trtr"),
            lcb_trtr=figure(claimed, "lcb_trtr"),
            lcb_preservation=figure(claimed, "lcb_preservation"),
            chance=chance,
        )
        self.found.same(f"{name}/status", "status", item(claimed, "status"), status)
        if code == "spearman":
            self._jaccard(name, claimed, whole(registered, "top_k"))

    def _exact_ratios(self, name: str, claimed: Document, chance: float) -> None:
        """P and S are fractions of the claimed figures: held to the last decimal."""
        again = preserved(figure(claimed, "tstr"), figure(claimed, "trtr"), (0.5, 0.5), (0.5, 0.5), chance)
        if figure(claimed, "lcb_trtr") is not None:
            for ratio, value in (("preservation", again.preservation), ("skill", again.skill)):
                self.found.close(f"{name}/{ratio}/exact", "ratio", figure(claimed, ratio), value)

    def _jaccard(self, name: str, claimed: Document, k: int) -> None:
        reference = anova(self.test.x, self.test.label)
        shared: list[Value] = []
        for arm in (self.real, *self.synthetic):
            if arm.importance is None or reference is None:
                shared.append(None)
                continue
            first, second = top_k(arm.importance, k), top_k(reference.tolist(), k)
            shared.append(Fraction(len(first & second), len(first | second)))
        for key, own in (("jaccard", _mean(shared[1:])), ("jaccard_real", shared[0])):
            if own is not None or key in claimed:
                self.found.close(f"{name}/{key}", "jaccard", figure(claimed, key), own)


def _values(code: str, test: TestRows, kept: Sequence[Mask]) -> Callable[[Arm, int], Value]:
    """The endpoint `code` of an arm on the test rows kept[i]."""
    if code != "spearman":
        compute: dict[str, Callable[[Arm, Mask], Value]] = {
            "c_index": lambda arm, keep: concordance(arm.risk[keep], test.time[keep], test.event[keep]),
            "macro_f1": lambda arm, keep: macro_f1(arm.scores[keep], test.label[keep]),
            "auroc": lambda arm, keep: one_against_rest(arm.scores[keep], test.label[keep]),
        }
        chosen = compute[code]
        return lambda arm, i: chosen(arm, kept[i])
    references = [anova(test.x[keep], test.label[keep]) for keep in kept]
    ranked = [None if reference is None else twice_ranks(reference.tolist()) for reference in references]

    def correlation(arm: Arm, i: int) -> Value:
        reference = ranked[i]
        if arm.importance is None or reference is None:
            return None
        return rank_correlation(twice_ranks(arm.importance), reference)

    return correlation


def _read(evidence: Document, classes: int) -> tuple[TestRows, dict[str, Arm]]:
    label = codes(evidence, "label")
    n = len(label)
    test = TestRows(
        x=array(evidence, "test_features", shape=(n, None)),
        label=label,
        event=codes(evidence, "event", shape=(n,)),
        time=array(evidence, "time", shape=(n,)),
    )
    if n == 0 or not (label >= 0).all() or not (label < classes).all():
        raise MalformedError("label")
    if not np.isin(test.event, (0, 1)).all():
        raise MalformedError("event")
    arms = {
        name: Arm(
            scores=array(evidence, "arms", name, "scores", shape=(n, classes)),
            risk=array(evidence, "arms", name, "risk", shape=(n,)),
            importance=_importance(evidence, name, test.x.shape[1]),
        )
        for name in mapping(evidence, "arms")
    }
    return test, arms


def _importance(evidence: Document, arm: str, features: int) -> list[float] | None:
    values = sequence(evidence, "arms", arm, "importance")
    if None in values and len(values) == features:
        return None
    ranked: list[float] = array(evidence, "arms", arm, "importance", shape=(features,)).tolist()
    return ranked


def _dealt(n: int, groups: int) -> list[int]:
    """The registered jackknife groups: a seeded permutation of the rows, dealt out in turn."""
    group = [0] * n
    for position, row in enumerate(np.random.default_rng(GROUP_SEED).permutation(n).tolist()):
        group[row] = position % groups
    return group


def _expected_arms(registered: Document) -> list[str]:
    return ["real", *(f"synthetic_{r}" for r in range(len(sequence(registered, "seeds"))))]


def _public(arms: dict[str, Arm]) -> list[str]:
    return ["public"] if "public" in arms else []


def _mean(values: Sequence[Value]) -> Value:
    defined = [value for value in values if value is not None]
    if len(defined) < len(values) or not defined:
        return None
    exact = [value for value in defined if isinstance(value, Fraction)]
    if len(exact) == len(defined):
        return sum(exact, Fraction()) / len(exact)
    return sum(map(float, defined)) / len(defined)
