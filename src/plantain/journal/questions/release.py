"""Queries for a release: closed tasks, their images, and the models that answered."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from plantain.journal.connect import temporary_changes
from plantain.journal.questions.tasks import CLOSED_EDITS
from plantain.journal.questions.units import forget_units
from plantain.journal.reader import JournalReader

_SOURCES = (
    "SELECT total(json_extract(record, '$.synthetic')), total(NOT json_extract(record, '$.text_checked')) "
    "FROM image WHERE id IN (SELECT image_id FROM task)"
)


def closed_count(reader: JournalReader) -> int:
    """Return the number of closed edit tasks."""
    return int(reader.connection.execute(f"SELECT count(*) FROM task WHERE {CLOSED_EDITS}").fetchone()[0])


def closed_images(reader: JournalReader) -> list[str]:
    """Return the sorted ids of the images of closed tasks, which a release of the run would contain."""
    query = f"SELECT DISTINCT image_id FROM task WHERE {CLOSED_EDITS} ORDER BY image_id"
    return [str(name) for (name,) in reader.connection.execute(query)]


def models_that_answered(reader: JournalReader) -> list[tuple[str, str, str]]:
    """Return every distinct (step, model requested, model that answered) of a run's calls."""
    query = "SELECT DISTINCT step, model, served_model FROM call WHERE final = 1 AND outcome = 'ok' ORDER BY 1, 2, 3"
    return reader.connection.execute(query).fetchall()


def stored_image_rows(
    reader: JournalReader, hashes: Collection[str]
) -> Iterator[tuple[str, int, str, str | None]]:
    """Yield (hash, bytes, media type, hash of the pixels) of these blobs, skipping those not in the journal."""
    marks = ", ".join("?" * len(hashes))
    query = f"SELECT sha256, bytes, media_type, pixel_sha256 FROM blob WHERE sha256 IN ({marks})"
    return iter(reader.connection.execute(query, sorted(hashes)))


def sources_to_mention(reader: JournalReader) -> tuple[int, int]:
    """Return (number of rendered source images, number not checked for burned-in text) that tasks use."""
    synthetic, unchecked = reader.connection.execute(_SOURCES).fetchone()
    return int(synthetic), int(unchecked)


@contextmanager
def closed_only(reader: JournalReader) -> Iterator[None]:
    """Hide pending tasks and their attempts from all queries in the block, as a release omits them."""
    connection = reader.connection
    with temporary_changes(connection):
        forget_units(connection)
        connection.execute(f"CREATE TEMP VIEW task AS SELECT * FROM main.task WHERE {CLOSED_EDITS}")
        connection.execute(
            "CREATE TEMP VIEW attempt AS SELECT a.* FROM main.attempt a JOIN main.task t ON t.id = a.task "
            "WHERE t.state <> 'pending' AND t.kind <> 'bench'"
        )
        try:
            yield
        finally:
            forget_units(connection)
            connection.execute("DROP VIEW temp.attempt")
            connection.execute("DROP VIEW temp.task")
