"""Questions that a pilot asks: the first tasks of each finding and direction, and what they took."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from plantain.journal.reader import JournalReader

_AT_ONCE = 500


def parts_of_plan(reader: JournalReader) -> dict[tuple[str, str, str], int]:
    """Edit tasks by modality, finding and direction, in order."""
    query = (
        "SELECT modality, finding, direction, count(*) FROM task WHERE kind = 'edit' GROUP BY 1, 2, 3 "
        "ORDER BY 1, 2, 3"
    )
    return {tuple(key): n for *key, n in reader.connection.execute(query)}


def first_tasks(reader: JournalReader, part: tuple[str, str, str], most: int) -> list[str]:
    """Ids of the first edit tasks of a part, by id: ids are hashes, so this is a draw that never changes."""
    query = (
        "SELECT id FROM task WHERE kind = 'edit' AND modality = ? AND finding = ? AND direction = ? "
        "ORDER BY id LIMIT ?"
    )
    return [task for (task,) in reader.connection.execute(query, (*part, most))]


def spent_on(reader: JournalReader, tasks: Collection[str]) -> tuple[float | None, int]:
    """What the calls of these tasks cost, and how many have no known cost; None where none has one."""
    known, total, unknown = 0, 0.0, 0
    for some in _pages(tasks):
        row = reader.connection.execute(
            "SELECT count(cost_usd), total(cost_usd), count(*) - count(cost_usd) FROM call "
            f"WHERE task IN ({', '.join('?' * len(some))})",
            some,
        ).fetchone()
        known, total, unknown = known + row[0], total + row[1], unknown + row[2]
    return (total if known else None), unknown


def worked_s(reader: JournalReader) -> float:
    """Seconds that processes have worked on the run so far."""
    return float(reader.connection.execute("SELECT total(seconds) FROM session_time").fetchone()[0])


def _pages(tasks: Collection[str]) -> Iterator[list[str]]:
    ordered = sorted(tasks)
    for start in range(0, len(ordered), _AT_ONCE):
        yield ordered[start : start + _AT_ONCE]
