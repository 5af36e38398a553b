"""The `synth` command: every subcommand, put together."""

from __future__ import annotations

from importlib.metadata import version as version_of
from typing import Annotated

import typer

from synth_platform.cli import (
    audit_commands,
    cohort_commands,
    curve_commands,
    daemon,
    discover_commands,
    ledger_commands,
    margins_commands,
    reaudit_commands,
    run_commands,
    ui,
)
from synth_platform.cli.app import app

COMMANDS = (
    audit_commands,
    cohort_commands,
    curve_commands,
    daemon,
    discover_commands,
    ledger_commands,
    margins_commands,
    reaudit_commands,
    run_commands,
    ui,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"synth {version_of('synth-platform')}")
        raise typer.Exit


@app.callback(help=app.info.help)
def synth(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Which one.")
    ] = False,
) -> None:
    """What comes before any subcommand."""


def main() -> None:
    """Entry point."""
    app()
