"""The three notebooks run from top to bottom in a fresh folder and print their stored outputs."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from docs.blocks import ROOT, shape

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
MOST_BYTES = 200_000


def printed(cell: nbformat.NotebookNode) -> list[str]:
    """The lines of a cell's outputs, without progress and without the parts that change from run to run."""
    found = [one.text if "text" in one else one.data["text/plain"] for one in cell.get("outputs", ())]
    return [
        shape(line) for line in "".join(found).splitlines() if not re.match(r"plantain: [\w ]+: \d+/", line)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_run_prints_the_stored_outputs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "88")
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    notebook = nbformat.read(path, as_version=4)
    stored = [printed(cell) for cell in notebook.cells]
    assert any(stored), "python docs/run_notebooks.py"
    NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert [printed(cell) for cell in notebook.cells] == stored, "python docs/run_notebooks.py"
    assert max(len(str(cell.get("outputs", ""))) for cell in notebook.cells) < MOST_BYTES
