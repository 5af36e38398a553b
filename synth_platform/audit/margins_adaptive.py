"""G2, margins that were chosen adaptively: what each round bought, at the registered cost, and no other margin told.

The first answer is of every variable alone. Each round after it is a choice, by Gumbel noise, and the counts of one
margin. Which margin, no document says; its request does: of all subsets of the declared margins there is one whose
request has the SHA-256 that the ledger committed. Noise is fixed before the first answer: of mu² a tenth for the first,
the same for each of three rounds a variable, of which a tenth for the choice.

That the margin was the choice's best is not recomputed: its scores need the model of the round, and the private rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, combinations

import numpy as np

from synth_platform.audit.accounting import bounded_range_mu
from synth_platform.audit.findings import Findings, MalformedError
from synth_platform.audit.ledger import Book, Entry
from synth_platform.audit.margins_answers import (
    CODE,
    SAME_SCALE,
    audit_counts,
    audit_distance,
    audit_margin,
    request_sha256,
    tables_of,
)
from synth_platform.audit.margins_tables import Counted, Names, Space, title
from synth_platform.audit.reading import Document, FloatArray, array, mapping, number, text

CHOICE = "M_CHOICE"
ROUNDS_A_VARIABLE, FIRST_SHARE, CHOICE_SHARE = 3, 0.1, 0.1


def audit_adaptive(
    found: Findings,
    stage: str,
    evidence: Document,
    space: Space,
    answers: Sequence[Document],
    released: Sequence[Counted],
    declared: Sequence[Names],
    book: Book,
    mu: float,
) -> None:
    """Answers of all rounds and the margins made of them. declared: the recipe's margins. mu: of the plan's epsilon."""
    name, rounds = f"G2/{stage}", ROUNDS_A_VARIABLE * len(space.names)
    due = [CODE, *(code for _ in range(rounds) for code in (CHOICE, CODE))]
    found.same(f"{name}/answers/codes", "answers", [text(answer, "code") for answer in answers], due)
    later = mu * math.sqrt((1 - FIRST_SHARE) / rounds)
    entries = [_entry(book, answer) for answer in answers]
    singles = [(variable,) for variable in space.names]
    scale = math.sqrt(len(singles) / FIRST_SHARE) / mu
    audit_counts(found, f"{name}/first", space, answers[0], entries[0], singles, scale)
    asked = request_sha256(evidence, space, answers[0], entries[0], singles)
    committed = entries[0].reserved.get("request_fingerprint")
    found.same(f"{name}/first/request", "request", asked, committed, public=False)

    held: dict[Names, list[tuple[FloatArray, float]]] = defaultdict(list)
    for names, table in zip(singles, tables_of(space, answers[0], singles), strict=True):
        held[names].append((table, number(answers[0], "scale")))
    for turn, (choice, counts) in enumerate(zip(answers[1::2], answers[2::2], strict=True)):
        here = f"{name}/round-{turn}"
        with found.section(here):
            _choice(found, f"{here}/choice", choice, entries[1 + 2 * turn], later * math.sqrt(CHOICE_SHARE))
            entry = entries[2 + 2 * turn]
            bought = _bought(evidence, space, counts, entry, declared, turn)
            if found.holds(f"{here}/request", "request", bought is not None, "counts of no declared margin") and bought:
                scale = 1 / (later * math.sqrt(1 - CHOICE_SHARE))
                audit_counts(found, f"{here}/counts", space, counts, entry, [bought], scale)
                held[bought] += [(tables_of(space, counts, [bought])[0], number(counts, "scale"))]
    with found.section(f"G3/{stage}/measured"):
        _made_of(found, f"G3/{stage}/measured", space, held, released)
    found.uncovered += [f"{name}/round-{turn}/choice/scores" for turn in range(rounds)]


def _entry(book: Book, answer: Document) -> Entry:
    entry = book.entries.get(text(answer, "entry_id"))
    if entry is None:
        raise MalformedError("entry_id")
    return entry


def _choice(found: Findings, name: str, answer: Document, entry: Entry, mu: float) -> None:
    """One position, told by Gumbel noise on scores that one person moves by at most one."""
    found.holds(f"{name}/sensitivity", "sensitivity", number(answer, "sensitivity") >= 1, "below that of a score")
    found.same(f"{name}/relation", "sensitivity", entry.reserved.get("neighbouring"), "add_remove")
    event = mapping({"event": entry.event}, "event")
    found.same(f"{name}/event", "entries", text(event, "type"), "BoundedRangeDpEvent")
    own = bounded_range_mu(number(event, "eta"))
    enough = mu * (1 - 1e-3) <= own <= mu * (1 + SAME_SCALE)
    found.holds(f"{name}/mu", "mu", enough, f"spent {own:.9g} of {mu:.9g}")
    values = array(answer, "values", shape=(1,))
    found.holds(f"{name}/position", "positions", bool(values[0] >= 0 and values[0] % 1 == 0), "no position")


def _bought(
    evidence: Document, space: Space, answer: Document, entry: Entry, declared: Sequence[Names], turn: int
) -> Names | None:
    """The subset of a declared margin whose request it was."""
    committed = entry.reserved.get("request_fingerprint")
    for names in subsets(space, declared):
        if request_sha256(evidence, space, answer, entry, [names], round=turn) == committed:
            return names
    return None


def subsets(space: Space, declared: Sequence[Names]) -> Iterator[Names]:
    """Every subset of a declared margin once, variables in their order."""
    ordered = [tuple(name for name in space.names if name in names) for names in declared]
    every = chain.from_iterable(combinations(names, size) for names in ordered for size in range(1, len(names) + 1))
    return iter(dict.fromkeys(every))


def _made_of(
    found: Findings,
    name: str,
    space: Space,
    held: dict[Names, list[tuple[FloatArray, float]]],
    released: Sequence[Counted],
) -> None:
    """The largest margins that were bought, each near the mean of its answers by their noise."""
    largest = [names for names in held if not any(set(names) < set(other) for other in held)]
    have = [margin.names for margin in released]
    found.same(f"{name}/bought", "margins", sorted(map(sorted, have)), sorted(map(sorted, largest)))
    total = float(released[0].counts.sum())
    distances = []
    for position, margin in enumerate(released):
        here = f"{name}/{position:02d}:{title(margin.names)}"
        with found.section(here):
            answers = held[margin.names]
            weights = [scale**-2 for _, scale in answers]
            noisy = np.average([table for table, _ in answers], axis=0, weights=weights)
            scale = 1 / math.sqrt(sum(weights))
            distances.append(audit_margin(found, here, space, margin, noisy, scale, total))
            due = [
                f"chosen adaptively; noisy counts: discrete Gaussian of standard deviation {scale:.6g} on each cell",
                "as in the distribution of maximum entropy near all noisy margins",
            ]
            found.same(f"{here}/provenance", "provenance", list(margin.provenance), due, public=False)
    audit_distance(found, name, distances)
