"""Every artefact with each command that reads its kind: one line, nothing opened outside, nothing started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostile.artefacts import ARTEFACTS, Artefact, make_templates
from hostile.watched_run import run_commands, watch


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    watch()
    yield make_templates(tmp_path_factory.mktemp("templates"))


@pytest.mark.parametrize("artefact", ARTEFACTS, ids=str)
def test_hostile_artefact_gives_one_line(artefact: Artefact, templates: Path, tmp_path: Path) -> None:
    assert run_commands(artefact, templates, tmp_path) == []


def test_files_opened_outside_are_detected(tmp_path: Path, templates: Path) -> None:
    """A link placed by the user is followed, and the hook reports the opened file."""
    problems = run_commands(
        Artefact("catalogue", "r.toml", "a link to a file outside"), templates, tmp_path / "w"
    )
    assert any("opened" in one and "outside/mine.txt" in one for one in problems), problems
