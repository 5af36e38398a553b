"""The `synth` command: every subcommand, put together."""

from __future__ import annotations

from synth_platform.cli import cohort_commands, ledger_commands, run_commands, ui
from synth_platform.cli.app import app

COMMANDS = (cohort_commands, ledger_commands, run_commands, ui)


def main() -> None:
    """Entry point."""
    app()
