"""Names of hypotheses come from files: a screen shows them as they are."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from synth_platform.cli.discoveries import lists_table, show_list


def document(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "cohort": "c", "contrast": "a", "mu": 1.0, "epsilon": 4.38, "delta": 1e-5, "alpha": 0.05, "reasons": [],
        "statistic": "dosage", "hypotheses": 9, "method": "fixed", "size": 1, "selected": [], "entries": ["E"],
        "discoveries": [{"feature": name, "log_e": 5.0}], "decision": "ELIGIBLE_FORMAL", "package": None, **changes,
    }  # fmt: skip


def on_screen(document: dict[str, Any]) -> str:
    screen = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    show_list(screen, document)
    screen.print(lists_table([document]))
    return screen.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("name", ["[/x]", "PC[a18:1]", "rs1 [link=file:///etc]here[/link]", "7:m:x:a", "\\[b]", "C\\"])
def test_names_of_hypotheses_are_shown_as_they_are(name: str) -> None:
    """Claim: brackets in a registered name are neither markup nor the end of the command, colons no emoji."""
    assert on_screen(document(name)).count(f" {name} ") == 2


@pytest.mark.parametrize("letter", ["\x1b[2J", "\r", "\u202e", "\n"])
def test_no_name_moves_the_cursor_or_turns_the_line(letter: str) -> None:
    said = on_screen(document(f"rs1{letter}7"))
    assert said.count(f"rs1?{letter[1:]}7") == 2
    assert not set(said) & set("\x1b\r\u202e")


def test_a_folder_with_brackets_is_told_as_it_is() -> None:
    assert "/home/[x]/packages" in on_screen(document("g", package="/home/[x]/packages"))
