"""`plantain judge override`: a named person's verdict on an edit, stored next to the judge's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.journal.questions.corrections import SET
from plantain.records import InputError

app = application()


@app.command(
    epilog='Example: plantain judge override runs/cxr 3f2a --set failed --by RT --why "the effusion is still there"'
)
def override(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a build or of an import.")],
    task: Annotated[str, typer.Argument(metavar="TASK", help="First digits of the task's id.")],
    set_to: Annotated[str, typer.Option("--set", metavar="WORD", help="qualified or failed.")],
    by: Annotated[str, typer.Option("--by", metavar="CODE", help="Code of the person; releases carry it.")],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason; releases carry it.")],
    round: Annotated[
        int | None, typer.Option("--round", min=1, help="Default: the round that ended the task.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the stored correction as JSON.")] = False,
) -> None:
    """Correct a verdict by hand. show, report and releases list it next to the judge's; it decides nothing.

    To let another judge decide, use judge rejudge --decisive. A person's latest verdict counts; all are kept.
    """
    from plantain.audit.correction import correct_verdict

    if set_to not in SET.values():
        raise InputError(f"--set {set_to!r}: choose {' or '.join(SET.values())}")
    qualified = set_to == SET[True]
    done = asyncio.run(correct_verdict(run, task, qualified=qualified, by=by, why=why, round=round))
    judged = done.judged
    if as_json:
        document = {
            "task": done.row.id,
            "state": done.row.state.value,
            "generation": done.attempt.generation,
            "round": done.attempt.round,
            "judge": None if judged is None else {"judge": judged.judge, "qualified": judged.qualified},
            "correction": {"by": by, "set": set_to, "why": why.strip()},
        }
        print(json.dumps(document, indent=1))
        return
    word = {True: "qualified", False: "not qualified", None: "undecided"}
    judge = (
        "no judge has judged it" if judged is None else f"{judged.judge}: {word[judged.qualified]} (decides)"
    )
    print(f"{done.row.id} round {done.attempt.round}: {by}: {word[qualified]}; {judge}")
