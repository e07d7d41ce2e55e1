"""The page of a rejudging: judges, flips, and the images on which judges differ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment

from plantain.audit.flips import Record
from plantain.journal import BadBlob, JournalReader
from plantain.journal.cards import cards_of, standing_of
from plantain.pages.publishing import html_target, page_environment, write_page
from plantain.pages.thumbnails import data_uri
from plantain.pixels.decode import BadImage, decode_untrusted
from plantain.rubrics import recorded

TEMPLATES = Path(__file__).parent / "templates"
SIDE, LIMIT = 224, 14_000
"""Longest side of a thumbnail in pixels, and bytes that it may take."""


def write_rejudged(
    reader: JournalReader, tallies: Sequence[Record], flips: Sequence[Record], to: Path | None = None
) -> Path:
    """Write the page, by default `rejudged.html` in the run, and return its path."""
    target = html_target(to if to is not None else reader.run / "rejudged.html")
    cards, rubric = cards_of(reader.run), recorded(reader.header.frozen).name
    names = [str(one["judge"]) for one in tallies]
    lines = [standing_of(cards, name, rubric).line for name in names if "/" in name and " " not in name]
    page = _environment().get_template("rejudged.html.j2")

    def shown(sha256: str, synthetic: bool) -> str:
        return _thumbnail(reader, sha256, synthetic=synthetic)

    write_page(
        target,
        page.render(name=reader.header.name, tallies=tallies, lines=lines, flips=flips, thumbnail=shown),
    )
    return target


def _thumbnail(reader: JournalReader, sha256: str, *, synthetic: bool) -> str:
    """Return an image as a data URI; "" if it is not in the run."""
    if not reader.has_blob(sha256):
        return ""
    try:
        return data_uri(decode_untrusted(reader.read_blob(sha256), sha256), SIDE, LIMIT, synthetic=synthetic)
    except (BadBlob, BadImage):
        return ""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return page_environment(TEMPLATES, "")
