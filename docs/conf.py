"""How the site is built: `make docs`. Nothing on it comes from another address, fonts included."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

from sphinx.ext.autodoc.mock import mock

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

from reference_from_code import write_reference  # noqa: E402

from plantain import __version__  # noqa: E402

project = "plantain"
author = copyright = "The plantain authors"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 3
exclude_patterns = ["reference_from_code/**", "**/.ipynb_checkpoints"]
nitpicky = False
default_role = "code"
suppress_warnings = ["toc.multiple_toc_parents"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = f"plantain {release}"
html_static_path = ["_static"]
html_css_files = ["generated/colours.css", "site.css"]
html_show_sphinx = False
html_copy_source = False

TEXTS = {
    "architecture": "ARCHITECTURE.md",
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "security": "SECURITY.md",
}
"""Pages of the site at the root of the repository."""

_LINK = re.compile(r"\[([^\[\]]*)\]\(([^):#\s]+)(#[^)\s]*)?\)")


def _on_site(text: str, page: Path, seen_from: Path) -> str:
    """The text of the page at `page`, its links as seen from `seen_from`; of other links the words stay."""

    def link(match: re.Match[str]) -> str:
        words, path, anchor = match[1], match[2], match[3] or ""
        target = (page.parent / path).resolve()
        for name, file in TEXTS.items():
            if target == ROOT / file:
                target = HERE / "development/generated" / f"{name}.md"
        if not target.is_relative_to(HERE):
            return words
        return f"[{words}]({Path(os.path.relpath(target, seen_from.parent)).as_posix()}{anchor})"

    return _LINK.sub(link, text)


HEAVY = (
    "torch",
    "diffusers",
    "transformers",
    "peft",
    "accelerate",
    "safetensors",
    "fastapi",
    "uvicorn",
    "ray",
    "pyarrow",
)
"""Packages of extras that some commands import; the site is built without them, too."""


def _write_generated() -> None:
    _write_colours()
    with mock([name for name in HEAVY if importlib.util.find_spec(name) is None]):
        write_reference(HERE / "reference/generated")
    for name, file in TEXTS.items():
        path = HERE / "development/generated" / f"{name}.md"
        text = _on_site((ROOT / file).read_text(encoding="utf-8"), ROOT / file, path)
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _write_colours() -> None:
    """The colours and letters of all that plantain shows, under the theme's switch between light and dark."""
    look = (ROOT / "src/plantain/pages/templates/look.css").read_text(encoding="utf-8")
    (names,) = re.findall(r":root (\{.*?\})", look, flags=re.S)[:1]
    rules = (
        f"body {names}\n"
        'body[data-theme="light"] { color-scheme: light; }\n'
        'body[data-theme="dark"] { color-scheme: dark; }\n'
    )
    path = HERE / "_static/generated/colours.css"
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != rules:
        path.write_text(rules, encoding="utf-8")


def setup(app) -> None:  # type: ignore[no-untyped-def]
    """Sphinx's own entrance."""
    app.connect("builder-inited", lambda _: _write_generated())

    def read(_, name: str, source: list[str]) -> None:  # type: ignore[no-untyped-def]
        page = HERE / f"{name}.md"
        if page.exists() and "generated" not in page.parts:
            source[0] = _on_site(source[0], page, page)

    app.connect("source-read", read)
