"""Every block of commands in README and on the site runs, offline, in a fresh folder, and says what its page says.

The tutorial comes first. The other pages find what it made: `catalogue`, `pilot.toml`, a run, a release, a benchmark.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.blocks import ROOT, Block, blocks, inside, missing, parsed, perform, shape
from plantain.offline.workers import close_workers

TUTORIAL = sorted((ROOT / "docs/tutorial").glob("[0-9]*.md"))
OTHERS = sorted(
    page
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if page not in TUTORIAL and "generated" not in page.parts and "design" not in page.parts
)
"""Design pages are for reading: they show parts of files, not walks."""


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, list[str]]:
    """What went wrong on each page, all of them in one folder, in this order."""
    problems: dict[Path, list[str]] = {}
    try:
        with inside(tmp_path_factory.mktemp("walk")):
            for page in [*TUTORIAL, *OTHERS]:
                if page.name == "README.md":
                    Path("pilot.toml").unlink()  # it makes its own
                problems[page] = [problem for block in blocks(page) for problem in perform(block)]
    finally:
        close_workers()
    return problems


@pytest.mark.slow
@pytest.mark.parametrize("page", [*TUTORIAL, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_stands_on_a_page_runs(page: Path, walked: dict[Path, list[str]]) -> None:
    assert walked[page] == []


def test_a_block_is_read_with_its_comment(tmp_path: Path) -> None:
    page = ROOT / "docs/tutorial/1-pictures.md"
    assert [block.language for block in blocks(page)] == ["text", "python", "console"]
    text = "<!-- needs: a key -->\n```sh\nplantain models\n```\n"
    assert re.search("needs", text)


def test_output_is_compared_by_its_shape() -> None:
    said = "catalogue:  5 images\nOK: 43 files, 2.2 MB; release f4b4c3a1a016416e\n"
    assert (
        missing(["catalogue: 16 images", "...", "OK: 9 files, 13 MB; release 0123456789abcdef"], said) == []
    )
    assert missing(["OK: 43 files", "catalogue: 5 images"], said) == ["catalogue: 5 images"]  # in this order
    assert shape("cost $1,234.50, round 2") == "cost N round N"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("plantain bild pilot.toml", "no command 'bild'"),
        ("plantain build pilot.toml --rum runs/x", "plantain build: no option --rum"),
        ("plantain bench scor runs/bench", "no command 'scor'"),
        ("pip install -e '.[gemni]'", "no extra 'gemni'"),
        ("make demos", "no make target 'demos'"),
        ("curl example.org", "'curl' is no command that a page may show"),
    ],
)
def test_what_is_only_read_must_exist(line: str, problem: str) -> None:
    assert list(parsed(line)) == [problem]


def test_a_command_that_fails_is_a_problem(tmp_path: Path) -> None:
    with inside(tmp_path):
        (problem,) = perform(Block("page.md", 3, "console", "$ plantain plan nothing.toml\n"))
    assert problem.startswith("page.md:3: plantain plan nothing.toml: exit code 2")
