"""`plantain verdict`: what a named person says of an edit, beside the judge's verdict."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from plantain.cli.terminal.application import application

app = application()


@app.command(
    epilog='Example: plantain verdict runs/cxr 3f2a --set failed --by RT --why "the effusion is still there"'
)
def verdict(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a build, or of what was imported.")],
    task: Annotated[str, typer.Argument(metavar="TASK", help="The first digits of the task's id.")],
    set_to: Annotated[str, typer.Option("--set", metavar="WORD", help="qualified or failed.")],
    by: Annotated[
        str, typer.Option("--by", metavar="CODE", help="Who says so: a code, which releases carry.")
    ],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, which releases carry.")],
    round: Annotated[
        int | None, typer.Option("--round", min=1, help="Default: the round by which the task ended.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was stored, as JSON.")] = False,
) -> None:
    """Correct a verdict by hand. It stands beside the judge's in show, report and releases, and decides nothing.

    To let another judge decide, use rejudge --decisive. The same person's later word counts; every one is kept.
    """
    from plantain.audit.rejudging.correction import Correction, correct_verdict, set_word

    wish = Correction(task, set_word(set_to), by, why, round)
    done = asyncio.run(correct_verdict(run, wish))
    judged = done.judged
    word = {True: "qualified", False: "not qualified", None: "undecided"}
    if as_json:
        document = {
            "task": done.row.id,
            "state": done.row.state.value,
            "generation": done.attempt.generation,
            "round": done.attempt.round,
            "judge": None if judged is None else {"judge": judged.judge, "qualified": judged.qualified},
            "correction": {"by": by, "set": set_to.strip().lower(), "why": why.strip()},
        }
        typer.echo(json.dumps(document, indent=1))
        return
    theirs = "nobody judged it" if judged is None else f"{judged.judge} says {word[judged.qualified]}"
    typer.echo(
        f"{done.row.id} round {done.attempt.round}: {by} says {word[wish.qualified]}; {theirs}, which stands"
    )
