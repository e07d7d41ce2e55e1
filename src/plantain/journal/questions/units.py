"""The units that tables count, and rates over them with intervals that respect repeated images.

Both tables are made once for all questions of a report, as temporary tables of the connection that spill to disk, so
that a run of a million tasks is read once and never held in memory.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from plantain.journal.connect import temporary_changes
from plantain.journal.questions.accepted import LATER_TURN
from plantain.journal.reader import JournalReader
from plantain.metrics.statistics.clusters import Rate, clustered_rate

_TABLES = {
    "unit": f"""
    CREATE TEMP TABLE unit AS
    WITH named AS (
        SELECT t.image_id AS image,
               coalesce(json_extract(i.record, '$.dataset') || '/' || json_extract(i.record, '$.group'),
                        nullif(json_extract(i.record, '$.source_sha256'), ''), i.id, t.image_id) AS name
        FROM (SELECT DISTINCT image_id FROM task WHERE kind = 'edit') t LEFT JOIN image i ON i.id = iif(
            {LATER_TURN}, substr(t.image_id, 1, length(t.image_id) - 36), t.image_id)),
    shared AS MATERIALIZED (SELECT image, dense_rank() OVER (ORDER BY name) AS cluster FROM named)
    SELECT s.cluster, t.id, t.modality, t.finding, t.direction, t.generation, t.state
    FROM task t JOIN shared s ON s.image = t.image_id WHERE t.kind = 'edit' ORDER BY s.cluster""",
    "judged": """
    CREATE TEMP TABLE judged AS
    SELECT u.cluster, u.modality, u.finding, u.direction, v.*
    FROM unit u JOIN verdict v ON v.task = u.id AND v.generation = u.generation AND v.decisive = 1
    ORDER BY u.cluster""",
}
"""`unit`: edit tasks, with a number for the patient (or, if the source names none, the source file) that they share.
Tasks of a later turn have the number of their original.
`judged`: attempts of current generations with their one decisive verdict."""

NOTHING = clustered_rate({})


@contextmanager
def snapshot(reader: JournalReader) -> Iterator[None]:
    """Make all queries in the block read the same state of the journal, even while a build writes."""
    connection = reader.connection
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


@contextmanager
def units(reader: JournalReader) -> Iterator[None]:
    """Provide the temporary tables `unit` and `judged` to queries in the block, for one snapshot."""
    connection = reader.connection
    with snapshot(reader):
        there = {name for (name,) in connection.execute("SELECT name FROM temp.sqlite_schema")}
        with temporary_changes(connection):
            for name, made in _TABLES.items():
                if name not in there:
                    connection.execute(made)
        yield


def forget_units(connection: sqlite3.Connection) -> None:
    """Drop the tables of `units`, inside `temporary_changes`, when the set of tasks changes."""
    for name in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS temp.{name}")


def rates(reader: JournalReader, sql: str) -> dict[tuple[str, ...], Rate]:
    """Compute rates by key from a query's rows (key..., successes, n), one row per cluster.

    Memory does not grow with the number of clusters, since only distinct counts are kept.
    """
    patterns: dict[tuple[str, ...], Counter[tuple[int, int]]] = defaultdict(Counter)
    with units(reader):
        for *key, successes, n in reader.connection.execute(sql):
            patterns[tuple(key)][successes or 0, n or 0] += 1
    return {key: clustered_rate(counts) for key, counts in patterns.items()}
