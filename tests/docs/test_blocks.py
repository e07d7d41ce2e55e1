"""Every block of commands in README and on the site runs, offline, in a fresh folder, and says what its page says.

The tutorial comes first. The other pages find what it made: `catalogue`, `pilot.toml`, a run, a release, a benchmark.
README stands alone: it has a folder of its own, with one image and nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from docs.blocks import ROOT, blocks, inside, walk
from docs.shapes import COMMANDS, KEPT, differences, shapes
from plantain.offline.workers import close_workers

TUTORIAL = sorted((ROOT / "docs/tutorial").glob("[0-9]*.md"))
OTHERS = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if page not in TUTORIAL and "generated" not in page.parts and "design" not in page.parts
)
"""Design pages are for reading: they show parts of files, not walks."""
README = ROOT / "README.md"


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk left: what is wrong on each page, and the shapes of what `--json` prints in its folder."""

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
def walked(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    """The pages in one folder, in this order; README in another, where there are pictures and nothing else."""
    try:
        with inside(tmp_path_factory.mktemp("readme")):
            problems = walk(TUTORIAL[:1])
            leave_one_scan()
            problems |= walk((README,))
        with inside(tmp_path_factory.mktemp("walk")):
            problems |= walk((*TUTORIAL, *OTHERS))
            return Walked(problems, shapes())
    finally:
        close_workers()


@pytest.mark.slow
@pytest.mark.parametrize("page", [*TUTORIAL, *OTHERS, README], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_stands_on_a_page_runs(page: Path, walked: Walked) -> None:
    assert walked.problems[page] == []


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_json_has_the_shape_that_the_reference_says(command: str, walked: Walked) -> None:
    kept, found = json.loads(KEPT.read_text(encoding="utf-8"))[command], walked.shapes[command]
    assert differences(found, kept) == [], "`make shapes` writes them anew"


def test_what_is_not_run_says_what_it_needs() -> None:
    """What a page shows runs, but for what needs a key, hardware, data or somebody who is not here."""
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
