"""Every block of commands in README and on the site runs offline in a fresh folder and prints the output on its page.

The tutorial comes first. The other pages use its results: `catalogue`, `pilot.toml`, a run, a release, a benchmark.
README runs separately, in its own folder with one image.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from docs.blocks import ROOT, blocks, inside, run_pages
from docs.shapes import COMMANDS, KEPT, differences, shapes
from plantain.offline.workers import close_workers

TUTORIAL = sorted((ROOT / "docs/tutorial").glob("[0-9]*.md"))
OTHERS = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if page not in TUTORIAL and "generated" not in page.parts and "design" not in page.parts
)
"""Design pages are not run: they show parts of files, not sequences of commands."""
README = ROOT / "README.md"


@dataclass(frozen=True, slots=True)
class PagesRun:
    """Results of running the pages: the problems of each, and the shapes of JSON that commands print in its folder."""

    problems: dict[Path, list[str]]
    shapes: dict[str, dict[str, str]]


def leave_one_scan() -> None:
    """Leave the first of the tutorial's images: README prints no counts, and scores by every metric and a judge."""
    labels = Path("scans/labels.csv")
    header, first, *others = labels.read_text().splitlines()
    labels.write_text(f"{header}\n{first}\n")
    for row in others:
        Path("scans", row.partition(",")[0]).unlink()


@pytest.fixture(scope="session")
def pages_run(tmp_path_factory: pytest.TempPathFactory) -> PagesRun:
    """The pages in one folder, in this order; README in another one that contains only images."""
    try:
        with inside(tmp_path_factory.mktemp("readme")):
            problems = run_pages(TUTORIAL[:1])
            leave_one_scan()
            problems |= run_pages((README,))
        with inside(tmp_path_factory.mktemp("pages")):
            problems |= run_pages((*TUTORIAL, *OTHERS))
            return PagesRun(problems, shapes())
    finally:
        close_workers()


@pytest.mark.slow
@pytest.mark.parametrize("page", [*TUTORIAL, *OTHERS, README], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_runs(page: Path, pages_run: PagesRun) -> None:
    assert pages_run.problems[page] == []


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_json_has_the_shape_in_the_reference(command: str, pages_run: PagesRun) -> None:
    kept, found = json.loads(KEPT.read_text(encoding="utf-8"))[command], pages_run.shapes[command]
    assert differences(found, kept) == [], "`make shapes` writes them again"


def test_blocks_that_are_not_run_name_their_needs() -> None:
    """Every block runs except those that need a key, hardware, data or a user."""
    needs = {block.needs for page in [*TUTORIAL, *OTHERS, README] for block in blocks(page)} - {""}
    assert needs == {
        "a cluster",
        "a key",
        "a key and ratings",
        "a minute, which tests/bench/test_bench_demo.py has",
        "a token of the Hub",
        "an installation",
        "data of yours",
        "a person to stop it",
        "weights",
    }
