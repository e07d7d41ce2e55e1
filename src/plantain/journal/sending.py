"""What was sent where under which agreement, and whose picture a file is, as the journal knows it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from plantain.journal import payload
from plantain.journal.reader import JournalReader
from plantain.records import SourceImage

CONNECTIONS = "sent.connections"
"""Key of the run's meta: destinations -> the IP addresses that were really connected to, as JSON."""


@dataclass(frozen=True, slots=True)
class SentPicture:
    """One picture about to be sent, for one of the sources that it was made from.

    Attributes:
        picture: SHA-256 of the bytes.
        image: id of the source.
        model, address, reach: who gets it, where, and how far that is.
        agreement: what allows it.
        call: the journalled call that it is sent for.
        at: when, ISO 8601.
    """

    picture: str
    image: str
    model: str
    address: str
    reach: str
    agreement: str
    call: int | None = None
    at: str = ""


def add_sent(connection: sqlite3.Connection, rows: Sequence[SentPicture]) -> None:
    """Records pictures about to be sent; runs inside the writer's transaction."""
    for row in rows:
        there = (row.model, row.address, row.reach, row.agreement)
        connection.execute(
            "INSERT INTO destination(model, address, reach, agreement) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            there,
        )
        connection.execute(
            "INSERT INTO sent(picture, image, destination, call, at) SELECT ?, ?, id, ?, ? FROM destination "
            "WHERE model = ? AND address = ? AND reach = ? AND agreement = ?",
            (row.picture, row.image, row.call, row.at, *there),
        )


def connections(reader: JournalReader) -> dict[str, list[str]]:
    """Every IP address that was connected to, by the destination's address, in the order of their first use."""
    return dict(orjson.loads(reader.meta(CONNECTIONS) or "{}"))


def sent_pictures(reader: JournalReader) -> Iterable[SentPicture]:
    """Everything that this run has sent beyond this machine, in order."""
    rows = reader.connection.execute(
        "SELECT s.picture, s.image, d.model, d.address, d.reach, d.agreement, s.call, s.at "
        "FROM sent s JOIN destination d ON d.id = s.destination ORDER BY s.id"
    )
    return (SentPicture(*row) for row in rows)


def sources_of_picture(reader: JournalReader, sha256: str, call: int | None) -> dict[str, SourceImage]:
    """The sources that a file was made from, by id: a prepared picture, what an editor made of one in the task of
    this call, or a picture that was cleared before. Empty where the journal does not know the file.
    """
    known = {"sha": sha256, "call": call}
    ids = (
        reader.connection.execute(
            "SELECT id FROM image WHERE prepared = :sha UNION "
            "SELECT t.image_id FROM call c JOIN task t ON t.id = c.task JOIN attempt a ON a.task = t.id "
            "WHERE c.id = :call AND :sha IN (a.edited, a.raw)",
            known,
        ).fetchall()
        or reader.connection.execute(
            "SELECT DISTINCT image FROM sent WHERE picture = :sha AND image <> ''", known
        ).fetchall()
    )
    found: dict[str, SourceImage] = {}
    for (name,) in ids:
        record = reader.connection.execute("SELECT record FROM image WHERE id = ?", (name,)).fetchone()
        if record is not None:
            found[name] = payload.image_from_json(record[0])
    return found
