"""Pages on disk: one HTML file each, complete in itself, that asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plantain.files.redaction import redacted
from plantain.files.writing import replace_file
from plantain.pages import wording
from plantain.records import InputError

SHARED = Path(__file__).parent / "templates"
"""What pages have in common: their head and their style."""

LOOK = SHARED / "look.css"
"""The one stylesheet of all that plantain shows: report, leaderboard, cards, reader studies, viewer, site."""


def plain_environment(*folders: Path) -> Environment:
    """Templates of these folders, the first first, with the words for numbers that all pages use."""
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": wording.percent,
        "decimal": wording.decimal,
        "count": wording.count,
        "counted": wording.counted,
        "words": wording.words,
        "plain": wording.plain,
    }
    return environment


def page_environment(templates: Path, script: str) -> Environment:
    """Templates of one kind of page in one file, with what all of them share.

    Args:
        templates: folder of its own templates.
        script: JavaScript that the pages carry; the policy of the page lets nothing else run.
    """
    environment = plain_environment(templates, SHARED)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    environment.globals |= {
        "style": LOOK.read_text(encoding="utf-8"),
        "script": script,
        "policy": f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'",
    }
    return environment


def restriction(shows: Iterable[tuple[str, str]]) -> str:
    """Return the line of a page that shows images not everybody may have, as HTML; "" where all may be passed on.

    Args:
        shows: dataset and licence of the source images.
    """
    closed = sorted({dataset for dataset, licence in shows if licence not in ("open", "attribution")})
    return (
        f'<p class="remark"><strong>Do not pass this page on:</strong> it shows source images whose licence is '
        f"credentialed or unknown ({escape(', '.join(closed))}).</p>\n"
        if closed
        else ""
    )


def write_page(
    path: Path,
    text: str,
    shows: Iterable[tuple[str, str]] | None = None,
    damaged: Sequence[str] = (),
) -> None:
    """Replaces the file at once, so that a reader never meets half of it.

    Args:
        path: of the file.
        text: of the page, or of a file beside one.
        shows: dataset and licence of the source images of whose pictures it has any. Needed where it has some.
        damaged: images that it lacks since the run has lost them.
    """
    if shows is None and 'src="data:image/' in text:
        raise ValueError(f"{path.name}: shows images, and does not tell whose")
    lines = restriction(shows or ())
    if damaged:
        lost = escape("; ".join(damaged))
        lines += f'<p class="remark"><strong>Damaged in the run, and not shown:</strong> {lost}.</p>\n'
    text = text.replace("<main", lines + "<main", 1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, redacted(text).encode("utf-8", errors="replace"))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def html_target(path: Path) -> Path:
    """The path, if a page can be written there and its numbers beside it under other endings."""
    if path.suffix.lower() not in (".html", ".htm") or path.is_dir():
        raise InputError(f"--to {path}: name a file that ends in .html")
    return path
