"""How the site is built: `make docs`. Nothing on it comes from another address, fonts included."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.ext.autodoc.mock import mock

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

from reference_from_code import write_reference  # noqa: E402

from plantain import __version__  # noqa: E402

project = "plantain"
author = copyright = "The plantain authors"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
nb_execution_mode = (
    "off"  # notebooks keep the outputs of their last run; tests/docs/test_notebooks.py checks them
)
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
napoleon_use_ivar = True
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


def _summary(env, name: str) -> str:  # type: ignore[no-untyped-def]
    """Return the first sentence of a page, at most 200 characters."""
    paragraphs = env.get_doctree(name).findall(nodes.paragraph)
    text = " ".join(next(map(nodes.paragraph.astext, paragraphs), "").split()).removeprefix("Decision. ")
    sentence = re.split(r"(?<=[.:])\s(?=[A-Z0-9])", text, maxsplit=1)[0].rstrip(":")
    return sentence if len(sentence) <= 200 else sentence[:197].rsplit(" ", 1)[0] + " ..."


def _write_llms(app, error) -> None:  # type: ignore[no-untyped-def]
    """Write `llms.txt`: every page in the order of the tables of contents, with address and first sentence."""
    if error or app.builder.format != "html":
        return
    env, listed = app.env, set()

    def entries(name: str, depth: int) -> list[str]:
        if name in listed:
            return []
        listed.add(name)
        title, address = env.titles[name].astext(), app.builder.get_target_uri(name)
        lines = [f"{'  ' * depth}- [{title}]({address}): {_summary(env, name)}".rstrip(": ")]
        return lines + [
            line for one in env.toctree_includes.get(name, ()) for line in entries(one, depth + 1)
        ]

    root = env.config.root_doc
    lines = [f"# {project}", "", f"> {_summary(env, root)}"]
    for tree in env.get_doctree(root).findall(addnodes.toctree):
        found = [line for _, name in tree["entries"] for line in entries(name, 0)]
        lines += ["", f"## {tree['caption']}", "", *found]
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app) -> None:  # type: ignore[no-untyped-def]
    """Sphinx's own entrance."""
    app.connect("builder-inited", lambda _: _write_generated())
    app.connect("build-finished", _write_llms)

    def read(_, name: str, source: list[str]) -> None:  # type: ignore[no-untyped-def]
        page = HERE / f"{name}.md"
        if page.exists() and "generated" not in page.parts:
            source[0] = _on_site(source[0], page, page)

    def level(_, __, ___, context, ____) -> None:  # type: ignore[no-untyped-def]
        tree = context.get("furo_navigation_tree", "")  # Sphinx gives its captions no level
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')

    app.connect("source-read", read)
    app.connect("html-page-context", level, priority=900)
