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
    run: Path, task: str, *, qualified: bool, by: str, why: str
) -> tuple[TaskRow, Attempt]:
    """Store a reader's verdict on the round that ended a task, next to the decisive one; return task and attempt.

    Args:
        run: folder of a build or of an import.
        task: first digits of the task's id.
        qualified: the verdict.
        by: the reader's code, which is published with the run.
        why: the reason, 1 to 2,000 characters, published too.

    Raises:
        InputError: the task is unknown or has no image, or `by` or `why` is not allowed.
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
        attempts = reader.attempts(row.id, row.generation)
    attempt = next((one for one in attempts if one.round == row.round and one.edited is not None), None)
    if attempt is None:
        raise InputError(f"task {row.id} has no edited image")
    seen = Observations({}, {}, qualified, why.strip())
    verdict = Verdict(PERSON + by, seen, qualified, qualified, None, qualified)
    stored = StoredVerdict(row.id, attempt.generation, attempt.round, verdict, decisive=False)
    async with Journal.open(run) as journal:
        await journal.correct(stored)
    return row, attempt
