"""Modules in the working directory, such as a download, are not imported by any interpreter that a command starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import skimage.data
from PIL import Image

from plantain.cli import main

WORKER = Path(__file__).parents[1] / "fakes" / "process_worker.py"
PLANTED = ("signal.py", "socket.py", "random.py", "json.py", "plantain/__init__.py")
RECIPE = """
name = "planted"
[data]
catalogue = "catalogue"
findings = ["AMD"]
directions = ["add"]
[models]
writer = "offline/templates"
editor = "EDITOR"
judge = "offline/instruments"
[loop]
max_rounds = 1
[engine]
kind = "ENGINE"
[providers.process.workers.mine]
command = ["PYTHON", "WORKER"]
"""
API = """
import sys, plantain
if __name__ == "__main__":
    plantain.run(sys.argv[1], sys.argv[2])
"""


def run(folder: Path, *command: object) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder / "planted",
        env={name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHON"))},
        capture_output=True,
        text=True,
    )
    assert not (folder / "ran").exists(), (folder / "ran").read_text()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("editor", "engine"),
    [("process/mine", "local"), pytest.param("offline/procedural", "ray", marks=pytest.mark.slow)],
)
def test_no_module_of_the_working_directory_runs(tmp_path: Path, editor: str, engine: str) -> None:
    """By Python's documentation of PYTHONSAFEPATH; a planted module leaves a mark where it is imported."""
    for name in PLANTED:
        (tmp_path / "planted" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "planted" / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write(__file__)\n")
    (tmp_path / "images" / "normal").mkdir(parents=True)
    Image.fromarray(skimage.data.retina()).save(tmp_path / "images" / "normal" / "a.png")
    values = {"EDITOR": editor, "ENGINE": engine, "PYTHON": sys.executable, "WORKER": str(WORKER)}
    recipe = RECIPE
    for name, value in values.items():
        recipe = recipe.replace(name, value)
    (tmp_path / "recipe.toml").write_text(recipe)
    (tmp_path / "api.py").write_text(API)
    plantain = Path(sys.executable).with_name("plantain")
    kind = ("--modality", "fundus", "--licence", "open", "--skip-text", "--to", tmp_path / "catalogue")
    if engine == "local":
        run(tmp_path, plantain, "ingest", "folder", tmp_path / "images", *kind)
        run(tmp_path, plantain, "build", tmp_path / "recipe.toml", "--run", tmp_path / "run")
    else:  # a script is the harder case: the command sets Python's own variable for every process that it starts
        assert main(["ingest", "folder", str(tmp_path / "images"), *map(str, kind)]) == 0
    run(tmp_path, sys.executable, tmp_path / "api.py", tmp_path / "recipe.toml", tmp_path / "by-api")
