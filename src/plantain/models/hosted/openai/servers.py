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
        edits: settings that its edits take, by the names of our options; none where it makes no edits.
        picture, pictures, mask: fields of the form of an edit; no mask where it takes none.
        most_pictures: in one request.
        version: where it tells its version, beside /v1, and under which name; None where it does not.
        note: what a reader must know.
    """

    name: str
    limit: str
    edits: tuple[str, ...] = ()
    picture: str = "image"
    pictures: str = "image[]"
    mask: str = ""
    most_pictures: int = 1
    version: tuple[str, str] | None = None
    note: str = ""


@cache
def servers() -> dict[str, ServerProfile]:
    """Every known kind of server by its name."""
    with Path(__file__).with_name("servers.toml").open("rb") as file:
        table = tomllib.load(file)
    return {
        name: ServerProfile(
            name,
            row["limit"],
            tuple(row.get("edits", ())),
            row.get("picture", "image"),
            row.get("pictures", "image[]"),
            row.get("mask", ""),
            row.get("most_pictures", 1),
            tuple(row["version"]) if "version" in row else None,
            row.get("note", ""),
        )
        for name, row in table.items()
    }


def server_named(name: str, where: str) -> ServerProfile:
    """The kind of server of that name; `other` where none is said.

    Raises:
        InputError: there is none of that name; the line names the nearest.
    """
    known = servers()
    if not name or name in known:
        return known[name or OTHER]
    raise InputError(f"{where}: no server {name!r} is known; {suggest(name, known)}")
