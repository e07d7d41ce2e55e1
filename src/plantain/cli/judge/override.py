"""`plantain judge override` and `prompts`: a reader's verdict next to the judge's, and the templates of prompts."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path

import typer

from plantain.cli.terminal.options import AsJson, RunArgument
from plantain.cli.terminal.tables import print_json
from plantain.journal import Journal, JournalReader, StoredVerdict, TaskRow, clean_text
from plantain.journal.questions.tasks import SET
from plantain.journal.verdicts import PERSON
from plantain.models.hosted.prompts import write_prompts
from plantain.records import Attempt, InputError, Observations, TaskKind, Verdict
from plantain.records.messages import counted, next_line

LONGEST = 2_000
"""Characters of a reason."""


async def correct_verdict(
    run: Path, task: str, *, qualified: bool, by: str, why: str, round: int | None = None
) -> tuple[TaskRow, Attempt]:
    """Store a reader's verdict and return the task and the attempt; state, decisive verdict and counts stay.

    Args:
        run: folder of a build or of an import.
        task: first digits of the task's id.
        qualified: the verdict.
        by: the reader's code, which is published with the run.
        why: the reason, 1 to 2,000 characters, published too.
        round: of the task's current generation; None for the round that ended the task.

    Raises:
        InputError: no such task or round, it has no image, or `by` or `why` is not allowed.
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


def override(
    run: RunArgument,
    task: str = typer.Argument(..., metavar="TASK", help="First digits of the task's id."),
    set_to: str = typer.Option(..., "--set", metavar="WORD", help="qualified or failed."),
    by: str = typer.Option(..., metavar="CODE", help="Code of the reader; releases contain it."),
    why: str = typer.Option(..., metavar="TEXT", help="The reason; releases contain it."),
    round: int | None = typer.Option(None, min=1, help="Default: the round that ended the task."),
    as_json: AsJson = False,
) -> None:
    """Correct a verdict by hand. show, report and releases list it next to the judge's; it does not change the task.

    To let another judge decide, use judge rejudge --decisive. The latest verdict of a reader counts; all are stored.

    Example: plantain judge override runs/cxr 3f2a --set failed --by RT --why "the effusion is still there"
    """
    if set_to not in SET.values():
        raise InputError(f"--set {set_to!r}: choose {' or '.join(SET.values())}")
    qualified = set_to == SET[True]
    row, attempt = asyncio.run(correct_verdict(run, task, qualified=qualified, by=by, why=why, round=round))
    judged = attempt.verdict
    if as_json:
        document = {
            "task": row.id,
            "state": row.state.value,
            "generation": attempt.generation,
            "round": attempt.round,
            "judge": None if judged is None else {"judge": judged.judge, "qualified": judged.qualified},
            "correction": {"by": by, "set": set_to, "why": why.strip()},
        }
        print_json(document)
        return
    word = {True: "qualified", False: "not qualified", None: "undecided"}
    judge = (
        "no judge has judged it" if judged is None else f"{judged.judge}: {word[judged.qualified]} (decides)"
    )
    print(f"{row.id} round {attempt.round}: {by}: {word[qualified]}; {judge}")
    print(next_line("report", run))


def prompts(to: Path = typer.Option(..., metavar="FOLDER", help="Folder for the templates.")) -> None:
    """Write the prompt templates into a folder.

    Edit them, delete those that stay as they are, and name the folder: `prompts` in a recipe's [providers.NAME], or
    `judge rejudge RUN --prompts ours --prompts FOLDER` to see which verdicts change.

    Example: plantain judge prompts --to my-prompts
    """
    print(f"{to}: {counted(len(write_prompts(to)), 'template')}")
    print(
        f"next: compare them on a run by judge rejudge with --prompts ours --prompts {shlex.quote(str(to))}"
    )
