"""The units that tables count, as SQL, and rates over them whose intervals know that images repeat."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from plantain.journal.reader import JournalReader
from plantain.metrics.statistics.clusters import Rate, clustered_rate

UNITS = """WITH unit AS (
    SELECT t.id, t.modality, t.finding, t.direction, t.generation, t.state, t.round,
           coalesce(json_extract(i.record, '$.dataset') || '/' || json_extract(i.record, '$.group'),
                    nullif(json_extract(i.record, '$.source_sha256'), ''), t.image_id) AS cluster
    FROM task t LEFT JOIN image i ON i.id = t.image_id WHERE t.kind = 'edit'),
judged AS (
    SELECT u.id, u.modality, u.finding, u.direction, u.cluster, v.round, v.score, v.opinion, v.generation, v.judge,
           v.draw, v.qualified, v.qualified_all_pass, v.qualified_weighted
    FROM unit u JOIN verdict v ON v.task = u.id AND v.generation = u.generation AND v.decisive = 1)
"""
"""`unit`: edit tasks with the patient (or, where the source names none, the source file) that they share.
`judged`: attempts of current generations with their one decisive verdict."""

OF_CRITERIA = (
    "judged j JOIN criterion c ON c.task = j.id AND c.generation = j.generation AND c.round = j.round"
    " AND c.judge = j.judge AND c.draw = j.draw AND c.kind = 'criterion'"
)
"""Each criterion of the verdicts of `judged`, as SQL."""

DECISIONS = (
    "qualified",
    "qualified_all_pass",
    "qualified_weighted",
    "opinion",
    "opinion = qualified",
)
"""What a verdict can say yes or no to, as SQL over `judged`."""

NOTHING = clustered_rate({})


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


def rates(reader: JournalReader, sql: str) -> dict[tuple[str, ...], Rate]:
    """Rates by key from rows (key..., successes, n), one row for each cluster.

    Holds how many clusters have which counts, not the clusters.
    """
    patterns: dict[tuple[str, ...], Counter[tuple[int, int]]] = defaultdict(Counter)
    for *key, successes, n in reader.connection.execute(UNITS + sql):
        patterns[tuple(key)][successes or 0, n or 0] += 1
    return {key: clustered_rate(counts) for key, counts in patterns.items()}


def decision_rates(reader: JournalReader, *, first_round: bool) -> defaultdict[str, Rate]:
    """How often each decision and criterion was yes, over judged attempts; one that a verdict lacks is not in its n."""
    sums = ", ".join(f"sum({decision}), count({decision})" for decision in DECISIONS)
    where = "WHERE {}round = 1" if first_round else ""
    patterns: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for row in reader.connection.execute(
        f"{UNITS} SELECT {sums} FROM judged {where.format('')} GROUP BY cluster"
    ):
        for index, decision in enumerate(DECISIONS):
            patterns[decision][row[2 * index] or 0, row[2 * index + 1]] += 1
    for name, passed, n in reader.connection.execute(
        f"{UNITS} SELECT c.name, sum(c.passed), count(c.passed) FROM {OF_CRITERIA} {where.format('j.')}"
        " GROUP BY c.name, j.cluster"
    ):
        patterns[name][passed or 0, n] += 1
    return defaultdict(
        lambda: NOTHING, {decision: clustered_rate(counts) for decision, counts in patterns.items()}
    )
