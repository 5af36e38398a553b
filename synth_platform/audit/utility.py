"""G3, utility: every endpoint again from scores, risks, importances and test features (8-1 §3.2, §3.3)."""

from __future__ import annotations

from collections import Counter
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
FIGURES = ("tstr", "trtr", "preservation", "skill", "lcb_preservation", "lcb_trtr", "minimum", "lift")

Value = Fraction | float | None
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class TestRows:
    """The held-out rows: features [n, p], label, event, time and fold [n]; a frozen test split is one fold."""

    x: FloatArray
    label: IntArray
    event: IntArray
    time: FloatArray
    fold: IntArray

    def within(self, keep: Mask) -> list[IntArray]:
        """Positions of the rows `keep`, fold by fold."""
        return [np.flatnonzero(keep & (self.fold == k)) for k in range(int(self.fold.max()) + 1)]


@dataclass(frozen=True)
class Arm:
    """One training table's predictions: scores [n, K], risk [n], and importance [p] by fold.

    An importance that is not defined everywhere is None.
    """

    scores: FloatArray
    risk: FloatArray
    importance: list[list[float] | None]


def audit_cross_fit(found: Findings, name: str, document: Document, registered: Document) -> None:
    """The same over all private rows, fold by fold; a design that is not registered claims nothing."""
    summary = mapping(document, "summary")
    wanted = item(registered, "gates", "utility_design") == "cross_fit"
    status = text(summary, "status")
    found.same(f"{name}/registered", "registration", status != "NOT_REGISTERED", wanted)
    if status == "NOT_REGISTERED":
        return
    if "fault" in summary:  # too few batches for the folds: nothing was fitted, and nothing passes
        found.same(f"{name}/status", "status", status, "HOLD")
        return
    evidence = mapping(document, "evidence")
    found.same(f"{name}/folds", "registration", whole(evidence, "folds"), whole(registered, "gates", "folds"))
    fold = codes(evidence, "fold").tolist()
    homes = {batch: set() for batch in sequence(evidence, "batch")}  # type: dict[int, set[int]]
    for batch, home in zip(sequence(evidence, "batch"), fold, strict=True):
        homes[batch].add(home)
    found.holds(f"{name}/batches", "fold", all(len(own) == 1 for own in homes.values()), "a batch is in two folds")
    audit_utility(found, name, document, registered)


def audit_utility(found: Findings, name: str, document: Document, registered: Document) -> None:
    """Recompute every figure and status of one utility document. name: `G3/<generator>/<document>`."""
    evidence, summary = mapping(document, "evidence"), mapping(document, "summary")
    classes, groups = whole(evidence, "classes"), whole(evidence, "groups")
    found.same(f"{name}/classes", "registration", classes, item(registered, "classes"))
    batches = len(set(sequence(evidence, "batch"))) if "batch" in evidence else len(sequence(evidence, "label"))
    wanted = min(whole(registered, "gates", "groups"), batches)
    found.same(f"{name}/groups", "registration", groups, wanted)
    found.same(f"{name}/endpoints", "registration", item(evidence, "endpoints"), item(registered, "endpoints"))
    test, arms = _read(evidence, classes)
    group = codes(evidence, "group", shape=(len(test.label),))
    found.same(f"{name}/group", "jackknife", group.tolist(), _dealt(evidence, len(group), groups), public=False)
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
        if _cannot_contribute(code, self.test, self.real.scores.shape[1]):
            undefined_figures = {key: figure(claimed, key) for key in FIGURES}
            found_nothing = dict.fromkeys(FIGURES)
            self.found.same(f"{name}/undefined", code, undefined_figures, found_nothing, public=False)
            self.found.same(f"{name}/status", "status", item(claimed, "status"), "HOLD_UNDEFINED")
            return
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
        folds = self.test.within(np.ones(len(self.test.label), bool))
        references = [anova(self.test.x[rows], self.test.label[rows]) for rows in folds]
        shared = [
            _mean([_agreement(own, reference, k) for own, reference in zip(arm.importance, references, strict=True)])
            for arm in (self.real, *self.synthetic)
        ]
        for key, own in (("jaccard", _mean(shared[1:])), ("jaccard_real", shared[0])):
            if own is not None or key in claimed:
                self.found.close(f"{name}/{key}", "jaccard", figure(claimed, key), own)


def _values(code: str, test: TestRows, kept: Sequence[Mask]) -> Callable[[Arm, int], Value]:
    """The endpoint `code` of an arm on the test rows kept[i]."""
    folds = [test.within(keep) for keep in kept]
    if code == "c_index":
        return lambda arm, i: _concordance(arm, test, folds[i])
    if code == "macro_f1":
        return lambda arm, i: macro_f1(arm.scores[kept[i]], test.label[kept[i]])
    if code == "auroc":
        return lambda arm, i: one_against_rest([(arm.scores[rows], test.label[rows]) for rows in folds[i]])
    ranked = [[_ranks(anova(test.x[rows], test.label[rows])) for rows in members] for members in folds]
    importances: dict[int, list[list[int] | None]] = {}

    def correlation(arm: Arm, i: int) -> Value:
        own = importances.setdefault(id(arm), [None if v is None else twice_ranks(v) for v in arm.importance])
        pairs = [(a, b) for a, b in zip(own, ranked[i], strict=True) if a is not None and b is not None]
        return _mean([value for a, b in pairs if (value := rank_correlation(a, b)) is not None])

    return correlation


def _concordance(arm: Arm, test: TestRows, folds: Sequence[IntArray]) -> Value:
    counts = [concordance(arm.risk[rows], test.time[rows], test.event[rows]) for rows in folds]
    pairs = sum(total for _, total in counts)
    return Fraction(sum(won for won, _ in counts), pairs) if pairs else None


def _cannot_contribute(code: str, test: TestRows, classes: int) -> bool:
    """Whether some fold of several lacks a class, or a comparable pair of survival times."""
    folds = test.within(np.ones(len(test.label), bool))
    if len(folds) == 1:
        return False
    if code == "c_index":
        return any(concordance(test.time[rows], test.time[rows], test.event[rows])[1] == 0 for rows in folds)
    return any(len(set(test.label[rows].tolist())) < classes for rows in folds)


def _ranks(reference: FloatArray | None) -> list[int] | None:
    return None if reference is None else twice_ranks(reference.tolist())


def _agreement(own: list[float] | None, reference: FloatArray | None, k: int) -> Value:
    if own is None or reference is None:
        return None
    first, second = top_k(own, k), top_k(reference.tolist(), k)
    return Fraction(len(first & second), len(first | second))


def _read(evidence: Document, classes: int) -> tuple[TestRows, dict[str, Arm]]:
    label = codes(evidence, "label")
    n = len(label)
    test = TestRows(
        x=array(evidence, "test_features", shape=(n, None)),
        label=label,
        event=codes(evidence, "event", shape=(n,)),
        time=array(evidence, "time", shape=(n,)),
        fold=codes(evidence, "fold", shape=(n,)) if "fold" in evidence else np.zeros(n, np.int64),
    )
    if n == 0 or not (label >= 0).all() or not (label < classes).all():
        raise MalformedError("label")
    if not np.isin(test.event, (0, 1)).all():
        raise MalformedError("event")
    arms = {
        name: Arm(
            scores=array(evidence, "arms", name, "scores", shape=(n, classes)),
            risk=array(evidence, "arms", name, "risk", shape=(n,)),
            importance=_importance(evidence, name, test.x.shape[1], int(test.fold.max()) + 1),
        )
        for name in mapping(evidence, "arms")
    }
    return test, arms


def _importance(evidence: Document, arm: str, features: int, folds: int) -> list[list[float] | None]:
    path = ("arms", arm, "importance")
    listed = sequence(evidence, *path) if "fold" in evidence else [sequence(evidence, *path)]
    if len(listed) != folds:
        raise MalformedError(".".join(path))
    return [_row(values, features, path) for values in listed]


def _row(values: list[Any], features: int, path: tuple[str, ...]) -> list[float] | None:
    if isinstance(values, list) and None in values and len(values) == features:
        return None
    try:
        row: list[float] = array({"row": values}, "row", shape=(features,)).tolist()
    except MalformedError:
        raise MalformedError(".".join(path)) from None
    return row


def _dealt(evidence: Document, n: int, groups: int) -> list[int]:
    """The registered jackknife groups: rows of a seeded permutation dealt out in turn, or whole batches where there are
    folds, the largest first, each to the smallest group so far."""
    group = [0] * n
    if "batch" in evidence:
        batch = codes(evidence, "batch", shape=(n,)).tolist()
        sizes = Counter(batch)
        filled = [0] * groups
        group_of = {}
        for code in sorted(sizes, key=lambda code: (-sizes[code], code)):
            group_of[code] = filled.index(min(filled))
            filled[group_of[code]] += sizes[code]
        return [group_of[code] for code in batch]
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
