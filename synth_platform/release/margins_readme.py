"""The README that travels with synthetic tables made of margins: the card as people read it, the worst named first."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from synth_platform.contract.printable import printable
from synth_platform.margins.planned import NOT_ASSESSED
from synth_platform.release.margins_card import UNREGISTERED
from synth_platform.release.readme import environment

Document = Mapping[str, Any]
NAMED = 12  # relations that a list names before it counts the rest
_NUMBER = re.compile(r"-?[0-9.,e+-]+k?")
TEMPLATE = """\
# {{ card.title | words }}: synthetic tables from margins

{{ summary }}

{{ files | aligned }}

## Assurance: {{ card.assurance.kind }}

{% for paragraph in card.assurance.statement + notes -%}
{{ paragraph | wrapped }}

{% endfor %}## What is preserved

{{ preserved | wrapped }}

{{ residuals | aligned }}

## What is not preserved

{% for line in lost -%}
- {{ line | wrapped }}
{% endfor %}
{% if utility -%}
## Utility, measured beside the private rows

{% for paragraph in utility -%}
{{ paragraph | wrapped }}

{% endfor -%}
{% endif -%}
## The tables

{% for paragraph in tables -%}
{{ paragraph | wrapped }}

{% endfor -%}
{{ variables | aligned }}

{% if card.structural_zeros -%}
Declared impossible, and in no row:

{% for zero in zeros -%}
- {{ zero | wrapped }}
{% endfor %}
{% endif -%}
## For what

{{ use | wrapped }}

## How to verify

`sha256sum --check SHA256SUMS` in this folder. {{ named }} digest `{{ card.registration }}`.
Method: {{ card.source.reference }}.
"""


def render_margins_readme(card: Document, files: Sequence[tuple[Sequence[str], str]]) -> str:
    """The README of one package. files: names and what they are, in the order they are listed."""
    plain = environment()
    plain.filters |= {"aligned": aligned, "wrapped": _wrapped, "words": printable}
    return plain.from_string(TEMPLATE).render(
        card=card,
        summary=_wrapped(_summary(card)),
        named="Source, recipe and plan have" if UNREGISTERED in card["notes"] else "Registered with",
        notes=[f"Note {code}: {words}" for code, words in card["notes"].items()],
        files=[("file", "what it is"), *((", ".join(f"`{name}`" for name in names), what) for names, what in files)],
        preserved=_preserved(card),
        residuals=_residuals(card),
        lost=_lost(card),
        utility=_utility(card),
        zeros=[" with ".join(_labelled(*each) for each in zero.items()) for zero in card["structural_zeros"]],
        tables=_tables(card),
        variables=_variables(card),
        use=f"For {', '.join(card['use']['for'])}. Not for {'; '.join(card['use']['not_for'])}.",
    )


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table that is aligned as text too; the first line is its head, numbers stand to the right."""
    cells = [[printable(cell).replace("|", "\\|") for cell in line] for line in lines]
    columns = list(zip(*cells, strict=True))
    widths = [max(3, *map(cell_len, column)) for column in columns]
    numbers = [len(column) > 1 and all(map(_NUMBER.fullmatch, column[1:])) for column in columns]
    rule = ["-" * (width - 1) + ":" if number else "-" * width for width, number in zip(widths, numbers, strict=True)]

    def line(texts: Sequence[str]) -> str:
        gaps = [" " * (width - cell_len(text)) for text, width in zip(texts, widths, strict=True)]
        padded = [gap + text if number else text + gap for text, gap, number in zip(texts, gaps, numbers, strict=True)]
        return f"| {' | '.join(padded)} |"

    return "\n".join(map(line, (cells[0], rule, *cells[1:])))


def _summary(card: Document) -> str:
    rows, replicates, margins = card["tables"]["rows"], card["tables"]["replicates"], len(card["preserved"])
    tables = "1 table" if replicates == 1 else f"{replicates} tables"
    return (
        f"{tables} of {rows:,} synthetic rows, {_number(len(card['variables']), 'variable')}. No row was copied from a "
        f"person: every one was drawn from the distribution of maximum entropy that fits "
        f"{_number(margins, 'protected margin')}, which {'is' if margins == 1 else 'are'} in this folder too."
    )


def _preserved(card: Document) -> str:
    margins, fit = card["preserved"], card["fit"]
    missed = [each for each in margins if not each["matched"]]
    sized = fit["effective_sample_size"]
    said = (
        f"The relations within each of {_number(len(margins), 'margin')}, as protected: where protection changed a "
        f"count, the tables follow the changed one. Fit: {fit['engine'].replace('_', ' ')}, "
        f"{fit['status'].replace('_', ' ')} after {_number(fit['cycles'], 'cycle')}"
        + ("" if sized is None else f"; what no margin fixes is as certain as {sized:,.0f} independent rows make it")
        + ". The residual of a margin is the share of people who would have to move for it to match (total "
        "variation): "
    )
    why = {
        "limit_cycle": "margins that were protected one by one contradict each other, and no table matches them all",
        "iteration_limit": "they still fell when the cycles of the fit ran out",
    }.get(fit["status"], "the others match")
    if not missed:
        return f"{said}all are at most {fit['tolerance']:g}."
    return (
        f"{said}{len(missed):,} of {len(margins):,} are above {fit['tolerance']:g}, the largest is "
        f"{fit['largest_residual']:.3g}: {why}."
    )


def _residuals(card: Document) -> list[tuple[str, ...]]:
    worst = sorted(card["preserved"], key=lambda each: -each["residual"])
    lines = [(each["margin"], f"{each['residual']:.2g}", "yes" if each["matched"] else "no") for each in worst[:NAMED]]
    head = "margin" if len(worst) <= NAMED else f"worst {NAMED} of {len(worst):,} margins (all: card.json)"
    return [(head, "residual", "matched"), *lines]


def _lost(card: Document) -> list[str]:
    lost = card["not_preserved"]
    pairs, triples, largest = lost["pairs"], lost["triples"], lost["largest"]
    lines = []
    if pairs:
        lines.append(f"Pairs that no margin holds ({len(pairs):,}): {_named([' × '.join(each) for each in pairs])}.")
    if triples["every"]:
        lines.append(f"The three-way interaction of every triple of variables (all {triples['number']:,} of them).")
    elif triples["number"]:
        named = _named([" × ".join(each) for each in triples["named"]])
        lines.append(f"The three-way interaction of these triples, of which only pairs are held: {named}.")
    if largest < len(card["variables"]):
        lines.append(f"Every interaction of more than {_number(largest, 'variable')}.")
    return [*lines, "Everything that curation merged and protection changed; rare combinations above all."]


def _utility(card: Document) -> list[str]:
    """Bands, and which tables are not good; nothing where the publication policy keeps them inside."""
    measured = card["utility"]
    if measured is None or "bands" not in measured:
        return []
    bands = {
        size: ", ".join(f"{number:,} {name}" for name, number in told.items()) or "none"
        for size, told in measured["bands"].items()
    }
    said = (
        "Bands of S_pMSE, for which 1 is a perfect fit: below 3 is good, below 10 acceptable, else poor. Tables of two "
        f"variables: {bands['two_way']}; of three: {bands['three_way']}. The bands compare the first table with the "
        "private rows and carry no guarantee themselves; no figure behind them leaves."
    )
    named = {
        f"{band.capitalize()} {words}": [
            " × ".join(each["variables"]) for each in measured["not_good"][size] if each["band"] == band
        ]
        for size, words in (("two_way", "of two variables"), ("three_way", "of three"))
        for band in ("poor", "acceptable")
    }
    return [said, *(f"{words}: {_named(tables)}." for words, tables in named.items() if tables)]


def _tables(card: Document) -> list[str]:
    curated = card["curation"]
    labels = (
        "Counts come from published tables."
        if curated["source"] == "published tables"
        else "Variables were made from microdata by the recipe in `card.json`; where it declares no categories, they "
        "are those seen in the rows."
    )
    decided = curated["data_dependent"]
    if decided:
        labels += f" Which small categories were combined was decided by counts of the rows: {_named(decided)}."
    combine = card["tables"]["how_to_combine"]
    return [f"{labels} {_compared(card)}", *([] if combine is None else [combine])]


def _compared(card: Document) -> str:
    if card["curation"]["source"] == "published tables":
        return "Utility was not assessed, since there were no rows to compare with."
    if card["utility"] is None:
        return "How well relations are kept was compared with the private rows inside, and is not told here."
    status = card["utility"]["status"]
    if status == NOT_ASSESSED:
        return "No margin holds a pair of variables, so none was to be kept."
    return f"The worst pair that a margin holds is {status}, compared with the private rows."


def _variables(card: Document) -> list[tuple[str, ...]]:
    lines = [(each["name"], each["kind"], str(each["categories"]), each["missing"] or "") for each in card["variables"]]
    shown = lines if len(lines) <= 3 * NAMED else lines[:NAMED]
    head = "variable" if len(shown) == len(lines) else f"first {NAMED} of {len(lines):,} (all: data_dictionary.csv)"
    return [(head, "kind", "categories", "stands for missing"), *shown]


def _labelled(name: str, labels: Sequence[str]) -> str:
    return f"{printable(name)} {' or '.join(f'`{printable(label)}`' for label in labels)}"


def _named(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(map(printable, names[:NAMED])) + (f" and {more:,} more (card.json)" if more > 0 else "")


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)
