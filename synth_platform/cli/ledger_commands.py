"""`synth ledger show | verify | budget`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from resources.ledger import home_ledger
from synth_platform.cli.app import VERDICT_FAILED, Json, app, bad_input, console, home, print_json
from synth_platform.privacy.ledger import Ledger

ledger = typer.Typer(no_args_is_help=True, help="The privacy ledger: every private access, and what is left.")
app.add_typer(ledger, name="ledger")
Domain = Annotated[str | None, typer.Option("--domain", help="One privacy domain only.")]


def open_ledger() -> Ledger:
    """The ledger of the home."""
    return home_ledger(home())


@ledger.command()
def show(domain: Domain = None, as_json: Json = False) -> None:
    """Every row of the chain, oldest first."""
    with bad_input():
        rows = open_ledger().table(domain)
    if as_json:
        print_json(rows)
        return
    columns = ("id", "state", "domain", "cohort", "code", "sensitivity", "scale", "epsilon", "time", "entry_id")
    table = Table(*columns)
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in columns))
    console().print(table if rows else "the ledger is empty")


@ledger.command()
def verify(as_json: Json = False) -> None:
    """Recompute the hash chain and compare it with its anchor; exit code 1 if anything was altered."""
    with bad_input():
        report = open_ledger().verify(known_heads(home().released))
    if as_json:
        print_json(report.as_dict())
    else:
        typer.echo(f"{'sound' if report.ok else 'BROKEN'}: {report.rows} rows")
        for problem in report.problems:
            typer.echo(f"  row {problem.row if problem.row is not None else 'end'}: {problem.what}")
        for notice in report.notices:
            typer.echo(f"  row {notice.row}: note: {notice.what}")
    if not report.ok:
        raise typer.Exit(VERDICT_FAILED)


@ledger.command()
def budget(domain: Domain = None, as_json: Json = False) -> None:
    """Cap and spending of every privacy domain."""
    with bad_input():
        book = open_ledger()
        summaries = [book.budget_summary(name) for name in ([domain] if domain else book.domains())]
    if as_json:
        print_json(summaries)
        return
    table = Table("domain", "cap ε", "δ", "spent ε (RDP)", "spent ε (tight)", "μ", "left", "committed", "pending")
    for s in summaries:
        table.add_row(
            s["domain"],
            *(
                _cell(s[name])
                for name in ("cap", "delta", "spent_rdp", "spent_pld", "mu", "remaining", "committed", "reserved")
            ),
        )
    console().print(table if summaries else "no privacy domain has spent anything")


def known_heads(released: Path) -> list[str]:
    """Head hashes that published packages carry: a ledger that lost rows since no longer holds them."""
    return [json.loads(file.read_text("utf-8"))["head_hash"] for file in sorted(released.glob("*/ledger.json"))]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
