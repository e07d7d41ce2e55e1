"""Every name of plantain that a page, a notebook or an example imports has an entry in the API reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from docs.blocks import ROOT

FILES = [path for kind in ("docs/**/*.md", "docs/**/*.ipynb", "examples/**/*.py") for path in ROOT.glob(kind)]
IMPORT = re.compile(r'^[\s"]*from (plantain[\w.]*) import ([\w, ]+)', re.M)
ENTRY = re.compile(r"^\.\. auto(\w+):: (\S+)\n(?:   :members: (.+))?", re.M)


def entries() -> Iterator[object]:
    """The objects that the two pages of the Python API describe."""
    pages = [(ROOT / f"docs/reference/{name}.md").read_text(encoding="utf-8") for name in ("api", "plug-ins")]
    for kind, path, members in ENTRY.findall("".join(pages)):
        module, name = (path, "") if kind == "module" else path.rsplit(".", 1)
        home = import_module(module)
        yield from (
            getattr(home, one)
            for one in ([name] if name else members.split(", ") if members else home.__all__)
        )


def test_an_imported_name_has_an_entry() -> None:
    found = [match for path in FILES for match in IMPORT.findall(path.read_text(encoding="utf-8"))]
    imported = {(module, name) for module, names in found for name in names.split(", ")}
    described = {id(one) for one in entries()}
    assert {("plantain.roles", "Reply"), ("plantain.sources.registry", "SourceKind")} <= imported
    assert [
        one for one in sorted(imported) if id(getattr(import_module(one[0]), one[1])) not in described
    ] == []
