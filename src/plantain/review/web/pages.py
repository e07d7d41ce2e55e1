"""Responses of routes: pages from escaping templates, JSON, static files and images."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode

import orjson
from fastapi import HTTPException, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment

from plantain.pages import wording
from plantain.pages.publishing import LOOK, plain_environment

TEMPLATES = Path(__file__).parent / "templates"
STATIC = {path.name: path for path in [*(Path(__file__).parent / "static").iterdir(), LOOK]}
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

MAX_SHOWN = 6_000
"""Characters of a model's answer on a page; the journal has all of it."""


def href(path: str, *parts: Mapping[str, object], **more: object) -> str:
    """Return a link with its query; empty values are omitted, later parts override earlier ones."""
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
        "clauses": lambda text: re.split(r"(?<=[.;])\s+", text, maxsplit=1),
        "short": lambda text: text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + " …",
    }
    environment.globals |= {"href": href}
    return environment


def read_templates() -> None:
    """Compile every template in advance, so that the first page is fast."""
    for name in _environment().list_templates():
        _environment().get_template(name)


def rendered(template: str, status: int = 200, **context: object) -> Response:
    return HTMLResponse(_environment().get_template(template).render(**context), status)


def as_json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


def static_file(name: str) -> Response:
    """Return a response with a script, the stylesheet or the icon. Raise HTTPException for another name."""
    if name not in STATIC:
        raise HTTPException(404)
    kind = TYPES[STATIC[name].suffix]
    return Response(STATIC[name].read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})


def image(data: bytes) -> Response:
    """Return a response with an image, which browsers may cache; its media type is that of its first bytes.

    Raises:
        HTTPException: 415, for another kind of file than JPEG, PNG and WebP.
    """
    kinds = {b"\xff\xd8\xff": "image/jpeg", b"\x89PN": "image/png", b"RIF": "image/webp"}
    kind = kinds.get(data[:3])
    if kind is None:
        raise HTTPException(415, "not an image that browsers show")
    return Response(data, media_type=kind, headers={"Cache-Control": "private, max-age=86400, immutable"})


def _money(value: float | None) -> str:
    if value is None:
        return wording.DASH
    return f"${value:.4f}" if abs(value) < 1 else f"${value:,.2f}"
