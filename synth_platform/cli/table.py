"""The decision table: one line per synthetic table, figures beside their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

ONE_TABLE = 200
CAPTION = (
    "P/S: preservation and skill; P ?: the real arm itself shows no signal. DCR: copies, π̂, r̂. MIA: AUROC (bound). "
    "Power: weakest endpoint, MIA."
)
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One column: its title, what it shows of a decision, and whether it stands right."""

    title: str
    show: Callable[[Document], Text | str]
    right: bool = False


def decision_tables(decisions: Sequence[Document], width: int) -> list[Table]:
    """One table per cohort where the terminal is wide enough, else two: utility with its cost, then privacy."""
    parts = [WHO + COST + UTILITY + PRIVACY] if width >= ONE_TABLE else [WHO + COST + UTILITY, WHO + PRIVACY]
    cohorts = dict.fromkeys(decision["cohort"] for decision in decisions)
    return [
        _table(cohort, columns, [d for d in decisions if d["cohort"] == cohort])
        for cohort in cohorts
        for columns in parts
    ]


def _table(cohort: str, columns: Sequence[Column], decisions: Sequence[Document]) -> Table:
    table = Table(
        title=f"{cohort}   [not bold]{CAPTION}[/]",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        collapse_padding=True,
        pad_edge=False,
    )
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=True)
    for decision in decisions:
        table.add_row(*(column.show(decision) for column in columns))
    return table


def _number(value: float | None, pattern: str) -> str:
    return "-" if value is None else format(value, pattern)


def _endpoint(name: str) -> Callable[[Document], Text]:
    def show(decision: Document) -> Text:
        endpoint = decision["endpoints"][name]
        status = endpoint["status"]
        if endpoint["preservation"] is None:
            return Text("undefined", style="yellow")
        if status == "HOLD_UNINFORMATIVE":
            return Text(f"{endpoint['preservation']:.3f} ?", style="yellow")
        return Text(f"{endpoint['preservation']:.3f}/{endpoint['skill']:.2f}", style=_style(status))

    return show


def _closest_record(decision: Document) -> Text:
    gate = decision["closest_record"]
    figures = f"{gate['duplicates']:>3} {gate['train_closer']:.3f} {gate['excess']:.3f}"
    return Text(f"{figures} {gate['status']}", style=_style(gate["status"]))


def _membership(decision: Document) -> Text:
    gate = decision["membership"]
    strongest = max(gate["attacks"].values(), key=lambda attack: attack["upper"])
    # The figures are of the half splits; the released table itself may have failed beside them.
    verdict = "direct attack fails" if gate.get("direct") == "FAIL" else gate["status"].removeprefix("PASS_").lower()
    few = f" {gate['rows']} of {gate['required_rows']}" if gate["rows"] < gate.get("required_rows", 0) else ""
    return Text(f"{strongest['auroc']:.3f} ({strongest['upper']:.3f}) {verdict}{few}", style=_style(gate["status"]))


def _inference(decision: Document) -> Text:
    status = decision["inference"]["status"]
    return Text(status.lower(), style=_style(status))


def _power(decision: Document) -> str:
    weakest = min(endpoint["power"] for endpoint in decision["power"]["utility"].values())
    return f"{weakest:.2f} {decision['membership']['power']:.2f}"


def _ledger(decision: Document) -> Text:
    status = decision["ledger"]["status"]
    return Text(status, style=_style(status))


def _decision(decision: Document) -> Text:
    grade = decision["decision"]
    text = Text(grade, style="bold green" if grade.startswith("ELIGIBLE") else "bold red")
    for word in [*decision["reasons"], *decision["notes"]]:
        text.append(f"\n  {word}", style="not bold default")
    return text


def _style(status: str) -> str:
    if status in ("OK", "PASS", "PASS_CONFIRMED"):
        return "green"
    return "yellow" if status.startswith(("HOLD", "PASS_POINT", "UNDECIDED")) else "red"


WHO = (
    Column("generator", lambda d: str(d["generator"])),
    Column("ε", lambda d: _number(d["epsilon"], ".3g"), right=True),
)
COST = (
    Column("δ", lambda d: _number(d["delta"], ".0e"), right=True),
    Column("μ", lambda d: _number(d["mu"], ".3f"), right=True),
)
UTILITY = (
    Column("C-index", _endpoint("c_index"), right=True),
    Column("macro-F1", _endpoint("macro_f1"), right=True),
    Column("AUROC", _endpoint("auroc"), right=True),
    Column("Spearman", _endpoint("spearman"), right=True),
)
PRIVACY = (
    Column("DCR", _closest_record),
    Column("MIA", _membership),
    Column("inference", _inference),
    Column("power", _power),
    Column("ledger", _ledger),
    Column("decision", _decision),
)
