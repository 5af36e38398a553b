"""G2 and G3: from ledger entries to private e-values. Every answer is the one that was paid for, and enough was paid.

A statistic that one record moves by at most Δ is rounded down to a grid h, the finest power of two with Δ < 2^31 h and
noise < 2^40 h. Then it moves by ⌈Δ/h⌉ steps, and by one more for its floating error. k values move by √k times that in
L2. With discrete Gaussian noise of standard deviation s, a noisy value less s²/2 + h is at most the log of an e-value:
the discrete law is at most one step off the continuous one. Both are held in exact fractions.

The stored answer of an entry is a file whose SHA-256 the ledger committed. The file is written here once more, by its
published layout, from the answer that the evidence shows: an answer that was changed is no longer the one in the chain.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from synth_platform.audit.accounting import compose
from synth_platform.audit.findings import Findings, MalformedError
from synth_platform.audit.ledger import Book, Entry
from synth_platform.audit.reading import Document, array, codes, item, mapping, number, sequence, text, whole

SIZE, SELECTION, VALUES = "E_SIZE", "E_SELECTION", "E_VALUES"
PARTS: Mapping[str, str] = {SIZE: "size", SELECTION: "selection", VALUES: "values"}
FIELDS = (
    "contrast",
    "plan",
    "method",
    "statistic",
    "compared",
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
STATISTICS: Mapping[str, Sequence[str]] = {"discovery": ("mann_whitney", "log_rank"), "gwas": ("dosage",)}

_MOST = 2**53
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
    hypotheses, size = _count(e_values, "hypotheses"), _count(e_values, "size")
    adaptive = item(plan, "size") == "adaptive"
    found.same(f"{name}/method", "structure", text(e_values, "method"), "adaptive" if adaptive else "fixed")
    found.holds(f"{name}/size", "size", size <= hypotheses, "more than there are hypotheses")

    asked = ([SIZE] if adaptive and hypotheses > 1 else []) + ([SELECTION] if size < hypotheses else []) + [VALUES]
    answers = [mapping({"answers": answer}, "answers") for answer in sequence(evidence, "answers")]
    found.same(f"G2/{stage}/answers/codes", "answers", [text(answer, "code") for answer in answers], asked)
    ids = [str(entry) for entry in sequence(e_values, "entries")]
    found.same(f"G2/{stage}/answers/entries", "answers", [text(answer, "entry_id") for answer in answers], ids)
    held = {text(answer, "code"): answer for answer in answers}

    with found.section(f"{name}/statistic"):
        audit_statistic(found, f"{name}/statistic", stage, mapping(e_values, "statistic"), registered)
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


def audit_statistic(found: Findings, name: str, stage: str, statistic: Document, registered: Document) -> None:
    """The statistic is one of the stage, for the registered sizes, and no less sensitive than its constants make it."""
    kind = text(statistic, "name")
    if not found.holds(f"{name}/name", "statistic", kind in STATISTICS.get(stage, ()), "not a statistic of the stage"):
        return
    sizes, own = SENSITIVITIES[kind](mapping(statistic, "parameters"))
    found.same(f"{name}/sizes", "sizes", sizes, sequence(registered, "sizes"))
    claimed = number(statistic, "sensitivity")
    same = math.isclose(claimed, own, rel_tol=_RELATIVE)
    found.holds(f"{name}/sensitivity", "sensitivity", same, f"claimed {claimed:.9g}, found {own:.9g}")


def mann_whitney_sensitivity(parameters: Document) -> tuple[list[int], float]:
    """[cases, controls] and Δ: a replaced record changes every comparison with the other group, each by at most 1."""
    _only(parameters, {"n_case", "n_control", "tilt", "two_sided"})
    cases, controls = _count(parameters, "n_case"), _count(parameters, "n_control")
    tilt = Fraction(number(parameters, "tilt"))
    return [cases, controls], float(max(abs(tilt * cases), abs(tilt * controls)))


def dosage_sensitivity(parameters: Document) -> tuple[list[int], float]:
    """[cases, controls] and Δ = log((n_small + n_large e^{2κ})/n): 0 becomes 2 beside the least favourable others."""
    _only(parameters, {"n_case", "n_control", "kappa", "two_sided"})
    cases, controls = _count(parameters, "n_case"), _count(parameters, "n_control")
    odds = math.exp(2 * _positive(parameters, "kappa"))
    larger, smaller = max(cases, controls), min(cases, controls)
    return [cases, controls], math.log((smaller + larger * odds) / (cases + controls))


def log_rank_sensitivity(parameters: Document) -> tuple[list[int], float]:
    """[patients] and Δ = log((1 + (n − 1)e^{κv})/n), v the width of residuals: 1 at most up, sup Λ0 at most down."""
    _only(parameters, {"size", "times", "cumulative_hazard", "clip", "cut", "tilt", "two_sided"})
    patients, clip = _count(parameters, "size"), _positive(parameters, "clip")
    hazard, times = array(parameters, "cumulative_hazard"), array(parameters, "times")
    if not len(hazard) or len(hazard) != len(times) or hazard.min() < 0 or (times[1:] <= times[:-1]).any():
        raise MalformedError("cumulative_hazard")
    number(parameters, "cut")
    width = min(clip, 1.0) + min(clip, float(hazard.max()))
    odds = math.exp(_positive(parameters, "tilt") * width)
    return [patients], math.log((1 + (patients - 1) * odds) / patients)


SENSITIVITIES: Mapping[str, Callable[[Document], tuple[list[int], float]]] = {
    "mann_whitney": mann_whitney_sensitivity,
    "dosage": dosage_sensitivity,
    "log_rank": log_rank_sensitivity,
}


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

    _, delta = SENSITIVITIES[text(e_values, "statistic", "name")](mapping(e_values, "statistic", "parameters"))
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


def _only(parameters: Document, names: set[str]) -> None:
    if set(parameters) != names or type(parameters["two_sided"]) is not bool:
        raise MalformedError("parameters")


def _count(document: Document, name: str) -> int:
    value = whole(document, name)
    if not 1 <= value < _MOST:
        raise MalformedError(name)
    return value


def _positive(document: Document, name: str) -> float:
    value = number(document, name)
    if value <= 0:
        raise MalformedError(name)
    return value
