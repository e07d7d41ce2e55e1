"""Tables in a terminal of 80 columns: nothing is cut off at the right, and nothing is cut short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.quick import quick_catalogue
from plantain.cli import main

RECIPE = """
name = "narrow"
[data]
catalogue = "catalogue"
[models]
writer = "gemini/gemini-3.1-pro-preview"
editor = "gemini/gemini-3.1-flash-lite-image"
"""


@pytest.mark.parametrize("command", [["models"], ["findings"], ["ingest", "--list"], ["plan", "r.toml"]])
def test_a_table_fits_eighty_columns(
    command: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    quick_catalogue(tmp_path / "catalogue", images=1)
    (tmp_path / "r.toml").write_text(RECIPE)
    assert main(command) == 0
    out = capsys.readouterr().out
    tables = [line.rstrip() for line in out.splitlines() if line[:1] in tuple("┏┃┡│└")]
    assert all(line[-1] in "┓┃┩│┘" and len(line) <= 80 for line in tables)  # whole, right border and all
    assert "…" not in "".join(tables)
    if command == ["models"]:
        assert main(["models", "--json"]) == 0
        for model in json.loads(capsys.readouterr().out):
            hosted = str(model["name"]).startswith(("gemini/", "openai/"))
            assert not hosted or (model["name"] in out and str(model["retired"]) in out)
