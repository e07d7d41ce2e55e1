"""Proves that a run is whole: the database, the counters, and every blob that it names."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.journal.errors import BadBlob
from plantain.journal.reader import BLOBS_ABSENT, JournalReader


@dataclass(frozen=True)
class Integrity:
    """What `verify` found; a run is whole when there are no problems."""

    problems: tuple[str, ...]
    blobs: int

    @property
    def ok(self) -> bool:
        return not self.problems


_COUNTED = """
SELECT 'task.' || kind AS what, state AS key, COUNT(*) AS n FROM task GROUP BY 1, 2
UNION ALL SELECT 'round', CASE state WHEN 'success' THEN CAST(round AS TEXT) ELSE '' END, COUNT(*)
  FROM task GROUP BY 1, 2
UNION ALL SELECT 'call', COALESCE(outcome, 'open'), COUNT(*) FROM call GROUP BY 1, 2
UNION ALL SELECT 'attempt', CASE superseded WHEN 0 THEN 'current' ELSE 'superseded' END, COUNT(*)
  FROM attempt GROUP BY 1, 2
UNION ALL SELECT 'blob', media_type, COUNT(*) FROM blob GROUP BY 1, 2
"""


def verify(reader: JournalReader) -> Integrity:
    """Checks SQLite's own integrity, references, counters, and the bytes of every blob. Reads everything."""
    connection = reader.connection
    problems = [
        f"journal: {row[0]}" for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"
    ]
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        problems.append(f"journal: row {row} of {table} refers to a missing {parent}")
    counted = set(connection.execute(_COUNTED))
    kept = set(connection.execute("SELECT what, key, n FROM tally WHERE n <> 0"))
    for what, key, n in sorted(counted ^ kept):
        problems.append(f"journal: counter {what} {key!r} disagrees with its rows ({n})")
    blobs = 0
    may_miss = reader.meta(BLOBS_ABSENT) is not None
    after = ""
    page = "SELECT sha256, bytes FROM blob WHERE sha256 > ? ORDER BY sha256 LIMIT 1000"
    while rows := connection.execute(page, (after,)).fetchall():
        for sha256, size in rows:
            if may_miss and (not sha256 or not reader.blob_path(sha256).exists()):
                continue
            blobs += 1
            try:
                if len(reader.read_blob(sha256)) != size:
                    problems.append(f"blob {sha256}: the journal says {size} bytes")
            except BadBlob as error:
                problems.append(f"blob {sha256}: {error}")
        after = rows[-1][0]
    return Integrity(tuple(problems), blobs)
