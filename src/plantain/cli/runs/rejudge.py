"""`plantain rejudge`: a run's stored attempts under other judges."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.pipeline.piloting.decision import PEOPLE

if TYPE_CHECKING:
    from plantain.audit.rejudging.rejudge import Rejudged
    from plantain.roles import Judge

app = application()


@app.command(epilog="Example: plantain rejudge runs/theirs --judge offline/instruments --sample 500")
def rejudge(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a build, or of what was imported.")],
    judges: Annotated[
        list[str],
        typer.Option(
            "--judge",
            metavar="MODEL",
            help="Several times for several; separated by commas for a panel; people/STUDY: a study's readers.",
        ),
    ],
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="So many attempts, drawn by hash.")
    ] = None,
    decisive: Annotated[
        bool,
        typer.Option("--decisive", help="This judge's verdicts decide from now on; the older ones stay."),
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Ask again where a judge gave no answer.")] = False,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="[limits], [providers.NAME] and [consent], in TOML.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="The page. Default: rejudged.html in the run.")
    ] = None,
    accept_model_change: Annotated[
        bool,
        typer.Option(
            "--accept-model-change",
            help="Go on when a judge answers in another edition or version than this run knows it by.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Judges, rows and flips as JSON.")] = False,
) -> int:
    """Judge stored attempts again, beside the verdicts that are there. Nothing is generated.

    What a judge has said is kept in the run and never asked twice. Ctrl-C finishes what is in flight; the same command
    goes on.
    """
    from plantain.audit.rejudging.rejudge import RejudgeRequest, models_named, run_rejudge
    from plantain.cli.runs.build import print_end
    from plantain.cli.terminal.stages import StageProgress
    from plantain.offline.workers import close_workers
    from plantain.runs.settings.terms import load_terms

    hired = [_people(name) if name.startswith(PEOPLE) else name for name in judges]
    terms = load_terms(settings, models_named([name for name in hired if isinstance(name, str)]))
    wish = RejudgeRequest(tuple(hired), sample, decisive, retry, accept_model_change=accept_model_change)
    with StageProgress(quiet=as_json) as progress:
        try:
            done = asyncio.run(run_rejudge(run, wish, terms, observer=progress))
        finally:
            close_workers()
    _print_rejudged(run, done, sample, to, as_json=as_json)
    again = shlex.join(["plantain", "rejudge", str(run), *(f"--judge={name}" for name in judges)])
    return print_end(done.summary, again)


def _people(name: str) -> Judge:
    """The readers of a study as a judge, by `people/STUDY`."""
    from plantain.review.people_judge import PeopleJudge

    return PeopleJudge(Path(name.removeprefix(PEOPLE)))


def _print_rejudged(run: Path, done: Rejudged, sample: int | None, to: Path | None, *, as_json: bool) -> None:
    from collections import Counter

    import orjson

    from plantain.audit.rejudging.flips import EVERYWHERE, judged_rows
    from plantain.audit.rejudging.rejudge_page import write_rejudged
    from plantain.audit.rejudging.table import JudgedTable
    from plantain.journal import JournalReader

    reasons: dict[str, Counter[str]] = {}
    for (judge, why), n in done.unjudged.items():
        reasons.setdefault(judge, Counter())[why] += n
    asked, table, first = {jury.jury.name for jury in done.seated}, JudgedTable(), True
    with JournalReader.open(run) as reader:
        # Rows are printed as they are read: there may be millions, and they come before what is computed from them.
        print('{\n  "rows": [' if as_json else "", end="")
        for own in judged_rows(reader, done.seated, sample):
            table.add(own)
            for row in own if as_json else ():
                if row.judge in asked:
                    print(f"{'' if first else ','}\n    {orjson.dumps(row.as_json()).decode()}", end="")
                    first = False
        tallies, found = table.tallies(), table.flips()
        page = write_rejudged(reader, tallies, found, reasons, to)
    if as_json:
        document = {
            "judges": [one.as_json() for one in tallies if one.judge in asked],
            "others": [one.as_json() for one in tallies if one.judge not in asked],
            "flips": [flip.as_json() for flip in found],
            "unjudged": {judge: dict(why) for judge, why in reasons.items()},
            "page": str(page),
        }
        print(f"\n  ],\n{orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()[2:]}")
        return
    for one in tallies:
        counts = f"{one.judged} judged ({one.accepted.successes} accepted, {one.unscored} unscored)"
        print(f"{one.judge}: {counts}, {one.unjudged} without a verdict")
        for why, n in reasons.get(one.judge, Counter()).most_common(3):
            print(f"  {n} x {why}")
    for flip in found:
        if (flip.modality, flip.finding, flip.direction) == EVERYWHERE and flip.rate.n:
            differ = flip.first_only + flip.second_only
            print(f"{flip.first} and {flip.second} differ on {differ} of {flip.rate.n}")
    print(f"rejudged: {page}")
