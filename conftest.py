"""For the examples in docstrings: those of the front door run in a folder with all that they name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "tests"))

NEED_FILES = (
    "plantain.api",
    "plantain.bench.benchmark.benchmark",
    "plantain.catalogue.store",
    "plantain.pipeline.recipe",
)


@pytest.fixture(scope="session")
def small_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`pilot.toml` with two tasks on one photograph, and a benchmark of three samples in `bench`."""
    from bench.small_bench import small_bench
    from pipeline.quick import quick_catalogue

    folder = tmp_path_factory.mktemp("project")
    quick_catalogue(folder / "catalogue", images=1)
    data = 'catalogue = "catalogue"\nfindings = ["AMD", "Cataract"]\ndirections = ["add"]\ncheck_text = false'
    (folder / "pilot.toml").write_text(f'name = "pilot"\nseed = 3\n[data]\n{data}\n')
    small_bench(folder / "bench", 3)
    return folder


@pytest.fixture(autouse=True)
def _in_small_project(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, pytest.DoctestItem) and request.node.name.startswith(NEED_FILES):
        monkeypatch.chdir(request.getfixturevalue("small_project"))
