"""G3, utility: every endpoint again from scores, risks, importances and test features (8-1 §3.2, §3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_platform.audit.endpoints import Value, agreement, cannot_contribute, endpoint_values, mean
from synth_platform.audit.findings import Findings
from synth_platform.audit.reading import Document, codes, figure, item, mapping, number, sequence, text, whole
from synth_platform.audit.rules import preservation_status, preserved, utility_status
from synth_platform.audit.statistics import anova
from synth_platform.audit.utility_rows import Arm, HeldOut, Mask, read_rows

# A jackknife value that lies on the edge of two sixth decimals may be rounded either way; its bound then moves by less.
BOUND = 3e-6
GROUP_SEED = 8_133
FIGURES = ("tstr", "trtr", "preservation", "skill", "lcb_preservation", "lcb_trtr", "minimum", "lift")


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
    homes: dict[int, set[int]] = {}
    for batch, home in zip(sequence(evidence, "batch"), fold, strict=True):
        homes.setdefault(batch, set()).add(home)
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
    test, arms = read_rows(evidence, classes)
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
    test: HeldOut
    real: Arm
    synthetic: Sequence[Arm]
    public: Arm | None
    kept: Sequence[Mask]

    def endpoint(self, name: str, claimed: Document, registered: Document) -> None:
        """All figures of one endpoint and the status that follows from the claimed ones."""
        code, chance = text(registered, "name"), number(registered, "chance")
        everyone = np.ones(len(self.test.label), bool)
        if cannot_contribute(code, self.test, self.real.scores.shape[1]):
            undefined_figures = {key: figure(claimed, key) for key in FIGURES}
            found_nothing = dict.fromkeys(FIGURES)
            self.found.same(f"{name}/undefined", code, undefined_figures, found_nothing, public=False)
            self.found.same(f"{name}/status", "status", item(claimed, "status"), "HOLD_UNDEFINED")
            return
        value = endpoint_values(code, self.test, [everyone, *self.kept])
        single = [value(arm, 0) for arm in self.synthetic]
        tstr, trtr = mean(single), value(self.real, 0)
        own = preserved(
            tstr,
            trtr,
            [mean([value(arm, 1 + g) for arm in self.synthetic]) for g in range(len(self.kept))],
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
            mean([agreement(own, reference, k) for own, reference in zip(arm.importance, references, strict=True)])
            for arm in (self.real, *self.synthetic)
        ]
        for key, own in (("jaccard", mean(shared[1:])), ("jaccard_real", shared[0])):
            if own is not None or key in claimed:
                self.found.close(f"{name}/{key}", "jaccard", figure(claimed, key), own)


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
