"""The pages of the reference that are written from the code, so that they cannot be out of date.

`write_reference(folder)` is called by `docs/conf.py` when the site is built.
"""

from __future__ import annotations

from pathlib import Path

from reference_from_code.commands import command_pages
from reference_from_code.files import examples_page, finding_page, rubric_page
from reference_from_code.installed import installed_pages
from reference_from_code.json_shapes import json_page
from reference_from_code.keys import recipe_page, settings_page

ABOUT = "<!-- written from the code by docs/reference_from_code; do not edit -->\n\n"


def pages() -> dict[str, str]:
    """Every generated page, by its path below the reference's folder."""
    return {
        **command_pages(),
        "recipe.md": recipe_page(),
        "settings-file.md": settings_page(),
        "rubric-file.md": rubric_page(),
        "finding-file.md": finding_page(),
        "every-finding.md": examples_page(),
        "json-shapes.md": json_page(),
        **installed_pages(),
    }


def write_reference(folder: Path) -> None:
    """Writes the pages whose text has changed, and removes those that nothing writes any more."""
    wanted = {folder / name: ABOUT + text for name, text in pages().items()}
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.rglob("*.md"):
        if path not in wanted:
            path.unlink()
