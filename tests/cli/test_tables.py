"""Tables at 80 columns: they fit, or are wider with every number and name whole."""

from __future__ import annotations

import pytest
from rich.table import Table

from plantain.cli.terminal.tables import FOLDED, print_table


@pytest.fixture(autouse=True)
def eighty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def table(measures: int, arm: str) -> Table:
    made = Table(title="scores")
    made.add_column("model", overflow="fold")
    for number in range(measures):
        made.add_column(f"measure {number}", justify="right")
    made.add_row(arm, *["0.83 0.80–0.86"] * measures)
    return made


def test_a_table_that_fits_is_as_wide_as_the_terminal_and_a_wider_one_breaks_no_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(table(3, "offline/procedural"))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    print_table(table(12, "openai-compatible/a-model-with-a-very-long-name-2026-11-22"))
    said = capsys.readouterr().out
    assert said.count("0.80–0.86") == 12
    assert 80 < max(map(len, said.splitlines())) <= 1 + FOLDED + 3 + 12 * 12


def test_a_table_without_rows_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(table(1, ""))
    print_table(Table(title="nothing"))
    assert "measure 0" in capsys.readouterr().out
