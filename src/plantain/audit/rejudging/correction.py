"""A verdict corrected by hand: what a named person says of an attempt, beside the judge's."""

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
    """What a person wants said of one attempt.

    Attributes:
        task: first digits of the task's id.
        qualified: what the person sets.
        by: a code for the person: it is published with the run, so a name only where its owner wants that.
        why: the reason, in one to 2,000 characters.
        round: of the task's current generation; None for the one by which the task ended.
    """

    task: str
    qualified: bool
    by: str
    why: str
    round: int | None = None

    def check(self) -> None:
        """Raises InputError for a code or a reason that cannot be kept."""
        if not _CODE.fullmatch(self.by):
            raise InputError(
                f"--by {self.by!r}: a code of 1 to 32 letters, digits, dots, dashes or underscores, such as RT"
            )
        if not clean_text(self.why).strip() or len(self.why) > LONGEST:
            raise InputError(f"--why: say in 1 to {LONGEST:,} characters what the judge got wrong or right")


@dataclass(frozen=True, slots=True)
class Corrected:
    """Where a correction was stored; `judged` is the decisive verdict beside it, None where nobody judged."""

    row: TaskRow
    attempt: Attempt
    judged: Verdict | None


async def correct_verdict(run: Path, wish: Correction) -> Corrected:
    """Stores a correction; what the task's state, its decisive verdict and every count say stays what it was.

    Raises:
        InputError: no such task or round, it has no picture, or code or reason cannot be kept.
        RunLocked: another process writes to the run.
    """
    wish.check()
    with JournalReader.open(run) as reader:
        found = _attempt(reader, wish)
    verdict = Verdict(
        PERSON + wish.by,
        Observations({}, {}, wish.qualified, wish.why.strip()),
        wish.qualified,
        wish.qualified,
        None,
        wish.qualified,
    )
    attempt = found.attempt
    stored = StoredVerdict(attempt.task_id, attempt.generation, attempt.round, verdict, decisive=False)
    async with Journal.open(run) as journal:
        await journal.correct(stored)
    return found


def set_word(text: str) -> bool:
    """Whether a word that a person set means that the edit qualifies. Raises InputError for another word."""
    for qualified, word in SET.items():
        if text.strip().lower() == word:
            return qualified
    raise InputError(f"--set {text!r}: choose {' or '.join(SET.values())}")


def _attempt(reader: JournalReader, wish: Correction) -> Corrected:
    row = reader.task(wish.task)
    if row.task.kind is TaskKind.BENCH:
        raise InputError(f"task {row.id}: a benchmark's output; its scores cannot be corrected")
    number = row.round if wish.round is None else wish.round
    rounds = {a.round: a for a in reader.attempts(row.id, row.generation) if a.edited is not None}
    if number not in rounds:
        named = f"--round {number}: " if wish.round is not None else ""
        has = f"edited pictures in round {', '.join(map(str, rounds))}" if rounds else "no edited picture"
        raise InputError(f"{named}task {row.id} has {has}")
    return Corrected(row, rounds[number], rounds[number].verdict)
