"""Tables in a terminal of 80 columns: no column is cut off, and no cell is truncated."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.table import Table

from fakes.commands import json_of, printed
from pipeline.quick import quick_catalogue
from plantain.cli.terminal.tables import FOLDED, print_table
from plantain.journal.questions.status import ListedTask
from plantain.report.terminal import task_table

RECIPE = """
name = "narrow"
[data]
catalogue = "catalogue"
[models]
writer = "gemini/gemini-3.1-pro-preview"
editor = "gemini/gemini-3.1-flash-lite-image"
"""


@pytest.mark.parametrize(
    "command", [["models", "--all"], ["findings"], ["ingest", "--list"], ["plan", "r.toml"]]
)
def test_a_table_fits_eighty_columns(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    quick_catalogue(tmp_path / "catalogue", images=1)
    (tmp_path / "r.toml").write_text(RECIPE)
    out = printed(*command)
    rules = [line.rstrip() for line in out.splitlines() if "──" in line]  # below heads, as wide as tables
    assert rules and max(map(len, rules)) <= 80 and "…" not in out.replace("/…", "")
    if command == ["models", "--all"]:
        for model in json_of("models", "--all"):
            hosted = str(model["name"]).startswith(("gemini/", "openai/"))
            assert not hosted or (model["name"] in out and str(model["retired"]) in out)


def measures(count: int, arm: str) -> Table:
    made = Table(title="scores")
    made.add_column("model", overflow="fold")
    for number in range(count):
        made.add_column(f"measure {number}", justify="right")
    made.add_row(arm, *["0.83 0.80–0.86"] * count)
    return made


def test_fitting_table_has_the_terminal_width_and_a_wider_one_breaks_no_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_table(Table(title="nothing"))  # without rows, too
    print_table(measures(3, "offline/procedural"))
    out = capsys.readouterr().out
    assert "measure 0" in out and max(map(len, out.splitlines())) <= 80
    print_table(measures(12, "openai-compatible/a-model-with-a-very-long-name-2026-11-22"))
    out = capsys.readouterr().out
    assert out.count("0.80–0.86") == 12
    assert 80 < max(map(len, out.splitlines())) <= 1 + FOLDED + 3 + 12 * 12


@pytest.mark.parametrize("columns", [60, 80])
def test_no_word_of_a_table_is_broken(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest names of findings next to long reasons, in a list of tasks and in a judge's card."""
    monkeypatch.setenv("COLUMNS", str(columns))
    reason = (
        "no pleural effusion found: no fluid with a surface against lung stands in the costophrenic angles"
    )
    for finding in ("Pneumothorax", "Enlarged Cardiomediastinum"):
        listed = ListedTask(
            "0630cb7a8d11bfb5532f", "not_applicable", "chest_xray", finding, "remove", 2, reason
        )
        print_table(task_table([listed]))
        out = capsys.readouterr().out
        assert all(word in out for word in (*finding.split(), *reason.split(), listed.id))
    figures = Table("", "20 % strength, moved elsewhere", "95 % interval")
    figures.add_column("edit", no_wrap=True)
    figures.add_row(
        "independent masses called meningioma", reason, "0.98 (0.95 to 1.00)", "a name with spaces"
    )
    print_table(figures)
    out = capsys.readouterr().out
    assert all(word in out for word in (*reason.split(), "independent", "a name with spaces", "interval"))
    lines = out.splitlines()
    assert len({len(line) for line in lines}) == 1  # every row ends at the right border
