"""`llms.txt` of the site: title, summary in a quote, then sections of links with notes, as llmstxt.org specifies."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from docs.blocks import ROOT


def test_every_page_is_listed_in_its_section_with_address_and_first_sentence(tmp_path: Path) -> None:
    application = pytest.importorskip("sphinx.application")
    spec = importlib.util.spec_from_file_location("conf_of_docs", ROOT / "docs/conf.py")
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    pages = {
        "index": "Top\n===\n\nIt edits images. More.\n\n.. toctree::\n   :caption: Learn\n\n   one\n",
        "one": "One\n===\n\nThe first page:\n\n.. toctree::\n\n   two\n",
        "two": "Two\n===\n\n" + "word " * 60,
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.rst").write_text(text)
    app = application.Sphinx(
        tmp_path, None, tmp_path / "out", tmp_path / "trees", "html", {"project": "plantain"}, None, None
    )
    app.connect("build-finished", conf._write_llms)
    app.build()
    assert (tmp_path / "out/llms.txt").read_text().splitlines() == [
        *("# plantain", "", "> It edits images.", "", "## Learn", "", "- [One](one.html): The first page"),
        f"  - [Two](two.html): {'word ' * 39}...",  # at most 200 characters
    ]
