"""Every artefact with a command that reads its kind: one line, nothing opened outside, nothing started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostile.artefacts import Artefact, artefacts, make_templates
from hostile.walking import walk, watch

ALL = list(artefacts())

GROUPS = 12
"""Artefacts of a test: each takes a moment, and what a test costs beside them is most of it."""


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    watch()
    yield make_templates(tmp_path_factory.mktemp("templates"))


@pytest.mark.parametrize("first", range(0, len(ALL), GROUPS))
def test_hostile_artefacts(first: int, templates: Path, tmp_path: Path) -> None:
    """Of an artefact's commands one, by turns."""
    wrong: list[str] = []
    for number, artefact in enumerate(ALL[first : first + GROUPS], first):
        turn = number % len(artefact.commands)
        wrong += walk(artefact, templates, tmp_path / str(number), slice(turn, turn + 1))
    assert wrong == []


def test_the_watch_sees_what_it_should(tmp_path: Path, templates: Path) -> None:
    """An artefact that a command does open outside: the watch reports it."""

    def link_whole(folder: Path, outside: Path) -> None:
        (folder / "r.toml").unlink()
        outside.write_text("mine", encoding="utf-8")
        (folder / "r.toml").symlink_to(outside)

    told = walk(
        Artefact("catalogue", "a recipe", link_whole, ("plan {it}/r.toml",)), templates, tmp_path / "w"
    )
    assert any("opened" in one and "outside/mine.txt" in one for one in told), told
