"""The viewer's pages: templates that escape everything, links that say all that a page shows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from urllib.parse import quote, urlencode

from fastapi import HTTPException, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment

from plantain.pages import wording
from plantain.pages.publishing import LOOK, plain_environment

TEMPLATES = Path(str(resources.files("plantain.review.viewer"))) / "templates"
FOLDER = TEMPLATES.parent / "static"
ROOM = Path(str(resources.files("plantain.review.room"))) / "static"
STATIC = {
    "look.css": (LOOK.parent, "text/css"),
    "view.js": (FOLDER, "text/javascript"),
    "one.js": (FOLDER, "text/javascript"),
    "pictures.js": (ROOM, "text/javascript"),
    "favicon.svg": (ROOM, "image/svg+xml"),
}
"""Files that are served as they are; pictures are shown as in the reading room, by its own script."""

LONGEST = 6_000
"""Characters of a model's answer on a page; the journal has all of it."""


def href(path: str, *parts: Mapping[str, object], **more: object) -> str:
    """A link with its query; what is empty is left out, and later parts win."""
    fields: dict[str, object] = {}
    for part in (*parts, more):
        fields |= part
    query = urlencode({name: str(value) for name, value in fields.items() if value not in ("", None, 0)})
    return quote(path) + (f"?{query}" if query else "")


@cache
def _environment() -> Environment:
    environment = plain_environment(TEMPLATES)
    environment.filters |= {
        "money": _money,
        "short": lambda text: text if len(text) <= LONGEST else text[:LONGEST] + " …",
    }
    environment.globals |= {"href": href}
    return environment


def read_templates() -> None:
    """Reads every template now, so that the first page need not wait for it."""
    for name in _environment().list_templates():
        _environment().get_template(name)


def rendered(template: str, status: int = 200, **context: object) -> Response:
    """One page."""
    return HTMLResponse(_environment().get_template(template).render(**context), status)


def static_file(name: str) -> Response:
    """One of the served files. Raises HTTPException for any other name."""
    if name not in STATIC:
        raise HTTPException(404)
    folder, kind = STATIC[name]
    data = (folder / name).read_bytes()
    return Response(data, media_type=kind, headers={"Cache-Control": "no-cache"})


def picture(data: bytes) -> Response:
    """A picture by what its bytes are; nothing else is served as one. It never changes under its address."""
    kinds = {b"\xff\xd8\xff": "image/jpeg", b"\x89PN": "image/png", b"RIF": "image/webp"}
    kind = kinds.get(data[:3])
    if kind is None:
        raise HTTPException(415, "not a picture that browsers show")
    return Response(data, media_type=kind, headers={"Cache-Control": "private, max-age=86400, immutable"})


def _money(value: float | None) -> str:
    if value is None:
        return wording.DASH
    return f"${value:.4f}" if abs(value) < 1 else f"${value:,.2f}"
