"""Deletes pictures from a catalogue: noted in the transaction that removes their last row, deleted right after it.

A process killed in between leaves the note, and whoever opens the catalogue next finishes.
"""

from __future__ import annotations

from plantain.catalogue.store import Catalogue
from plantain.journal.disk.blobs import sync_folder

_NOTE = "discard "


def note_discard(catalogue: Catalogue, sha256: str) -> None:
    """Notes, inside a transaction, that a picture is to go unless something still refers to it."""
    catalogue.connection.execute("INSERT OR IGNORE INTO meta VALUES (?, '')", (_NOTE + sha256,))


def finish_discards(catalogue: Catalogue) -> int:
    """Removes the pictures that were noted; then writes the database anew without deleted rows. Returns how many."""
    database = catalogue.connection
    query = "SELECT key FROM meta WHERE key >= ? AND key < ?"
    noted = [key for (key,) in database.execute(query, (_NOTE, "discard!")).fetchall()]
    for key in noted:
        sha256 = key.removeprefix(_NOTE)
        if not _referred(catalogue, sha256):
            path = catalogue.blobs.path(sha256)
            path.unlink(missing_ok=True)
            if path.parent.is_dir():
                sync_folder(path.parent)
    if noted:
        database.execute("VACUUM")
        with catalogue.transaction():
            database.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in noted])
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return len(noted)


def _referred(catalogue: Catalogue, sha256: str) -> bool:
    queries = (
        "SELECT 1 FROM image WHERE prepared_sha256 = ?",
        "SELECT 1 FROM quarantine WHERE json_extract(record, '$.prepared_sha256') = ?",
    )
    return any(catalogue.connection.execute(query, (sha256,)).fetchone() for query in queries)
