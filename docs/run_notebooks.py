"""Run the notebooks of `docs/notebooks` in empty folders and store their outputs: `python docs/run_notebooks.py`."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent / "notebooks"


def without_progress(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Return outputs with their text in one piece, without lines of progress."""
    text = "".join(one.text for one in outputs if one.output_type == "stream")
    text = re.sub(r"^plantain: [\w ]+: \d+/\d+.*\n", "", text, flags=re.M)
    streams = [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []
    return streams + [one for one in outputs if one.output_type != "stream"]


def main() -> None:
    """Run all notebooks, each in a folder of its own."""
    os.environ |= {"COLUMNS": "88", "TTY_COMPATIBLE": "0"}  # plain text from commands
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(notebook, timeout=180, resources={"metadata": {"path": folder}}).execute()
        notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
        for cell in notebook.cells:
            cell.metadata = {}
            if cell.cell_type == "code":
                cell.outputs = without_progress(cell.outputs)
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
