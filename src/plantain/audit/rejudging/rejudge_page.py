"""What a rejudging came to, as one HTML page, with the pictures on which judges differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment

from plantain.audit.rejudging.flips import EVERYWHERE, Flip, JudgeTally, rate_json
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
    reader: JournalReader,
    tallies: Sequence[JudgeTally],
    found: Sequence[Flip],
    reasons: Mapping[str, Counter[str]],
    to: Path | None = None,
) -> Path:
    """Writes the page; default `rejudged.html` in the run. Returns its path."""
    target = html_target(to if to is not None else reader.run / "rejudged.html")
    cards, rubric = cards_of(reader.run), recorded(reader.header.frozen).name
    shown = [
        {
            "flip": flip,
            "row": row,
            "by": flip.first if accepted else flip.second,
            "pictures": _pair(reader, row.original, row.edited),
        }
        for flip in found
        if (flip.modality, flip.finding, flip.direction) == EVERYWHERE
        for row, accepted in flip.pictures
    ]
    names = [one.judge for one in tallies]
    rates = [rate_json(one.accepted) for one in tallies]
    judges = [
        (one, rate, reasons.get(one.judge, Counter())) for one, rate in zip(tallies, rates, strict=True)
    ]
    page = _environment().get_template("rejudged.html.j2").render(
        name=reader.header.name,
        judges=judges,
        lines=[standing_of(cards, name, rubric).line for name in names if "/" in name and " " not in name],
        wholes=[flip for flip in found if flip.kappa is not None],
        cells=[flip for flip in found if (flip.modality, flip.finding, flip.direction) != EVERYWHERE],
        shown=shown,
    )  # fmt: skip
    write_page(target, page)
    return target


def _pair(reader: JournalReader, original: str, edited: str) -> tuple[str, str]:
    """Both pictures as data URIs; "" for one that is not there."""
    return _small(reader, original, synthetic=False), _small(reader, edited, synthetic=True)


def _small(reader: JournalReader, sha256: str, *, synthetic: bool) -> str:
    if not reader.has_blob(sha256):
        return ""
    try:
        return data_uri(decode_untrusted(reader.read_blob(sha256), sha256), SIDE, LIMIT, synthetic=synthetic)
    except (BadBlob, BadImage):
        return ""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return page_environment(TEMPLATES, "")
