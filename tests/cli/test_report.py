"""`plantain report` from the command line's own entrance."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.commands import json_of, printed, refused


@pytest.fixture(scope="module")
def run(own_run: Path) -> Path:
    return own_run


def test_report_prints_table_one_and_the_path(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # a narrower table breaks its cells
    out = printed("report", run)
    assert (
        "Table 1 (counts tasks)" in out and f"report: {run / 'report.html'}\nnext: plantain view {run}" in out
    )
    assert "rate (judge not validated): success of" in out  # no card says what this judge's yes is worth
    chest = next(line for line in out.splitlines() if line.strip().startswith("Chest X-ray  Add"))
    assert chest.split() == ["Chest", "X-ray", "Add", "4", "2", "1", "1", "67", "%", "9–97", "%", "1.50"]


def test_report_json_has_paths_and_tables(run: Path, tmp_path: Path) -> None:
    told = json_of("report", run, "--to", tmp_path / "new" / "r.html")
    assert Path(told["report"]) == tmp_path / "new" / "r.html" and Path(told["report"]).exists()
    assert told["composition"]["total"]["success"] == 5 and len(told["gallery"]["ids"]) == 10


def test_report_of_no_run_is_one_line(tmp_path: Path) -> None:
    assert str(tmp_path / "nothing") in refused("report", tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "r.json", "report"])
def test_report_to_anything_but_an_html_file_is_refused_in_one_line(
    run: Path, tmp_path: Path, name: str
) -> None:
    assert "--to" in refused("report", run, "--to", tmp_path / name)
    assert list(tmp_path.iterdir()) == []
