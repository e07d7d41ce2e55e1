"""`plantain judge rejudge`: a run's stored edits under other judges or other prompts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from plantain.cli.terminal.application import application, command_again
from plantain.pipeline.piloting.decision import PEOPLE

if TYPE_CHECKING:
    from plantain.audit.rejudge import Rejudged, RejudgeRequest
    from plantain.roles import Judge
    from plantain.runs.settings.terms import Terms

app = application()


@app.command(
    epilog="Example: plantain judge rejudge runs/pilot --prompts ours --prompts my-prompts --sample 100"
)
def rejudge(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a build or of an import.")],
    judges: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            metavar="MODEL",
            help="Repeatable; a panel's members are separated by commas; people/STUDY: a study's readers. "
            "Default: the run's own judge.",
        ),
    ] = None,
    prompts: Annotated[
        list[str] | None,
        typer.Option(
            "--prompts", metavar="SET", help="Repeatable: ours, published, or a folder of templates."
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Judge this many attempts, drawn by the run's seed.")
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
            "--accept-model-change", help="Continue when a judge answers in another version than before."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print calls and cost; judge nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print judges, rows and flips as JSON.")] = False,
) -> int:
    """Judge stored attempts again and compare the verdicts. Nothing is generated.

    Verdicts are stored in the run next to the older ones, and recorded answers are reused. Ctrl-C finishes the calls in
    flight; the same command resumes.
    """
    from plantain.audit.jury import models_of
    from plantain.audit.rejudge import RejudgeRequest, recorded_judge, run_rejudge
    from plantain.cli.build import print_end
    from plantain.cli.terminal.stages import StageProgress
    from plantain.offline.workers import close_workers
    from plantain.runs.settings.terms import load_terms

    names = judges or [recorded_judge(run)]
    asked = [_people(name) if name.startswith(PEOPLE) else name for name in names]
    models = dict.fromkeys(model for name in asked if isinstance(name, str) for model in models_of(name))
    terms = load_terms(settings, tuple(models))
    request = RejudgeRequest(asked, tuple(prompts or ()), sample, decisive, retry, accept_model_change)
    if dry_run:
        return _print_forecast(run, request, terms, as_json=as_json)
    with StageProgress(quiet=as_json) as progress:
        try:
            done = asyncio.run(run_rejudge(run, request, terms, observer=progress))
        finally:
            close_workers()
    _print_rejudged(run, done, sample, to, as_json=as_json)
    return print_end(done.summary, command_again(context))


def _people(name: str) -> Judge:
    """Return the readers of a study as a judge, by `people/STUDY`."""
    from plantain.review.people import PeopleJudge

    return PeopleJudge(Path(name.removeprefix(PEOPLE)))


def _print_forecast(run: Path, request: RejudgeRequest, terms: Terms, *, as_json: bool) -> int:
    import orjson

    from plantain.audit.planning import forecast_rejudge
    from plantain.cli.judge.audit import print_bill
    from plantain.records.counts import counted

    found: dict[str, Any] = forecast_rejudge(run, request, terms)
    if as_json:
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return 0
    print(counted(found["attempts"], "stored attempt"))
    print_bill(found)
    for line in found["remarks"]:
        print(line)
    return 0


def _print_rejudged(run: Path, done: Rejudged, sample: int | None, to: Path | None, *, as_json: bool) -> None:
    from plantain.audit.flips import ALL, QUALIFIED, flips, judged_attempts, tallies
    from plantain.audit.pages import write_rejudged
    from plantain.journal import JournalReader

    with JournalReader.open(run) as reader:
        attempts = judged_attempts(reader, done, sample)
        asked, others = tallies(reader, attempts, done)
        names = [str(one["judge"]) for one in (*asked, *others)]
        found = flips(attempts, names)
        page = write_rejudged(reader, [*asked, *others], found, to)
    if as_json:
        rows = [row for one in attempts for row in one.rows(names[: len(asked)])]
        document = {"judges": asked, "others": others, "rows": rows, "flips": found, "page": str(page)}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    for one in (*asked, *others):
        cost = f", {one['calls']} calls, ${one['cost_usd']:z.4f}" if one.get("cost_usd") is not None else ""
        told = f"{one['judged']} judged, {one['qualified']} accepted, {one['unscored']} unscored"
        print(f"{one['judge']}: {told}{cost}")
    for (judge, why), n in done.unjudged.items():
        print(f"{judge}: {n} without a verdict: {why}")
    for flip in found:
        if (flip["modality"], flip["criterion"]) == (ALL, QUALIFIED) and flip["n"]:
            alone = f"only the first accepts {flip['first_only']}, only the second {flip['second_only']}"
            print(f"{flip['first']} and {flip['second']}: of {flip['n']}, {alone}")
    print(f"page: {page}")
