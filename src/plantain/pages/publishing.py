"""Pages as self-contained HTML files that make no network request."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plantain.files.opening import replace_file
from plantain.files.secrets import redacted
from plantain.pages import wording
from plantain.records import InputError

SHARED = Path(__file__).parent / "templates"
"""Head and style of all pages."""

LOOK = SHARED / "look.css"
"""The one stylesheet: of report, leaderboard, cards, reader studies, viewer and site."""


def plain_environment(*folders: Path) -> Environment:
    """Make the Jinja environment for the templates in these folders, searched in order, with plantain's filters."""
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
    """Make the Jinja environment for one kind of page, with the templates that all pages share.

    Args:
        templates: folder of the templates of this kind.
        script: JavaScript of the pages; their policy blocks all other scripts.
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
    """Return a warning as HTML for a page with restricted images; "" if all images are open.

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
    """Write a page atomically, with keys redacted.

    Args:
        path: path of the file.
        text: text of the page, or of a file that belongs to one.
        shows: dataset and licence of the source images; required if the page shows any.
        damaged: images that the page does not show since they are damaged in the run.

    Raises:
        InputError: writing fails.
        ValueError: the page shows images, and `shows` is None.
    """
    if shows is None and 'src="data:image/' in text:
        raise ValueError(f"{path.name}: shows images; name their sources")
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
    """Return the path if it ends in .html or .htm and is not a folder. Raise InputError otherwise."""
    if path.suffix.lower() not in (".html", ".htm") or path.is_dir():
        raise InputError(f"--to {path}: name a file that ends in .html")
    return path
