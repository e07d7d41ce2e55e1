"""Checks whether a run is complete: the database, and every blob that it names."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plantain.journal.disk.connect import last_holder
from plantain.journal.reader import BLOBS_ABSENT, JournalReader
from plantain.journal.rows import BadBlob
from plantain.records.messages import counted

_USES = "SELECT task, round, edited, mask, raw FROM attempt WHERE :sha IN (edited, mask, raw) ORDER BY 1, generation, 2"
_ORIGINAL_OF = "SELECT t.id FROM image i JOIN task t ON t.image_id = i.id WHERE i.prepared = ? ORDER BY t.id"


@dataclass(frozen=True)
class Integrity:
    """The result of `verify`; a run is complete when there are no problems."""

    problems: tuple[str, ...]
    blobs: int

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(reader: JournalReader) -> Integrity:
    """Check SQLite's own integrity, references, and the bytes of every blob. Reads everything."""
    connection = reader.connection
    problems = [
        f"journal: {row[0]}" for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"
    ]
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        problems.append(f"journal: row {row} of {table} refers to a missing {parent}")
    checked = dict(_checked_blobs(reader))
    problems += [f"blob {sha256}: {fault}" for sha256, fault in checked.items() if fault]
    return Integrity(tuple(problems), len(checked))


def damaged_blobs(reader: JournalReader) -> frozenset[str]:
    """Return the blobs that are damaged or missing, except those that an imported run never had. Reads everything."""
    return frozenset(sha256 for sha256, fault in _checked_blobs(reader) if fault)


def _checked_blobs(reader: JournalReader) -> Iterator[tuple[str, str]]:
    """Yield every blob that the run must have, with its fault; "" for a sound one."""
    may_miss, after = reader.meta(BLOBS_ABSENT) is not None, ""
    page = "SELECT sha256, bytes FROM blob WHERE sha256 > ? ORDER BY sha256 LIMIT 1000"
    while rows := reader.connection.execute(page, (after,)).fetchall():
        for sha256, size in rows:
            if may_miss and not reader.has_blob(sha256):
                continue
            try:
                right = len(reader.read_blob(sha256)) == size
                yield sha256, "" if right else f"the journal records {size} bytes"
            except BadBlob as error:
                yield sha256, str(error)
        after = rows[-1][0]


def places_of(reader: JournalReader, blobs: Iterable[str]) -> list[str]:
    """Return where a run uses images, in words: "task 1b2c, round 2: its edited image"."""
    places = []
    for sha256 in sorted(blobs):
        for task, number, *images in reader.connection.execute(_USES, {"sha": sha256}):
            what = ("edited image", "mask", "raw answer")[images.index(sha256)]
            places.append(f"task {task}, round {number}: its {what}")
        for (task,) in reader.connection.execute(_ORIGINAL_OF, (sha256,)):
            places.append(f"task {task}: its original")
    return places


def not_closed(reader: JournalReader) -> str:
    """Return one line about a run that its last process did not close; "" if it did, or still runs here.

    A kill loses nothing that was recorded. A log that is cut afterwards, as by copying the folder during a build, loses
    its last commits without a trace in the database, the process's own row included; what remains of them is images
    that no row names, and the process in the lock file.
    """
    sessions = [(session.pid, session.host, session.ended_at) for session in reader.sessions()]
    pid, host = last_holder(reader.run) or (sessions[-1][:2] if sessions else (0, ""))
    ends = [ended for *process, ended in sessions if process == [pid, host]]
    if not pid or (ends and ends[-1] is not None) or _runs_here(pid, host):
        return ""
    run = reader.connection.execute
    named = {sha256 for (sha256,) in run("SELECT sha256 FROM blob")}
    unnamed = len({name for name in reader.blobs.names() if not name.startswith(".")} - named)
    if not ends and not unnamed:
        return ""  # it held the run for something else, such as a withdrawal
    (latest,) = run("SELECT coalesce(max(started_at), 'none') FROM call").fetchone()
    return (
        f"not closed by process {pid} on {host}: the last recorded call started at {latest}, "
        f"{counted(len(reader.open_calls()), 'call is', 'calls are')} open, "
        f"{counted(unnamed, 'stored image is', 'stored images are')} in no record"
        + ("; if this is a copy, its log may have been cut" if unnamed else "")
    )


def _runs_here(pid: int, host: str) -> bool:
    if host != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
