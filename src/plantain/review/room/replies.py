"""How the room's routes read and answer: JSON in, JSON out, pages and files of the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import orjson
from fastapi import HTTPException, Request, Response
from fastapi.responses import HTMLResponse

from plantain.pages.publishing import LOOK

STATIC = {"room.js": "text/javascript", "pictures.js": "text/javascript", "questions.js": "text/javascript",
          "region.js": "text/javascript", "crosshair.js": "text/javascript", "enter.js": "text/javascript",
          "admin.js": "text/javascript", "look.css": "text/css",
          "favicon.svg": "image/svg+xml"}  # fmt: skip
"""Files that are served as they are, and their types."""


def refuse_foreign_origin(request: Request) -> None:
    """A page of another site cannot write here, whatever cookies its visitor has."""
    origin = request.headers.get("origin")
    if origin is not None and origin.split("://", 1)[-1] != request.headers.get("host"):
        raise HTTPException(403, "from another site")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPException(403, "from another site")


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object that was sent. Raises HTTPException for anything else."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise HTTPException(415, "application/json")
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, "not JSON") from error
    if not isinstance(body, dict):
        raise HTTPException(400, "an object is needed")
    return body


def as_json(value: object, status: int = 200) -> Response:
    """A JSON answer."""
    return Response(orjson.dumps(value), status, media_type="application/json")


def page(name: str) -> HTMLResponse:
    """One of the room's pages, which holds nothing of a study: its script asks for that."""
    return HTMLResponse(resource("templates", name))


def static_file(name: str) -> Response:
    """One of the served files. Raises HTTPException for any other name."""
    if name not in STATIC:
        raise HTTPException(404)
    data = LOOK.read_bytes() if name == LOOK.name else resource("static", name)
    return Response(data, media_type=STATIC[name], headers={"Cache-Control": "no-cache"})


def resource(folder: str, name: str) -> bytes:
    """A file of the room's package."""
    return Path(str(resources.files("plantain.review.room"))).joinpath(folder, name).read_bytes()
