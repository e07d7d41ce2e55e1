"""`plantain judge override`: a reader's verdict on an edit, stored next to the judge's."""

from __future__ import annotations

import asyncio

import typer

from plantain.audit.correction import correct_verdict
from plantain.cli.terminal.options import AsJson, RunArgument
from plantain.cli.terminal.tables import print_json
from plantain.journal.questions.tasks import SET
from plantain.records import InputError
from plantain.records.messages import next_line


def override(
    run: RunArgument,
    task: str = typer.Argument(..., metavar="TASK", help="First digits of the task's id."),
    set_to: str = typer.Option(..., "--set", metavar="WORD", help="qualified or failed."),
    by: str = typer.Option(..., metavar="CODE", help="Code of the reader; releases contain it."),
    why: str = typer.Option(..., metavar="TEXT", help="The reason; releases contain it."),
    as_json: AsJson = False,
) -> None:
    """Correct a verdict by hand. show, report and releases list it next to the judge's; it does not change the task.

    To let another judge decide, use judge rejudge --decisive. The latest verdict of a reader counts; all are stored.

    Example: plantain judge override runs/cxr 3f2a --set failed --by RT --why "the effusion is still there"
    """
    if set_to not in SET.values():
        raise InputError(f"--set {set_to!r}: choose {' or '.join(SET.values())}")
    qualified = set_to == SET[True]
    row, attempt = asyncio.run(correct_verdict(run, task, qualified=qualified, by=by, why=why))
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
