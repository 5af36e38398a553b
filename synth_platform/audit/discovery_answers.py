"""G2 and G3: from ledger entries to private e-values. Every answer is the one that was paid for, and enough was paid.

A statistic that one record moves by at most Δ is rounded down to a grid h, the finest power of two with Δ < 2^31 h and
noise < 2^40 h. Then it moves by ⌈Δ/h⌉ steps, and by one more for its floating error. k values move by √k times that in
L2. With discrete Gaussian noise of standard deviation s, a noisy value less s²/2 + h is at most the log of an e-value:
the discrete law is at most one step off the continuous one. Both are held in exact fractions.

The stored answer of an entry is a file whose SHA-256 the ledger committed. The file is written here once more, by its
published layout, from the answer that the evidence shows: an answer that was changed is no longer the one in the chain.
So is the request of selection and values: family, groups, constants of the statistic and positions are those asked for.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from fractions import Fraction

from synth_platform.audit.accounting import compose
from synth_platform.audit.discovery_statistics import SENSITIVITIES, audit_choice, audit_statistic, count
from synth_platform.audit.findings import Findings, MalformedError
from synth_platform.audit.ledger import Book, Entry
from synth_platform.audit.reading import Document, array, codes, digest, item, mapping, number, sequence, text, whole

SIZE, SELECTION, VALUES = "E_SIZE", "E_SELECTION", "E_VALUES"
PARTS: Mapping[str, str] = {SIZE: "size", SELECTION: "selection", VALUES: "values"}
FIELDS = (
    "contrast",
    "plan",
    "method",
    "statistic",
    "chooser",
    "compared",
    "rows",
    "hypotheses",
    "mu",
    "mu_parts",
    "size",
    "positions",
    "selected",
    "log_e",
    "scale",
    "entries",
    "unledgered",
    "seeded",
)

# Of a figure that was computed in float64 by another formula.
_RELATIVE = 1e-9
# Nats that a value may have lost beyond s²/2 and the grid: costs power, not validity.
_SLACK = Fraction(1, 10**6)


def audit_answers(found: Findings, stage: str, evidence: Document, book: Book) -> None:
    """Entries, answers, size, positions and log e-values of one list."""
    e_values = mapping(evidence, "documents", "private_e_values")
    registered = mapping(evidence, "registered")
    plan = mapping(registered, "plan")
    name = f"G3/{stage}/private_e_values"
    found.same(f"{name}/fields", "structure", sorted(e_values), sorted(FIELDS))
    hypotheses, size = count(e_values, "hypotheses"), count(e_values, "size")
    adaptive = item(plan, "size") == "adaptive"
    found.same(f"{name}/method", "structure", text(e_values, "method"), "adaptive" if adaptive else "fixed")
    found.holds(f"{name}/size", "size", size <= hypotheses, "more than there are hypotheses")

    asked = ([SIZE] if adaptive and hypotheses > 1 else []) + ([SELECTION] if size < hypotheses else []) + [VALUES]
    answers = [mapping({"answers": answer}, "answers") for answer in sequence(evidence, "answers")]
    found.same(f"G2/{stage}/answers/codes", "answers", [text(answer, "code") for answer in answers], asked)
    ids = [str(entry) for entry in sequence(e_values, "entries")]
    found.same(f"G2/{stage}/answers/entries", "answers", [text(answer, "entry_id") for answer in answers], ids)
    held = {text(answer, "code"): answer for answer in answers}

    for which in ("statistic", "chooser") if adaptive else ("statistic",):
        with found.section(f"{name}/{which}"):
            audit_statistic(found, f"{name}/{which}", stage, mapping(e_values, which), registered)
    with found.section(f"{name}/choice"):
        if adaptive:
            audit_choice(found, f"{name}/choice", mapping(e_values, "chooser"), mapping(e_values, "statistic"))
        else:
            found.same(f"{name}/choice", "choice", item(e_values, "chooser"), None)
    for code, answer in held.items():
        with found.section(f"G2/{stage}/{code}"):
            _paid(found, f"G2/{stage}/{code}", answer, size, e_values, registered, book)
    with found.section(f"G2/{stage}/mu"):
        _mu(found, f"G2/{stage}/mu", held, e_values, plan, book)
    with found.section(f"{name}/size"):
        found.same(f"{name}/size", "size", size, _size_told(held, adaptive, hypotheses, plan))
    with found.section(f"{name}/positions"):
        _positions(found, f"{name}/positions", held, e_values, hypotheses, size)
    with found.section(f"{name}/log_e"):
        _values(found, f"{name}/log_e", mapping(held, VALUES), e_values, size)


def size_grid(hypotheses: int) -> list[int]:
    """1, 2, … each a fifth larger than the one before, to the nearest number, and at least one; the last is all."""
    sizes = [1]
    while sizes[-1] < hypotheses:
        sizes.append(min(hypotheses, max(sizes[-1] + 1, (12 * sizes[-1] + 5) // 10)))
    return sizes


def grid_step(sensitivity: float, scale: float) -> Fraction:
    """h, by halving from a power of two that is too large for both."""
    needed = max(Fraction(sensitivity) / 2**31, Fraction(scale) / 2**40)
    if needed <= 0:
        raise MalformedError("scale")
    step = Fraction(2) ** math.ceil(math.log2(needed) + 2)
    while step / 2 > needed:
        step /= 2
    return step


def stored_sha256(answer: Document) -> str:
    """SHA-256 of the safetensors file of an answer: length of the header, header padded to eight bytes, float64s."""
    values = [float(value) for value in array(answer, "values")]
    told = {key: item(answer, key) for key in ("code", "entry_id", "granularity", "sensitivity", "source")}
    release = json.dumps(told | {"sigma": item(answer, "scale")}, sort_keys=True)
    layout = {"dtype": "F64", "shape": [len(values)], "data_offsets": [0, 8 * len(values)]}
    header = json.dumps({"__metadata__": {"release": release}, "values": layout}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return hashlib.sha256(
        struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(values)}d", *values)
    ).hexdigest()


def request_sha256(row: Document, event: Document, size: int, e_values: Document) -> str:
    """SHA-256 of what was asked of selection or values, as the ledger names it, from what the e-values say of it."""
    values = row.get("code") == VALUES
    statistic, scale = mapping(e_values, "statistic"), number(row, "scale")
    particular = (
        {"positions": item(e_values, "positions"), "sigma": scale} if values else {"size": size, "scale": scale}
    )
    request = {
        "domain": row.get("domain"),
        "cohort": row.get("cohort"),
        "input": item(e_values, "rows"),
        "code": row.get("code"),
        "event": event,
        "sensitivity": number(row, "sensitivity"),
        "mechanism": "gaussian_values" if values else "gumbel_top",
        "scores": f"discovery.{text(statistic, 'name')}",
        "candidates": item(e_values, "hypotheses"),
        "parameters": {**mapping(e_values, "compared"), "statistic": item(statistic, "parameters")},
        "draw": 0,
        "noise_source": row.get("noise_source"),
    }
    return digest(request | particular)


def _paid(
    found: Findings, name: str, answer: Document, size: int, e_values: Document, registered: Document, book: Book
) -> None:
    """The entry is of this list, its event is what the noise is worth, and its answer is the one that was stored."""
    entry = book.entries.get(text(answer, "entry_id"))
    if not found.holds(f"{name}/entry", "entries", entry is not None, "not in the ledger") or entry is None:
        return
    row, code = entry.reserved, text(answer, "code")
    claims = {"code": code, "cohort": text(registered, "cohort"), "domain": text(registered, "domain")}
    claims |= {"noise_source": text(answer, "source")}
    for key, claimed in claims.items():
        found.same(f"{name}/{key}", "entries", claimed, row.get(key))
    for key in ("sensitivity", "scale"):
        found.same(f"{name}/{key}", "entries", number(answer, key), number(row, key))
    found.same(f"{name}/relation", "entries", row.get("neighbouring"), "replace_one")
    found.same(f"{name}/event", "entries", entry.event, _event(code, size, entry))
    committed = entry.committed or {}
    found.same(f"{name}/stored", "stored", stored_sha256(answer), committed.get("artefact_fingerprint"), public=False)

    if code != SIZE:
        asked = request_sha256(row, entry.event, size, e_values)
        found.same(f"{name}/request", "request", asked, row.get("request_fingerprint"), public=False)

    which = "chooser" if code == SIZE else "statistic"
    _, delta = SENSITIVITIES[text(e_values, which, "name")](mapping(e_values, which, "parameters"))
    step = grid_step(delta, number(row, "scale"))
    moved = (math.ceil(Fraction(delta) / step) + 1) * step
    together = size if code == VALUES else 1
    enough = Fraction(number(row, "sensitivity")) ** 2 >= together * moved**2
    found.holds(f"{name}/sensitivity/enough", "sensitivity", enough, f"one record moves each by {float(moved):.9g}")
    own = float(step) if code == VALUES else 1.0
    found.same(f"{name}/granularity", "grid", number(answer, "granularity"), own)


def _event(code: str, size: int, entry: Entry) -> Document:
    """What the mechanism of an entry is, with the parameter that `audit_ledger` holds against its noise."""
    event = entry.event
    if code == VALUES:
        return {"type": "GaussianDpEvent", "noise_multiplier": number(event, "noise_multiplier")}
    times = size if code == SELECTION else 1
    one = {"type": "BoundedRangeDpEvent", "eta": number(event if times == 1 else mapping(event, "event"), "eta")}
    return one if times == 1 else {"type": "SelfComposedDpEvent", "event": one, "count": times}


def _mu(found: Findings, name: str, held: Document, e_values: Document, plan: Document, book: Book) -> None:
    """Parts and total compose from the entries, and the total keeps the promise."""
    promised, parts = number(plan, "mu"), mapping(e_values, "mu_parts")
    found.same(f"{name}/promised", "mu", item(e_values, "mu"), item(plan, "mu"))
    found.same(f"{name}/parts", "mu", sorted(parts), sorted(PARTS.values()))
    events = {code: book.entries[text(answer, "entry_id")].event for code, answer in held.items()}
    for code, part in PARTS.items():
        own = compose([events[code]] if code in events else []).mu
        claimed = number(parts, part)
        same = own is not None and math.isclose(claimed, own, rel_tol=_RELATIVE)
        found.holds(f"{name}/{part}", "mu", same, f"claimed {claimed:.9g}, found {own}")
    total = compose(events.values()).mu
    kept = total is not None and 0 < total <= promised
    found.holds(f"{name}/total", "mu", kept, f"spent {total}, promised {promised:.9g}")


def _size_told(held: Document, adaptive: bool, hypotheses: int, plan: Document) -> int:
    if not adaptive:
        return whole(plan, "size")
    if hypotheses == 1:
        return 1
    choice = int(codes(held, SIZE, "values", shape=(1,))[0])
    grid = size_grid(hypotheses)
    if not 0 <= choice < len(grid):
        raise MalformedError("values")
    return grid[choice]


def _positions(found: Findings, name: str, held: Document, e_values: Document, hypotheses: int, size: int) -> None:
    """What was selected, in order, or everything where nothing is left out."""
    positions = sequence(e_values, "positions")
    found.same(f"{name}/length", "length", len(positions), size)
    told = codes(held, SELECTION, "values").tolist() if size < hypotheses else list(range(len(positions)))
    found.same(f"{name}/selected", "positions", positions, told, public=False)
    lawful = all(type(at) is int and 0 <= at < hypotheses for at in positions) and len(set(positions)) == len(positions)
    found.holds(f"{name}/lawful", "positions", lawful, "outside the family, or twice")
    found.same(f"{name}/names", "length", len(sequence(e_values, "selected")), size)


def _values(found: Findings, name: str, answer: Document, e_values: Document, size: int) -> None:
    """Noisy values on their grid, each less at least s²/2 and a step, and hardly more."""
    noisy, log_e = array(answer, "values"), array(e_values, "log_e")
    found.same(f"{name}/length", "length", [len(noisy), len(log_e)], [size, size])
    scale, step = Fraction(number(answer, "scale")), Fraction(number(answer, "granularity"))
    found.same(f"{name}/scale", "scale", number(e_values, "scale"), float(scale))
    if step <= 0:
        raise MalformedError("granularity")
    values = [Fraction(value) for value in noisy.tolist()]
    found.holds(f"{name}/grid", "grid", all((value / step).denominator == 1 for value in values), "off the grid")
    least = scale**2 / 2 + step
    most = least * (1 + Fraction(_RELATIVE)) + _SLACK
    shifts = [value - Fraction(own) for value, own in zip(values, log_e.tolist(), strict=False)]
    found.holds(f"{name}/valid", "shift", all(shift >= least for shift in shifts), "less than half the noise variance")
    found.holds(f"{name}/used", "shift", all(shift <= most for shift in shifts), "more than the mechanism takes off")
