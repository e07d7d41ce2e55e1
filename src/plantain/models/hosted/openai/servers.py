"""Kinds of servers with OpenAI's formats: their field names and settings, from servers.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from plantain.records import InputError
from plantain.records.suggestions import suggest

OTHER = "other"


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """Field names and settings of one kind of server.

    Attributes:
        name: as a recipe names it.
        limit: the field that bounds the tokens of an answer.
        edits: settings of its edits, by the names of our options; empty if it makes no edits.
        image, images, mask: form fields of an edit with one image, with several, and of the mask; "" for no mask.
        most_images: most images of one request.
        version: path of its version, outside /v1, and the name in the answer; () if it has none.
        note: for a reader.
    """

    name: str
    limit: str
    edits: tuple[str, ...] = ()
    image: str = "image"
    images: str = "image[]"
    mask: str = ""
    most_images: int = 1
    version: tuple[str, ...] = ()
    note: str = ""


@cache
def servers() -> dict[str, ServerProfile]:
    """Return every known kind of server by its name."""
    with Path(__file__).with_name("servers.toml").open("rb") as file:
        table = tomllib.load(file)
    rows = {
        name: {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        for name, row in table.items()
    }
    return {name: ServerProfile(name, **row) for name, row in rows.items()}  # type: ignore[arg-type]  # ours


def server_named(name: str, where: str) -> ServerProfile:
    """Return the kind of server of that name; `other` for "". Raise InputError that names the nearest."""
    known = servers()
    if not name or name in known:
        return known[name or OTHER]
    raise InputError(f"{where}: no server {name!r} is known; {suggest(name, known)}")
