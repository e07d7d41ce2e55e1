"""Correct a verdict by hand: a named person's verdict is stored next to the judge's and decides nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from plantain.journal import Journal, JournalReader, StoredVerdict, TaskRow, clean_text
from plantain.journal.questions.corrections import SET
from plantain.journal.verdicts import PERSON
from plantain.records import Attempt, InputError, Observations, TaskKind, Verdict

LONGEST = 2_000
"""Characters of a reason."""

_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


@dataclass(frozen=True, slots=True)
class Correction:
    """A person's verdict on one attempt.

    Attributes:
        task: first digits of the task's id.
        set: "qualified" or "failed".
        by: the person's code, which is published with the run.
        why: the reason, 1 to 2,000 characters.
        round: of the task's current generation; None for the round that ended the task.
    """

    task: str
    set: str
    by: str
    why: str
    round: int | None = None

    @property
    def qualified(self) -> bool:
        return self.set == SET[True]


@dataclass(frozen=True, slots=True)
class Corrected:
    """The attempt whose verdict was corrected; `judged` is the decisive verdict on it, None if there is none."""

    row: TaskRow
    attempt: Attempt
    judged: Verdict | None


async def correct_verdict(run: Path, correction: Correction) -> Corrected:
    """Store a correction; the task's state, its decisive verdict and all counts stay as they are.

    Raises:
        InputError: no such task or round, it has no image, or a field is not allowed.
        RunLocked: another process writes to the run.
    """
    _check(correction)
    with JournalReader.open(run) as reader:
        found = _attempt(reader, correction)
    qualified, attempt = correction.qualified, found.attempt
    seen = Observations({}, {}, qualified, correction.why.strip())
    verdict = Verdict(PERSON + correction.by, seen, qualified, qualified, None, qualified)
    async with Journal.open(run) as journal:
        await journal.correct(
            StoredVerdict(attempt.task_id, attempt.generation, attempt.round, verdict, decisive=False)
        )
    return found


def _check(correction: Correction) -> None:
    if correction.set not in SET.values():
        raise InputError(f"--set {correction.set!r}: choose {' or '.join(SET.values())}")
    if not _CODE.fullmatch(correction.by):
        raise InputError(
            f"--by {correction.by!r}: a code of 1 to 32 letters, digits, dots, dashes or underscores, such as RT"
        )
    if not clean_text(correction.why).strip() or len(correction.why) > LONGEST:
        raise InputError(f"--why: give the reason in 1 to {LONGEST:,} characters")


def _attempt(reader: JournalReader, correction: Correction) -> Corrected:
    row = reader.task(correction.task)
    if row.task.kind is TaskKind.BENCH:
        raise InputError(f"task {row.id}: a benchmark's output; its scores cannot be corrected")
    number = row.round if correction.round is None else correction.round
    rounds = {a.round: a for a in reader.attempts(row.id, row.generation) if a.edited is not None}
    if number not in rounds:
        named = f"--round {number}: " if correction.round is not None else ""
        has = f"edited images in round {', '.join(map(str, rounds))}" if rounds else "no edited image"
        raise InputError(f"{named}task {row.id} has {has}")
    return Corrected(row, rounds[number], rounds[number].verdict)
