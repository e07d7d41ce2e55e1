"""Every path that a page names exists, in ARCHITECTURE.md and in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ROOT / "docs/reference/generated", ROOT / "docs/development/generated"
"""Pages that are written when the site is built: `make docs` checks the links to and on them."""

PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if not any(page.is_relative_to(folder) for folder in GENERATED)
)
PLACES = (ROOT, ROOT / "src", ROOT / "src/plantain")
"""Folders to which paths on a page are relative, in addition to the page's own folder."""

PACKAGES = {path.name for path in PLACES[2].iterdir() if path.is_dir()} - {"offline"}
"""First parts of words that are paths; `offline/templates` is a model."""

PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")


def named(text: str) -> set[str]:
    """Return the paths on a page: targets of links, modules, and words in code style that start with a package."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    links = {link for link in re.findall(r"\]\(([^)#\s]+)", text) if not re.match(r"[a-z]+:", link)}
    words = {word for word in re.findall(r"`([^`\s]+)`", text) if PATH.fullmatch(word)}
    paths = {
        word
        for word in words
        if "/" in word and word.partition("/")[0] in {*PACKAGES, "docs", "tests", "src"}
    }
    return links | paths | {word for word in words if word.endswith((".py", ".j2"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_on_a_page_exists(page: Path) -> None:
    files = {path.name for folder in (PLACES[2], ROOT / "tests") for path in folder.rglob("*.*")}
    missing = [
        path
        for path in sorted(named(page.read_text(encoding="utf-8")))
        if not any((place / path).exists() for place in (page.parent, *PLACES))
        and not any((page.parent / path).resolve().is_relative_to(folder) for folder in GENERATED)
        and ("/" in path or path not in files)
    ]
    assert missing == []


def test_architecture_lists_the_files_of_both_commands_in_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for title, first, last in (
        ("One hosted build task", "cli/__init__.py", "journal/questions/status.py"),
        ("One `plantain bench score`", "cli/bench/score.py", "journal/writer.py"),
    ):
        section = text.partition(f"## {title}\n")[2].partition("\nBefore it")[0]
        files = re.findall(r"`([\w/]+\.py)`", section)
        assert (files[0], files[-1]) == (first, last)
        assert len(files) == len(set(files))
        assert all((PLACES[2] / file).is_file() for file in files)
