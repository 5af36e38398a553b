"""G4, the package of margins: files and checksums, the decision, the card's word, no count but released ones.

Of utility it may hold bands of tables, and those only where that is registered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from synth_platform.audit.decisions import audit_package
from synth_platform.audit.findings import Findings, MalformedError
from synth_platform.audit.ledger import Book
from synth_platform.audit.margins_tables import Counted, Space, title
from synth_platform.audit.reading import Document, canonical, item, mapping, number, sequence, text

FILES = (
    "README.md",
    "card.json",
    "data_dictionary.csv",
    "decision.json",
    "domain.json",
    "provenance.json",
    "table.csv",
)
MARGIN = "margin_"
CARD = (
    "assurance",
    "cohort",
    "curation",
    "fit",
    "not_preserved",
    "notes",
    "plan",
    "preserved",
    "registration",
    "source",
    "structural_zeros",
    "tables",
    "title",
    "use",
    "utility",
    "variables",
)
BANDS = ("acceptable", "good", "poor")
_RELATIVE = 1e-12


def audit_margins_package(
    found: Findings, stage: str, evidence: Document, space: Space, released: Sequence[Counted], book: Book
) -> None:
    """The package is that of the decision and holds no count but the released ones."""
    name, package = f"G4/{stage}/package", mapping(evidence, "package")
    registered, decision = mapping(evidence, "registered"), mapping(evidence, "documents", "decision")
    found.same(f"{name}/eligible", "package", item(decision, "decision") != "BLOCKED", True)
    opened = text(registered, "publication") == "aggregates"
    published = dict(decision) if opened else {**decision, "utility": None}
    found.same(f"{name}/decision", "package", item(package, "decision"), published, public=False)
    replicates = sequence(evidence, "synthetic")
    due = {*FILES, *(f"table{'' if n == 1 else f'_{n}'}.parquet" for n in range(1, len(replicates) + 1))}
    due |= {"structural_zeros.json"} if space.zeros else set()
    due |= {"ledger.json"} if stage == "dp_margins" else {"disclosure.json"}
    files, listed = mapping(package, "files"), mapping(package, "checksums")
    rest = sorted(file for file in files if not file.startswith(MARGIN))
    found.same(f"{name}/files", "package", rest, sorted(due))
    for file in sorted({*files, *listed}):
        found.same(f"{name}/{file}/sha256", "package_hash", listed.get(file), files.get(file))
    _card(found, name, package, decision)
    told = _bands(mapping(evidence, "documents", "utility_gate")) if opened else None
    found.same(f"{name}/card/fields", "card", sequence(package, "card", "fields"), list(CARD))
    # As text: to a comparison of values True is 1 and 1.0 is 1.
    said = canonical(item(package, "card", "utility"))
    found.same(f"{name}/card/utility", "card", said, canonical(told), public=False)
    named = [item(each, "sha256") for each in replicates]
    found.same(f"{name}/tables", "package", sequence(package, "tables"), named, public=False)
    _counts(found, name, sequence(package, "margins"), space, released)
    if stage == "dp_margins":
        # What a policy keeps back of the decision was compared above.
        audit_package(found, stage, package, published, {**registered, "publication": "aggregates"}, book)
    else:
        gate = item(evidence, "documents", "disclosure_gate")
        found.same(f"{name}/disclosure", "package", item(package, "disclosure"), gate, public=False)
        found.same(f"{name}/ledger", "promise", item(package, "ledger"), None, public=False)


def _card(found: Findings, name: str, package: Document, decision: Document) -> None:
    """Card and README say the policy's assurance, and a card without a promise says that it has none."""
    card, word = mapping(package, "card"), text(decision, "assurance")
    found.same(f"{name}/card/assurance", "card", item(card, "kind"), word)
    found.same(f"{name}/card/readme", "card", item(card, "readme"), [word])
    found.same(f"{name}/card/epsilon", "card", item(card, "epsilon"), item(decision, "epsilon"))
    found.same(f"{name}/card/registration", "card", item(card, "registration"), item(decision, "registration"))
    found.same(f"{name}/card/not_private", "card", item(card, "not_private"), word == "SDC")


def _bands(utility: Document) -> Document:
    """All that a card may say of utility: the worst band, how many tables are in each, and names of those not good."""
    if "two_way" not in utility:
        return {"status": text(utility, "status")}
    sizes = {size: sequence(utility, size) for size in ("two_way", "three_way")}
    numbers = {size: Counter(text(table, "band") for table in tables) for size, tables in sizes.items()}
    return {
        "status": text(utility, "status"),
        "bands": {size: {band: held[band] for band in BANDS if held[band]} for size, held in numbers.items()},
        "not_good": {
            size: [
                {"variables": sequence(table, "names"), "band": text(table, "band")}
                for table in tables
                if text(table, "band") != "good"
            ]
            for size, tables in sizes.items()
        },
    }


def _counts(found: Findings, name: str, files: Sequence[object], space: Space, released: Sequence[Counted]) -> None:
    """The files of margins hold every released count above nought, and nothing else."""
    found.same(f"{name}/margins", "package", len(files), len(released))
    held = {frozenset(margin.names): margin for margin in released}
    seen = set()
    for position, lines in enumerate(files):
        with found.section(f"{name}/margins/{position}"):
            if not isinstance(lines, list) or not lines or lines[0][-1] != "count":
                raise MalformedError("header")
            names = tuple(lines[0][:-1])
            here = f"{name}/{title(names)}"
            seen.add(frozenset(names))
            own = held[frozenset(names)]
            counts = np.zeros(space.shape(names))
            cells = [
                tuple(space.categories[n].index(label) for n, label in zip(names, line, strict=False))
                for line in lines[1:]
            ]
            found.same(f"{here}/once", "package", len(set(cells)), len(cells))
            for cell, line in zip(cells, lines[1:], strict=True):
                counts[cell] = number({"count": float(line[len(names)])}, "count")
            order = [own.names.index(n) for n in names]
            same = np.allclose(counts, own.counts.transpose(order), rtol=_RELATIVE, atol=0)
            found.holds(f"{here}/counts", "package_count", same, "a count is not the released one")
    found.holds(f"{name}/margins/all", "package", seen == set(held), "not the released margins")
