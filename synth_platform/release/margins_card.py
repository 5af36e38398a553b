"""The card of synthetic tables made of margins: what is promised, which relations are kept, which are not, for what.

A relation is kept where one fitted margin holds all its variables. A fit of maximum entropy adds nothing to its
margins: a pair that no margin holds is related through others alone, and of a triple whose three pairs are held the
three-way interaction is nought. The card follows from public things (protected margins, fit, plan, recipe). No
figure that compares with private rows is on it: of such a figure and the tables beside it, exact counts are solved.
Where the publication policy says "aggregates", it tells bands of utility.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, get_args

from synth_platform.contract.census_spec import CensusSpec
from synth_platform.margins.fitting.fitted import FitReport
from synth_platform.margins.margin import MarginSet
from synth_platform.margins.measures.compared import Band
from synth_platform.release.margins_assurance import assurance

Document = Mapping[str, Any]
SIZES = ("two_way", "three_way")
SOURCE = {
    "method": "synthetic data from coarsened margins",
    "reference": "G. M. Raab (2026), arXiv 2606.02101",
}
UNREGISTERED = "NOT_REGISTERED"
NOTES = {
    "MARGINS_NOT_MATCHED": "The fit ended without matching every margin; the residuals say by how much.",
    UNREGISTERED: (
        "Made by `synth margins`, outside of a registered cohort: no data use agreement was looked up, no release was "
        "registered, and nobody but the person at the command reviewed it."
    ),
}
FOR = ("planning an analysis", "teaching", "developing and testing code before the real rows can be used")
NOT_FOR = (
    "estimates to be published or decided by: take them from the real rows",
    "relations named as not preserved, rare combinations and small groups",
    "statements about one person, or linking with other tables to look for people",
)
REPLICATES = (
    "Replicates are draws of one fit. Average an estimate over them; the variance between them, divided by their "
    "number, is what drawing alone adds to the average. It holds nothing of the uncertainty of the counts, of their "
    "protection or of the model: replicates are not independent evidence, and more of them do not make an interval "
    "for the population narrower."
)


def margins_card(
    *,
    spec: CensusSpec,
    protected: MarginSet,
    fit: FitReport,
    rows: int,
    disclosure: Document | None,
    utility: Document,
    decision: Document,
) -> dict[str, Any]:
    """The card in JSON values.

    protected: the margins that the tables were made of. rows: of each table. disclosure: the audit's document of policy
    `sdc`, None of `dp`. utility: the stored document, of which bands go out under publication "aggregates" and else
    nothing. decision: the decision document.
    """
    plan = spec.plan(decision["plan"])
    return {
        "title": spec.title,
        "cohort": spec.name,
        "plan": decision["plan"],
        "registration": decision["registration"],
        "assurance": assurance(spec, protected, disclosure, decision),
        "preserved": [
            {
                "margin": margin.title,
                "variables": list(margin.names),
                "residual": fit.residuals[margin.title],
                "matched": fit.residuals[margin.title] <= fit.tolerance,
                "provenance": list(margin.provenance),
            }
            for margin in protected
        ],
        "not_preserved": relations_lost(protected),
        "utility": _bands(utility) if spec.publication == "aggregates" else None,
        "fit": {
            "engine": fit.engine,
            "status": fit.status,
            "cycles": fit.cycles,
            "tolerance": fit.tolerance,
            "largest_residual": fit.largest_residual,
            "total": fit.total,
            "effective_sample_size": fit.effective_sample_size,
            "unreached": fit.unreached,
        },
        "tables": {
            "rows": rows,
            "replicates": plan.replicates,
            "seed": plan.seed,
            "how_to_combine": REPLICATES if plan.replicates > 1 else None,
        },
        "variables": [
            {"name": each.name, "kind": each.kind, "categories": len(each), "missing": each.missing}
            for each in protected.domain.variables
        ],
        "structural_zeros": [{name: list(labels) for name, labels in zero.categories} for zero in protected.zeros],
        "curation": _curation(spec),
        "use": {"for": list(FOR), "not_for": list(NOT_FOR)},
        "notes": {code: NOTES.get(code, code) for code in decision["notes"]},
        "source": SOURCE,
    }


def relations_lost(margins: MarginSet) -> dict[str, Any]:
    """Relations that no fitted margin holds, by name.

    pairs: of variables that no margin holds together. triples: three variables of which every pair is held but not all
    three, so that their three-way interaction is lost; `every` says that all triples are such, and then none is listed.
    largest: variables of the largest margin; every interaction of more is lost.
    """
    names = margins.domain.names
    held = [frozenset(margin.names) for margin in margins]
    pairs = {frozenset(pair) for each in held for pair in combinations(each, 2)}
    threes = {frozenset(triple) for each in held for triple in combinations(each, 3)}
    triples = [
        list(triple)
        for triple in combinations(names, 3)
        if frozenset(triple) not in threes and all(frozenset(pair) in pairs for pair in combinations(triple, 2))
    ]
    number = len(names) * (len(names) - 1) * (len(names) - 2) // 6
    every = bool(triples) and len(triples) == number
    return {
        "pairs": [list(pair) for pair in combinations(names, 2) if frozenset(pair) not in pairs],
        "triples": {"number": len(triples), "of": number, "every": every, "named": [] if every else triples},
        "largest": max(map(len, held)),
    }


def _bands(utility: Document) -> dict[str, Any]:
    """The worst band of a margin's tables as `status`, how many tables are in each band, and which are not good."""
    told: dict[str, Any] = {"status": utility["status"]}
    if "two_way" not in utility:
        return told
    return told | {
        "bands": {size: band_counts(utility[size]) for size in SIZES},
        "not_good": {
            size: [
                {"variables": list(table["names"]), "band": table["band"]}
                for table in utility[size]
                if table["band"] != "good"
            ]
            for size in SIZES
        },
    }


def band_counts(tables: Sequence[Document]) -> dict[str, int]:
    """How many tables of a utility document are in each band, the best first; bands without any are left out."""
    found = Counter(table["band"] for table in tables)
    return {band: found[band] for band in get_args(Band) if found[band]}


def _curation(spec: CensusSpec) -> dict[str, Any]:
    """The recipe, which is public, and which of its steps are not decided by it alone."""
    if spec.source.tables is not None:
        return {"source": "published tables", "recipe": None, "data_dependent": []}
    recipe = spec.recipe
    combined = [name for name, each in recipe.variables.items() if each.combine_below is not None]
    return {
        "source": "microdata",
        "recipe": recipe.model_dump(mode="json", exclude_defaults=True, exclude={"structural_zeros", "margins"}),
        "data_dependent": ["every column"] if recipe.combine_below is not None else combined,
    }
