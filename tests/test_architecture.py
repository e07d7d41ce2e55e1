"""No page names a path that is not there."""

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
"""Where a path on a page begins, beside the page's own folder."""

ROOMS = {path.name for path in PLACES[2].iterdir() if path.is_dir()} - {"offline"}
"""Words that begin so are paths; `offline/templates` is a model."""

PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")


def named(text: str) -> set[str]:
    """What a page points at: targets of links, modules, and words in code style that begin with a room of the house."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    links = {link for link in re.findall(r"\]\(([^)#\s]+)", text) if not re.match(r"[a-z]+:", link)}
    words = {word for word in re.findall(r"`([^`\s]+)`", text) if PATH.fullmatch(word)}
    rooms = {
        word for word in words if "/" in word and word.partition("/")[0] in {*ROOMS, "docs", "tests", "src"}
    }
    return links | rooms | {word for word in words if word.endswith((".py", ".j2"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_on_a_page_is_there(page: Path) -> None:
    files = {path.name for room in (PLACES[2], ROOT / "tests") for path in room.rglob("*.*")}
    missing = [
        path
        for path in sorted(named(page.read_text(encoding="utf-8")))
        if not any((place / path).exists() for place in (page.parent, *PLACES))
        and not any((page.parent / path).resolve().is_relative_to(folder) for folder in GENERATED)
        and ("/" in path or path not in files)
    ]
    assert missing == []
