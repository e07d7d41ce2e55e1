"""Questions that an audit asks of its own run: who answered on which day, and what it took."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from plantain.journal.reader import JournalReader


def spent_by(reader: JournalReader, models: Collection[str]) -> tuple[float | None, float | None]:
    """What the answers of these models cost in all, and the seconds of one; None where that is not known of each."""
    cost, priced, settled, seconds = reader.connection.execute(
        "SELECT sum(cost_usd), count(cost_usd), count(*), avg(latency_s) FROM call "
        f"WHERE state = 'settled' AND model IN ({', '.join('?' * len(models))})",
        sorted(models),
    ).fetchone()
    known = settled > 0 and priced == settled
    return (round(cost, 6) if known else None), (None if seconds is None else round(seconds, 3))


def answered_by(reader: JournalReader, models: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """(task, model that said it answered, day) of each answer of these models."""
    return iter(
        reader.connection.execute(
            "SELECT task, served_model, substr(started_at, 1, 10) FROM call WHERE final = 1 AND outcome = 'ok' "
            f"AND model IN ({', '.join('?' * len(models))}) ORDER BY id",
            sorted(models),
        ).fetchall()
    )
