"""G2, noisy margins: every answer is the one that was paid for, enough was paid, and the margins are made of it.

One person more or less moves one count of each of k tables by one: √k in L2, whatever the tables. At μ-GDP the noise on
each count is √k/μ, with the μ that has the plan's ε at the domain's δ, found by bisection. Answers are held to the
SHA-256 that the ledger committed and to the request it was asked.

Margins are made of answers by least squares and by taking off what is below nought: with noise z on a cell, an error of
least squares is no larger than the noise by itself, so that no cell lies farther from its answer than twice the largest
of all noise, but with FALSE_ALARM.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from synth_platform.audit.accounting import epsilon_gaussian
from synth_platform.audit.discovery_answers import stored_sha256
from synth_platform.audit.findings import Findings
from synth_platform.audit.formal import Promise, audit_formal
from synth_platform.audit.ledger import Book, audit_ledger
from synth_platform.audit.margins_protection import audit_declared, audit_zeros
from synth_platform.audit.margins_tables import Counted, Space, title
from synth_platform.audit.reading import (
    Document,
    array,
    digest,
    item,
    mapping,
    number,
    sequence,
    text,
)

CODE = "M_COUNTS"
FALSE_ALARM = 1e-9
_RELATIVE = 1e-6  # of a scale whose epsilon was solved for by another method
_TOTAL = 1e-6


def audit_noise(found: Findings, stage: str, evidence: Document, space: Space, released: Sequence[Counted]) -> Book:
    """Ledger, answers, cost, and noisy margins of one plan."""
    registered, measured = mapping(evidence, "registered"), mapping(evidence, "measured")
    domain, decision = text(registered, "domain"), mapping(evidence, "documents", "decision")
    # What other cohorts of the domain may change by is registered by them, and audited with them.
    book = audit_ledger(
        found, mapping(evidence, "ledger"), {key: item(registered, key) for key in ("domain", "budget")}
    )
    with found.section(f"G2/{stage}/promise"):
        epsilon, delta = number(registered, "plan", "epsilon"), number(registered, "budget", "delta")
        promise = Promise(domain, epsilon, delta, proven=None)
        audit_formal(found, stage, mapping(decision, "ledger"), measured, book, promise)
        spent = item(decision, "ledger", "mu")
        found.same(f"G2/{stage}/mu", "mu", item(decision, "mu"), spent)
    name = f"G3/{stage}/measured"
    audit_zeros(found, name, registered, space)
    ids = [str(entry) for entry in sequence(measured, "entries")]
    answers = [mapping({"answers": answer}, "answers") for answer in sequence(evidence, "answers")]
    found.same(f"G2/{stage}/answers/entries", "answers", [text(a, "entry_id") for a in answers], ids)
    sources = [book.entries[entry].reserved.get("noise_source") for entry in ids if entry in book.entries]
    if book.whole:
        found.same(f"G2/{stage}/seeded", "decision", item(measured, "seeded"), "seeded" in sources)
    for position, answer in enumerate(answers):
        with found.section(f"G2/{stage}/answer-{position}"):
            _paid(found, f"G2/{stage}/answer-{position}", answer, registered, book)
    if text(registered, "plan", "margins") != "declared":
        found.uncovered += [f"{name}/{part}" for part in ("choice", "scale", "counts")]
        return book
    audit_declared(found, name, registered, space, released)
    with found.section(f"G2/{stage}/counts"):
        _declared(found, f"G2/{stage}/counts", answers, evidence, released, book)
        _made_of(found, name, answers[0], space, released)
    return book


def scale_of(epsilon: float, delta: float, tables: int) -> float:
    """√k/μ with the μ that has this epsilon at delta."""
    low, high = 1e-6, 2.0
    while epsilon_gaussian(high, delta) < epsilon:
        high *= 2
    return math.sqrt(tables) / float(brentq(lambda mu: epsilon_gaussian(mu, delta) - epsilon, low, high, rtol=1e-12))


def farthest(cells: int) -> float:
    """Twice the |z| that any of so many unit Gaussians exceeds with FALSE_ALARM."""
    return 2 * float(brentq(lambda z: math.log(2 * cells) + log_ndtr(-z) - math.log(FALSE_ALARM), 0.0, 40.0))


def _paid(found: Findings, name: str, answer: Document, registered: Document, book: Book) -> None:
    """The entry is of this cohort, and its answer is the one that was stored."""
    entry = book.entries.get(text(answer, "entry_id"))
    if not found.holds(f"{name}/entry", "entries", entry is not None, "not in the ledger") or entry is None:
        return
    row = entry.reserved
    claims = {"code": text(answer, "code"), "noise_source": text(answer, "source")}
    claims |= {key: text(registered, key) for key in ("cohort", "domain")}
    for key, claimed in claims.items():
        found.same(f"{name}/{key}", "entries", claimed, row.get(key))
    for key in ("sensitivity", "scale"):
        found.same(f"{name}/{key}", "entries", number(answer, key), number(row, key))
    committed = entry.committed or {}
    found.same(f"{name}/stored", "stored", stored_sha256(answer), committed.get("artefact_fingerprint"), public=False)


def _declared(
    found: Findings,
    name: str,
    answers: Sequence[Document],
    evidence: Document,
    released: Sequence[Counted],
    book: Book,
) -> None:
    """One answer for all registered margins, of the sensitivity and the noise that they need."""
    registered = mapping(evidence, "registered")
    found.same(f"{name}/answers", "answers", [text(answer, "code") for answer in answers], [CODE])
    answer, tables = answers[0], len(released)
    own = math.sqrt(tables)
    claimed = number(answer, "sensitivity")
    found.close(f"{name}/sensitivity", "sensitivity", claimed, own, tolerance=1e-12 * own, public=True)
    due = scale_of(number(registered, "plan", "epsilon"), number(registered, "budget", "delta"), tables)
    scale = number(answer, "scale")
    found.close(f"{name}/scale", "scale", scale, due, tolerance=_RELATIVE * due, public=True)
    step = number(answer, "granularity")
    fine = 0 < step <= 1 and math.log2(step).is_integer()
    found.holds(f"{name}/granularity", "grid", fine, "counts are no multiples of the step")
    values = array(answer, "values", shape=(sum(margin.counts.size for margin in released),))
    found.holds(f"{name}/grid", "grid", bool((values / step == np.round(values / step)).all()), "off the grid")
    entry = book.entries[text(answer, "entry_id")]
    found.same(f"{name}/relation", "sensitivity", entry.reserved.get("neighbouring"), "add_remove")
    event = {"type": "GaussianDpEvent", "noise_multiplier": number(entry.event, "noise_multiplier")}
    found.same(f"{name}/event", "entries", entry.event, event)
    request = {
        "domain": text(registered, "domain"),
        "cohort": text(registered, "cohort"),
        "input": text(evidence, "measured", "rows"),
        "code": CODE,
        "event": entry.event,
        "sensitivity": claimed,
        "mechanism": "gaussian_counts",
        "scale": scale,
        "sizes": [margin.counts.size for margin in released],
        "cells": "margins.cells",
        "parameters": {
            "margins": [list(margin.names) for margin in released],
            "domain": digest(sequence(evidence, "variables")),
        },
        "draw": 0,
        "noise_source": entry.reserved.get("noise_source"),
    }
    asked = entry.reserved.get("request_fingerprint")
    found.same(f"{name}/request", "request", digest(request), asked, public=False)


def _made_of(found: Findings, name: str, answer: Document, space: Space, released: Sequence[Counted]) -> None:
    """Margins are near their answers, agree on their total, and have nobody where nobody can be."""
    values, scale, start = array(answer, "values"), number(answer, "scale"), 0
    most = scale * farthest(len(values))
    totals = [float(margin.counts.sum()) for margin in released]
    for position, margin in enumerate(released):
        here = f"{name}/{position:02d}:{title(margin.names)}"
        noisy = values[start : start + margin.counts.size].reshape(margin.counts.shape)
        start += margin.counts.size
        possible = space.possible(margin.names)
        apart = np.abs(margin.counts - noisy)[possible]
        found.holds(f"{here}/answer", "noisy_count", bool((apart <= most).all()), "too far from what was answered")
        found.holds(f"{here}/structural", "structural_zero", not margin.counts[~possible].any(), "people in one")
        same = abs(totals[position] - totals[0]) <= _TOTAL * max(1.0, totals[0])
        found.holds(f"{here}/total", "total", same, "not the total of the others")
        told = f"noisy counts: discrete Gaussian of standard deviation {scale:.6g} on each cell"
        due = [told, "made to agree, none below 0"]
        found.same(f"{here}/provenance", "provenance", list(margin.provenance), due, public=False)
