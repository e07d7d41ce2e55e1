"""The units that tables count, and rates over them whose intervals know that images repeat.

A report asks a dozen questions of them. They are worked out once for all of these, into tables of the connection's own
that spill to disk, so that a run of a million tasks is read through once and held in memory never.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import orjson

from plantain.journal.disk.connect import temporary_changes
from plantain.journal.reader import JournalReader
from plantain.metrics.statistics.clusters import Rate, clustered_rate

_TABLES = {
    "unit": """
    CREATE TEMP TABLE unit AS
    WITH named AS (
        SELECT t.image_id AS image,
               coalesce(json_extract(i.record, '$.dataset') || '/' || json_extract(i.record, '$.group'),
                        nullif(json_extract(i.record, '$.source_sha256'), ''), t.image_id) AS name
        FROM (SELECT DISTINCT image_id FROM task WHERE kind = 'edit') t LEFT JOIN image i ON i.id = t.image_id),
    shared AS MATERIALIZED (SELECT image, dense_rank() OVER (ORDER BY name) AS cluster FROM named)
    SELECT s.cluster, t.id, t.modality, t.finding, t.direction, t.generation, t.state, t.round
    FROM task t JOIN shared s ON s.image = t.image_id WHERE t.kind = 'edit' ORDER BY s.cluster""",
    "judged": """
    CREATE TEMP TABLE judged AS
    SELECT u.cluster, u.id, u.modality, u.finding, u.direction, v.round, v.score, v.opinion, v.generation, v.judge,
           v.draw, v.qualified, v.qualified_all_pass, v.qualified_weighted
    FROM unit u JOIN verdict v ON v.task = u.id AND v.generation = u.generation AND v.decisive = 1
    ORDER BY u.cluster""",
}
"""`unit`: edit tasks, with a number for the patient (or, where the source names none, the source file) that they share.
`judged`: attempts of current generations with their one decisive verdict. Both lie in the order of their clusters."""

_CRITERIA = (
    "SELECT j.cluster, j.round, c.name, c.passed, CASE c.passed WHEN 0 THEN c.codes END FROM judged j"
    " CROSS JOIN criterion c ON c.task = j.id AND c.generation = j.generation AND c.round = j.round"
    " AND c.judge = j.judge AND c.draw = j.draw AND c.kind = 'criterion'"
    " WHERE c.passed IS NOT NULL ORDER BY j.rowid"
)
"""Each criterion of the verdicts of `judged`, in the order of clusters; the codes of those that failed."""

DECISIONS = (
    "qualified",
    "qualified_all_pass",
    "qualified_weighted",
    "opinion",
    "opinion = qualified",
)
"""What a verdict can say yes or no to, as SQL over `judged`."""

NOTHING = clustered_rate({})

Patterns = Counter[tuple[int, int]]
"""How many clusters have (successes, trials)."""


@contextmanager
def snapshot(reader: JournalReader) -> Iterator[None]:
    """All queries inside see one state of the journal, though a build may be writing."""
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
def units(reader: JournalReader, *, judged: bool = True) -> Iterator[None]:
    """Inside, queries find the tables `unit` and `judged`, which last as long as the snapshot that they are of.

    Args:
        judged: make that one too.
    """
    connection = reader.connection
    with snapshot(reader):
        there = {name for (name,) in connection.execute("SELECT name FROM temp.sqlite_schema")}
        with temporary_changes(connection):
            for name, made in _TABLES.items():
                if name not in there and (judged or name == "unit"):
                    connection.execute(made)
        yield


def forget_units(connection: sqlite3.Connection) -> None:
    """To be called where queries see other tasks from now on, inside `temporary_changes`."""
    for name in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS temp.{name}")


def rates(reader: JournalReader, sql: str) -> dict[tuple[str, ...], Rate]:
    """Rates by key from rows (key..., successes, n), one row for each cluster.

    Holds how many clusters have which counts, not the clusters.
    """
    patterns: dict[tuple[str, ...], Patterns] = defaultdict(Counter)
    with units(reader, judged="judged" in sql):
        for *key, successes, n in reader.connection.execute(sql):
            patterns[tuple(key)][successes or 0, n or 0] += 1
    return {key: clustered_rate(counts) for key, counts in patterns.items()}


def decision_rates(
    reader: JournalReader,
) -> tuple[defaultdict[str, Rate], defaultdict[str, Rate], Counter[tuple[str, str]]]:
    """How often each decision and criterion was yes; one that a verdict lacks is not in its n.

    Returns:
        Over judged attempts of the first round, and over all; and how often each failed criterion had each code.
    """
    first, overall = _by_decision(reader)
    codes: Counter[tuple[str, str]] = Counter()
    for round, cluster in _criteria_by_cluster(reader, codes):
        patterns = first if round == 1 else overall
        for name, (passed, n) in cluster.items():
            patterns[name][passed, n] += 1
    return _rates_of(first), _rates_of(overall), codes


def _rates_of(patterns: Mapping[str, Patterns]) -> defaultdict[str, Rate]:
    return defaultdict(lambda: NOTHING, {name: clustered_rate(counts) for name, counts in patterns.items()})


def _by_decision(reader: JournalReader) -> tuple[dict[str, Patterns], dict[str, Patterns]]:
    """Clusters by what their verdicts decided: of first rounds, and of all."""
    sums = ", ".join(
        f"sum({decision}) FILTER ({where}), count({decision}) FILTER ({where})"
        for where in ("WHERE round = 1", "WHERE true")
        for decision in DECISIONS
    )
    first: dict[str, Patterns] = defaultdict(Counter)
    overall: dict[str, Patterns] = defaultdict(Counter)
    columns = [(patterns, decision) for patterns in (first, overall) for decision in DECISIONS]
    with units(reader):
        for row in reader.connection.execute(f"SELECT {sums} FROM judged GROUP BY cluster"):
            for (patterns, decision), yes, n in zip(columns, row[::2], row[1::2], strict=True):
                patterns[decision][yes or 0, n] += 1
    return first, overall


def _criteria_by_cluster(
    reader: JournalReader, codes: Counter[tuple[str, str]]
) -> Iterator[tuple[int, dict[str, list[int]]]]:
    """For each cluster, (1, ...) with its criteria of first rounds and (0, ...) with those of all rounds: name ->
    [passed, n]. Counts the codes of failed criteria on the way: the rows are many, and read once.
    """
    found: tuple[dict[str, list[int]], dict[str, list[int]]] = {}, {}
    at = None
    with units(reader):
        for cluster, round, name, passed, failed in reader.connection.execute(_CRITERIA):
            if cluster != at:
                yield from enumerate(found)
                found, at = ({}, {}), cluster
            for counts in found if round == 1 else found[:1]:
                count = counts.setdefault(name, [0, 0])
                count[0] += passed
                count[1] += 1
            if failed is not None:
                codes.update((name, code) for code in orjson.loads(failed))
    yield from enumerate(found)
