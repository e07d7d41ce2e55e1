"""Correct a verdict by hand: a reader's verdict is stored next to the judge's and decides nothing."""

from __future__ import annotations

import re
from pathlib import Path

from plantain.journal import Journal, JournalReader, StoredVerdict, TaskRow, clean_text
from plantain.journal.verdicts import PERSON
from plantain.records import Attempt, InputError, Observations, TaskKind, Verdict

LONGEST = 2_000
"""Characters of a reason."""


async def correct_verdict(
    run: Path, task: str, *, qualified: bool, by: str, why: str, round: int | None = None
) -> tuple[TaskRow, Attempt]:
    """Store a reader's verdict; return the task and attempt, whose state and decisive verdict do not change.

    Args:
        run: folder of a build or of an import.
        task: first digits of the task's id.
        qualified: the verdict.
        by: the reader's code, which is published with the run.
        why: the reason, 1 to 2,000 characters, published too.
        round: round of the task's current generation; None for the round that ended the task.

    Raises:
        InputError: task or round is unknown or has no image, or `by` or `why` is not allowed.
        RunLocked: another process writes to the run.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}", by):
        raise InputError(
            f"--by {by!r}: a code of 1 to 32 letters, digits, dots, dashes or underscores, such as RT"
        )
    if not clean_text(why).strip() or len(why) > LONGEST:
        raise InputError(f"--why: give the reason in 1 to {LONGEST:,} characters")
    with JournalReader.open(run) as reader:
        row = reader.task(task)
        if row.task.kind is TaskKind.BENCH:
            raise InputError(f"task {row.id}: a benchmark's output; its scores cannot be corrected")
        attempts = {a.round: a for a in reader.attempts(row.id, row.generation) if a.edited is not None}
    attempt = attempts.get(row.round if round is None else round)
    if attempt is None:
        named = f"--round {round}: " if round is not None else ""
        has = f"edited images in round {', '.join(map(str, attempts))}" if attempts else "no edited image"
        raise InputError(f"{named}task {row.id} has {has}")
    seen = Observations({}, {}, qualified, why.strip())
    verdict = Verdict(PERSON + by, seen, qualified, qualified, None, qualified)
    stored = StoredVerdict(row.id, attempt.generation, attempt.round, verdict, decisive=False)
    async with Journal.open(run) as journal:
        await journal.correct(stored)
    return row, attempt
