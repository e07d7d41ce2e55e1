"""Deletes images from a catalogue: noted in the transaction that removes their last row, deleted right after it.

If the process is killed in between, the next one finishes.
"""

from __future__ import annotations

from plantain.catalogue.store import Catalogue
from plantain.journal.disk.blobs import sync_folder

_NOTE = "discard "

_REFERENCES = (
    "SELECT 1 FROM image WHERE prepared_sha256 = ? UNION ALL "
    "SELECT 1 FROM quarantine WHERE json_extract(record, '$.prepared_sha256') = ?"
)


def note_discard(catalogue: Catalogue, sha256: str) -> None:
    """Note, inside a transaction, that an image is deleted unless something still refers to it."""
    catalogue.connection.execute("INSERT OR IGNORE INTO meta VALUES (?, '')", (_NOTE + sha256,))


def finish_discards(catalogue: Catalogue) -> int:
    """Delete the noted images, rewrite the database without deleted rows, and return their number."""
    database = catalogue.connection
    query = "SELECT key FROM meta WHERE key >= ? AND key < ?"
    noted = [key for (key,) in database.execute(query, (_NOTE, "discard!")).fetchall()]
    for key in noted:
        sha256 = key.removeprefix(_NOTE)
        if database.execute(_REFERENCES, (sha256, sha256)).fetchone() is None:
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
