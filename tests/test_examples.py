"""The five packages in examples/: short, with public imports only, installed next to plantain and run."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import pytest
import skimage.data

EXAMPLES = Path(__file__).parents[1] / "examples"
MOST_LINES = 40

BUILD = """
import asyncio, sys
from pathlib import Path
from plantain.journal import JournalReader
from plantain.pipeline.recipe import load_recipe
from plantain.pipeline.run import run_build
if __name__ == "__main__":
    asyncio.run(run_build(load_recipe(Path("recipe.toml")), Path("run")))
    with JournalReader.open(Path("run")) as reader:
        for attempt in reader.all_attempts():
            seen = attempt.verdict.observations
            print([(n, r.value, r.passed) for n, r in seen.criteria.items()], dict(seen.facts), attempt.verdict.score)
"""


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.py")), ids=lambda file: file.stem)
def test_an_example_is_short_and_imports_nothing_private(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            assert not [name for name in names if name.startswith("_")]


COMMANDS = """
import io, json, sys
from contextlib import redirect_stdout
from plantain.cli import main
printed = []
for words in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as out:
        assert main(words) == 0, words
    printed.append(out.getvalue())
print(json.dumps(printed))
"""


WHEELS = """
import os, sys
from setuptools.build_meta import build_wheel
for folder in sys.argv[1:]:
    os.chdir(folder)
    build_wheel(".")
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the five packages in it: their wheels, unpacked as pip does."""
    folder = tmp_path_factory.mktemp("packages")
    shutil.copytree(EXAMPLES, folder / "src")
    sources = [str(path.parent) for path in sorted((folder / "src").glob("*/pyproject.toml"))]
    subprocess.run([sys.executable, "-c", WHEELS, *sources], check=True, stdout=subprocess.DEVNULL)
    for wheel in (folder / "src").glob("*/*.whl"):
        shutil.unpack_archive(wheel, folder / "unpacked", "zip")
    return folder / "unpacked"


def run(packages: Path, folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(packages), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_installed_examples_are_listed_and_work(packages: Path, tmp_path: Path) -> None:
    def plantain(*commands: str) -> list[str]:
        """Return the output of each command; all run in one process, as importing takes longest."""
        words = json.dumps([command.split() for command in commands])
        return json.loads(run(packages, tmp_path, "-c", COMMANDS, words))

    (tmp_path / "images").mkdir()
    retina = cv2.cvtColor(skimage.data.retina(), cv2.COLOR_RGB2BGR)
    cv2.imwrite(str(tmp_path / "images" / "p1_1.png"), retina)
    cv2.imwrite(str(tmp_path / "images" / "unnumbered.png"), retina)
    sources, models, metrics, layouts, ingested = plantain(
        "ingest --list",
        "models --json",
        "bench score --help",
        "export --help",
        "ingest numbered-pairs images --modality fundus --licence open --to catalogue --json",
    )
    assert "numbered-pairs" in sources
    rows = {row["name"]: row["roles"] for row in json.loads(models)}
    assert rows["brightness/mean"] == ["judge"]
    assert "unchanged_share" in metrics and "imagefolder" in layouts
    data = json.loads(ingested)
    assert (data["images"], data["rejected"]) == (1, 1)

    (tmp_path / "recipe.toml").write_text(
        'name = "examples"\nrubric = "teaching"\n[data]\ncatalogue = "catalogue"\nfindings = ["AMD"]\n'
        'directions = ["add"]\ncheck_text = false\n[models]\njudge = "brightness/mean"\n[loop]\nmax_rounds = 1\n',
        encoding="utf-8",
    )
    (tmp_path / "build.py").write_text(BUILD, encoding="utf-8")
    # drusen are brighter than the retina: 5 of 5 and unhurt, 0.6 * (5 - 1) / 4 + 0.4 * 1 = 1
    assert run(packages, tmp_path, "build.py").strip() == (
        "[('recognisable', 5.0, True), ('unhurt', None, True)] {'distracting': True} 1.0"
    )

    _, verified = plantain(
        "export run --to release --layout imagefolder --licence CC-BY-4.0", "verify release"
    )
    header, row = (tmp_path / "release" / "imagefolder" / "metadata.csv").read_text().splitlines()
    assert header == "file_name,finding,instruction"
    image = tmp_path / "release" / "imagefolder" / row.split(",")[0]
    assert image.read_bytes()[:2] == b"\xff\xd8" and row.split(",")[1] == "AMD"
    assert "OK" in verified


MEASURE = """
import numpy as np
from types import SimpleNamespace
from plantain.bench.leaderboard.measures import measure
from plantain.bench.score.score import measured
from plantain.metrics.metric import Networks
from plantain.metrics.metric import registered
known = measure("unchanged_share")
print(known.label, known.low, known.high, known.digits, known.higher_is_better)
metric = registered()["unchanged_share"].open(Networks())
before, roi = np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4), bool)
roi[:2] = True
output = before.copy()
output[0] = 9
output[3, :2] = 9
print(measured(metric, SimpleNamespace(before=before, roi=roi), output)[0])
print(measured(metric, SimpleNamespace(before=before, roi=None), output)[0].reason)
"""


@pytest.mark.slow
def test_metric_of_another_package_has_all_that_tables_need(packages: Path, tmp_path: Path) -> None:
    (tmp_path / "measure.py").write_text(MEASURE, encoding="utf-8")
    # eight pixels are outside, two of them changed: 6 / 8
    assert run(packages, tmp_path, "measure.py").splitlines() == [
        "share of pixels outside the region left as they were 0.0 1.0 3 True",
        "Score(value=0.75, reason='')",
        "the sample has no region of interest",
    ]
