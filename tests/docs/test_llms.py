"""`llms.txt` of the site: title, summary in a quote, then sections of links with notes, as llmstxt.org specifies."""

import runpy
from pathlib import Path

import pytest

from docs.blocks import ROOT

TEXT = (
    ("index", "Top\n===\n\nIt edits images. More.\n\n.. toctree::\n   :caption: Learn\n\n   one\n"),
    ("one", "One\n===\n\nThe first page:\n\n.. toctree::\n\n   two\n"),
    ("two", "Two\n===\n\n" + "word " * 60),
)


def test_every_page_is_listed_in_its_section_with_address_and_first_sentence(tmp_path: Path) -> None:
    out, application = tmp_path / "site", pytest.importorskip("sphinx.application")
    for name, text in TEXT:
        (tmp_path / f"{name}.rst").write_text(text)
    app = application.Sphinx(tmp_path, None, out, out, "html", {"project": "plantain"}, None, None)
    app.connect("build-finished", runpy.run_path(str(ROOT / "docs/conf.py"))["_write_llms"])
    app.build()
    lines = ["# plantain", "", "> It edits images.", "", "## Learn", "", "- [One](one.html): The first page"]
    lines.append(f"  - [Two](two.html): {'word ' * 39}...")  # at most 200 characters
    assert (out / "llms.txt").read_text().splitlines() == lines
