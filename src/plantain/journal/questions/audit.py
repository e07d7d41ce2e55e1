"""Cost and time of the answers in an audit's run."""

from __future__ import annotations

from collections.abc import Collection

from plantain.journal.reader import JournalReader


def spent_by(reader: JournalReader, models: Collection[str]) -> tuple[float | None, float | None]:
    """Return the cost of all answers of these models, and the mean seconds of one; None where not known of each."""
    cost, priced, settled, seconds = reader.connection.execute(
        "SELECT sum(cost_usd), count(cost_usd), count(*), avg(latency_s) FROM call "
        f"WHERE state = 'settled' AND model IN ({', '.join('?' * len(models))})",
        sorted(models),
    ).fetchone()
    known = settled > 0 and priced == settled
    return (round(cost, 6) if known else None), (None if seconds is None else round(seconds, 3))
