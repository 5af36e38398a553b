"""The decision table: one line per synthetic table, figures beside their verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

ENDPOINTS = {"c_index": "C-index", "macro_f1": "macro-F1", "auroc": "AUROC", "spearman": "Spearman"}


def decision_table(decisions: Iterable[Mapping[str, Any]]) -> Table:
    """Cohort, generator, cost, endpoints (P/S), the three privacy verdicts, decision and reasons."""
    table = Table(
        title="Release decisions   (endpoints: preservation P / skill S)", title_justify="left", pad_edge=False
    )
    for name in ("cohort", "generator"):
        table.add_column(name, no_wrap=True)
    for name in ("ε", "δ", "μ"):
        table.add_column(name, justify="right", no_wrap=True)
    for title in ENDPOINTS.values():
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("DCR: copies π̂ r̂", no_wrap=True)
    table.add_column("MIA: AUROC (bound)", no_wrap=True)
    table.add_column("ledger", no_wrap=True)
    table.add_column("decision", no_wrap=True)
    table.add_column("reasons and notes", overflow="fold")
    previous = None
    for decision in decisions:
        if previous not in (None, decision["cohort"]):
            table.add_section()
        previous = decision["cohort"]
        table.add_row(*_cells(decision))
    return table


def _cells(d: Mapping[str, Any]) -> list[Text | str]:
    closest, membership = d["closest_record"], d["membership"]
    verdict = membership["status"].removeprefix("PASS_").lower()
    strongest = max(membership["attacks"].values(), key=lambda attack: attack["upper"])
    eligible = d["decision"].startswith("ELIGIBLE")
    return [
        d["cohort"],
        d["generator"],
        _number(d["epsilon"]),
        "-" if d["delta"] is None else f"{d['delta']:.0e}",
        _number(d["mu"], 3),
        *(_endpoint(d["endpoints"][name]) for name in ENDPOINTS),
        Text(
            f"{closest['duplicates']:>3} {closest['train_closer']:.3f} {closest['excess']:.3f}  {closest['status']}",
            style=_style(closest["status"]),
        ),
        Text(
            f"{strongest['auroc']:.3f} ({strongest['upper']:.3f})  {verdict}",
            style=_style(membership["status"]),
        ),
        Text(d["ledger"]["status"], style=_style(d["ledger"]["status"])),
        Text(d["decision"], style="bold green" if eligible else "red"),
        ", ".join([*d["reasons"], *d["notes"]]),
    ]


def _endpoint(endpoint: Mapping[str, Any]) -> Text:
    status = endpoint["status"]
    if endpoint["preservation"] is None:
        return Text(status.removeprefix("HOLD_").lower(), style="yellow")
    figures = f"{endpoint['preservation']:.3f}/{endpoint['skill']:.2f}"
    return Text(figures + (" ?" if status.startswith("HOLD") else ""), style=_style(status))


def _style(status: str) -> str:
    if status in ("OK", "PASS", "PASS_CONFIRMED"):
        return "green"
    return "yellow" if status.startswith(("HOLD", "PASS_POINT")) else "red"


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}g}"
