"""G3, synthetic tables: rows, structural zeros, and whether they are what a draw from the model looks like.

Of n rows drawn from p over k cells, n KL(counts/n ‖ p) reaches t > k − 1 with a probability of at most
e^(−t) (e t / (k − 1))^(k − 1), at any n and however small a cell (R. Agrawal, "Finite-sample concentration of the
multinomial in relative entropy", IEEE Trans. Inf. Theory 66, 2020). All tables of all replicates together are refused
by chance with at most FALSE_ALARM.

Too near the true rows is a matter of the other side: for whatever true shares, Pearson's Σ (s − n q)²/(n p) of counts s
drawn from p is stochastically at least χ² with k − 1 degrees of freedom, but for the steps of whole counts: only tables
are judged in which one given outcome is rare enough. Of any model, a given table is drawn with at most the probability
that its own shares give it: so rare tables that are those of the people, or of another replicate, are no draws.
FALSE_ALARM of each of the three.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, rel_entr, xlogy
from scipy.stats import chi2

from synth_platform.audit.findings import Findings
from synth_platform.audit.margins_tables import Names, Space, title
from synth_platform.audit.reading import SHA256, Document, FloatArray, item, mapping, sequence, text, whole

FALSE_ALARM = 1e-9
_EXPECTED = 10.0


def audit_synthetic(
    found: Findings,
    stage: str,
    evidence: Document,
    space: Space,
    fitted: dict[Names, FloatArray],
    total: float,
    true: Sequence[FloatArray | None] | None,
) -> int:
    """Every replicate. Returns how many have people in a structural zero, or cells that are none.

    fitted: probabilities by table. total: people that the model stands for. true: tables of the private rows, None
    where there are none.
    """
    name, plan = f"G3/{stage}/synthetic", mapping(evidence, "registered", "plan")
    replicates = [mapping({"synthetic": each}, "synthetic") for each in sequence(evidence, "synthetic")]
    found.same(f"{name}/replicates", "length", len(replicates), whole(plan, "replicates"))
    names = [text(each, "sha256") for each in replicates]
    found.holds(f"{name}/names", "structure", all(SHA256.fullmatch(n) for n in names), "not a SHA-256")
    judged = max(1, len(replicates)) * (len(space.tables) + len(space.names))
    wrong = 0
    for at, replicate in enumerate(replicates):
        here = f"{name}/{at}"
        rows = whole(replicate, "rows")
        wrong += 1  # unless everything below can be read
        with found.section(here):
            due = whole(plan, "rows") if plan["rows"] is not None else rows
            found.same(f"{here}/rows", "length", rows, due)
            if plan["rows"] is None:
                found.holds(f"{here}/rows/total", "length", abs(rows - total) <= 0.5 + 1e-6, "not the model's total")
            wrong -= _replicate(found, here, replicate, space, fitted, true, FALSE_ALARM / judged)
    _copies(found, name, replicates, names, space)
    return wrong


def _replicate(
    found: Findings,
    name: str,
    replicate: Document,
    space: Space,
    fitted: dict[Names, FloatArray],
    true: Sequence[FloatArray | None] | None,
    alarm: float,
) -> bool:
    """Whether a replicate keeps to its domain and zeros."""
    rows, sound = whole(replicate, "rows"), True
    ones = [space.table({variable: counts}, (variable,), variable) for variable, counts in _one_way(replicate, space)]
    detailed = item(replicate, "tables") is not None
    counts = space.tables_at(replicate, "tables") if detailed else [None] * len(space.tables)
    for table_names, table in [
        *zip(((n,) for n in space.names), ones, strict=True),
        *zip(space.tables, counts, strict=True),
    ]:
        if table is None:
            continue
        here = f"{name}/{title(table_names)}"
        whole_rows = bool((table == np.rint(table)).all()) and int(table.sum()) == rows
        sound &= found.holds(f"{here}/rows", "length", whole_rows, "its rows are not all in its categories")
        empty = not table[~space.possible(table_names)].any()
        sound &= found.holds(f"{here}/structural", "structural_zero", empty, "people in a structural zero")
        for axis, variable in enumerate(table_names):
            over = tuple(at for at in range(table.ndim) if at != axis)
            same = np.array_equal(table.sum(axis=over), ones[space.names.index(variable)])
            found.holds(f"{here}/{variable}", "margins_agree", same, "tables of one replicate disagree")
        if table_names in fitted:
            likely = fits(table, fitted[table_names], alarm)
            found.holds(f"{here}/drawn", "drawn_from_model", likely, "no draw from the model looks so")
    if detailed and true is not None:
        _not_the_people(found, name, counts, true, space, fitted, alarm)
    return sound


def _one_way(replicate: Document, space: Space) -> list[tuple[str, object]]:
    return list(zip(space.names, sequence(replicate, "one_way"), strict=True))


def fits(counts: FloatArray, probabilities: FloatArray, alarm: float) -> bool:
    """Whether a multinomial draw may have these counts, at a false alarm rate that holds at any size."""
    rows, p = float(counts.sum()), probabilities / probabilities.sum()
    divergence = rows * float(rel_entr(counts / rows, p).sum())
    return divergence <= threshold(int(np.count_nonzero(p)), alarm)


def threshold(cells: int, alarm: float) -> float:
    """The t of the module's text at which its bound is `alarm`, by bisection; a single cell has no divergence."""
    degrees = cells - 1
    if degrees == 0:
        return 1e-6
    low, high = float(degrees), degrees + 4 * math.sqrt(degrees * -math.log(alarm)) - 4 * math.log(alarm)
    for _ in range(100):
        middle = (low + high) / 2
        bound = -middle + degrees * (1 + math.log(middle / degrees))
        low, high = (middle, high) if bound > math.log(alarm) else (low, middle)
    return high


def _not_the_people(
    found: Findings,
    name: str,
    counts: Sequence[FloatArray | None],
    true: Sequence[FloatArray | None],
    space: Space,
    fitted: dict[Names, FloatArray],
    alarm: float,
) -> None:
    for names, table, people in zip(space.tables, counts, true, strict=True):
        if table is None or people is None:
            continue
        here = f"{name}/{title(names)}"
        if most_likely(people) <= math.log(alarm):
            same = np.array_equal(table, people)
            found.holds(f"{here}/identical", "near_the_people", not same, "a table of the private rows themselves")
        near = nearer_than_drawn(table, people, fitted[names], alarm) if names in fitted else None
        if near is not None:
            found.holds(f"{here}/people", "near_the_people", not near, "nearer to the private rows than a draw is")


def nearer_than_drawn(counts: FloatArray, people: FloatArray, probabilities: FloatArray, alarm: float) -> bool | None:
    """Whether counts are nearer to those of people than draws from the model are; None where draws may be so near."""
    expected = counts.sum() * probabilities
    cells = expected >= _EXPECTED
    # One outcome has about ∏ (2π e)^(−½), once more (2π n)^½ where it is all cells.
    alike = (math.log(2 * math.pi * max(1.0, counts.sum())) - np.log(2 * math.pi * expected[cells]).sum()) / 2
    if alike > math.log(alarm):
        return None
    apart = counts[cells] - people[cells] * (counts.sum() / people.sum())
    return float((apart**2 / expected[cells]).sum()) < float(chi2.ppf(alarm, int(cells.sum()) - 1))


def _copies(found: Findings, name: str, replicates: Sequence[Document], names: Sequence[str], space: Space) -> None:
    """No two replicates have the same rows, where two draws have them by chance with at most FALSE_ALARM."""
    pairs = math.comb(len(replicates), 2)
    for first, replicate in enumerate(replicates[:-1]):
        held = sequence(replicate, "one_way" if item(replicate, "tables") is None else "tables")
        least = min(most_likely(np.array(table, dtype=np.float64)) for table in held)
        if least + math.log(pairs) > math.log(FALSE_ALARM):
            found.notes.append(f"{name}/{first}: draws of so few rows may be equal by chance")
            continue
        for second in range(first + 1, len(names)):
            apart = names[first] != names[second]
            found.holds(f"{name}/{first}-{second}/apart", "copies", apart, "two with one content")


def most_likely(counts: FloatArray) -> float:
    """Log of the greatest probability of these counts under any model: that of their own shares."""
    rows = float(counts.sum())
    return float(gammaln(rows + 1) - gammaln(counts + 1).sum() + xlogy(counts, counts / max(rows, 1.0)).sum())
