"""Servers that speak OpenAI's formats, each in its own way: which names and settings they take. See servers.toml."""

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
    """What one kind of server takes.

    Attributes:
        name: as a recipe names it.
        limit: the field that bounds the tokens of an answer.
        edits: settings that its edits take, by the names of our options; none if it makes no edits.
        picture, pictures, mask: fields of the form of an edit; no mask if it takes none.
        most_pictures: in one request.
        version: path of its version, outside /v1, and the name in the answer; () if it has none.
        note: for a reader.
    """

    name: str
    limit: str
    edits: tuple[str, ...] = ()
    picture: str = "image"
    pictures: str = "image[]"
    mask: str = ""
    most_pictures: int = 1
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
