"""Sent images with destination and agreement, and the sources of a stored file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from plantain.journal.reader import JournalReader
from plantain.journal.rows import from_json
from plantain.records import SourceImage

CONNECTIONS = "sent.connections"
"""Meta key of the run: destinations -> the IP addresses that were really connected to, as JSON."""


@dataclass(frozen=True, slots=True)
class SentImage:
    """One image about to be sent, for one of the sources that it was made from.

    Attributes:
        file: SHA-256 of the bytes.
        image: id of the source.
        model, address, reach: the receiving model, its address, and `Reach` of the address.
        agreement: the permission that allows it.
        call: id of the journalled call.
        at: time, ISO 8601.
    """

    file: str
    image: str
    model: str
    address: str
    reach: str
    agreement: str
    call: int | None = None
    at: str = ""


def add_sent(connection: sqlite3.Connection, rows: Sequence[SentImage]) -> None:
    """Record images about to be sent; to be called inside the writer's transaction."""
    for row in rows:
        there = (row.model, row.address, row.reach, row.agreement)
        connection.execute(
            "INSERT INTO destination(model, address, reach, agreement) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            there,
        )
        connection.execute(
            "INSERT INTO sent(file, image, destination, call, at) SELECT ?, ?, id, ?, ? FROM destination "
            "WHERE model = ? AND address = ? AND reach = ? AND agreement = ?",
            (row.file, row.image, row.call, row.at, *there),
        )


def connections(reader: JournalReader) -> dict[str, list[str]]:
    """Return the IP addresses that were connected to, in order of first use, by destination."""
    return dict(orjson.loads(reader.meta(CONNECTIONS) or "{}"))


_NAMED = (
    "CASE WHEN s.file = '' THEN 'withdrawn since' WHEN s.image = '' THEN 'unknown' "
    "ELSE rtrim(json_extract(i.record, '$.dataset') || ' ' || coalesce(json_extract(i.record, '$.version'), '')) END, "
    "CASE WHEN s.file = '' OR s.image = '' THEN '' ELSE json_extract(i.record, '$.licence') END"
)
_SENT = "FROM sent s JOIN destination d ON d.id = s.destination LEFT JOIN image i ON i.id = s.image"


_SUMMED = ("model", "address", "dataset", "licence", "agreement", "images", "files", "requests", "from", "to")


def sent_by_address(reader: JournalReader) -> list[dict[str, object]]:
    """Summarise the images sent, one row per model, address, dataset, licence and agreement, sorted in this order.

    Each row has the numbers of distinct images, of files and of requests, and the first and last time.
    """
    rows = reader.connection.execute(
        f"SELECT d.model, d.address, {_NAMED}, d.agreement, count(DISTINCT s.image), count(DISTINCT s.file), "
        f"count(DISTINCT coalesce(s.call, '') || ' ' || s.at), min(s.at), max(s.at) {_SENT} "
        "GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5"
    )
    return [dict(zip(_SUMMED, row, strict=True)) for row in rows]


def sent_with_sources(reader: JournalReader) -> Iterator[tuple[SentImage, str, str]]:
    """Yield (sent image, dataset, licence of its source) for every image in every request."""
    rows = reader.connection.execute(
        "SELECT s.file, s.image, d.model, d.address, d.reach, d.agreement, s.call, s.at, "
        f"{_NAMED} {_SENT} ORDER BY s.id"
    )
    return ((SentImage(*row[:-2]), *row[-2:]) for row in rows)


def sources_of_image(reader: JournalReader, sha256: str, call: int | None) -> dict[str, SourceImage]:
    """Return the sources that a file was made from, by id; empty if the journal does not know the file.

    The file is a prepared image, an edit of one in the task of `call`, or an image that was allowed before. Without a
    call (None), edits are unknown unless they were allowed before.
    """
    known = {"sha": sha256, "call": call}
    run = reader.connection.execute
    ids = (
        run(
            "SELECT id FROM image WHERE prepared = :sha UNION "
            "SELECT t.image_id FROM call c JOIN task t ON t.id = c.task JOIN attempt a ON a.task = t.id "
            "WHERE c.id = :call AND :sha IN (a.edited, a.raw)",
            known,
        ).fetchall()
        or run("SELECT DISTINCT image FROM sent WHERE file = :sha AND image <> ''", known).fetchall()
    )
    found = (run("SELECT id, record FROM image WHERE id = ?", one).fetchone() for one in ids)
    return {row[0]: from_json(SourceImage, row[1]) for row in found if row is not None}
