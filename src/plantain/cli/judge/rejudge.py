"""`plantain judge rejudge`: a run's stored edits under other judges or other prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import typer

from plantain.audit.flips import QUALIFIED, consistency, flips, judged_attempts, tallies
from plantain.audit.jury import models_of
from plantain.audit.pages import write_rejudged
from plantain.audit.planning import forecast_rejudge
from plantain.audit.rejudge import (
    NO_ORIGINAL,
    Rejudged,
    RejudgeRequest,
    chosen_attempts,
    recorded_judge,
    run_rejudge,
)
from plantain.cli import command_again
from plantain.cli.judge.audit import print_bill
from plantain.cli.terminal.options import AsJson, DryRun, ModelChange, RunArgument, SettingsFile
from plantain.cli.terminal.progress import StageProgress, print_end, run_to_end
from plantain.cli.terminal.tables import print_json
from plantain.journal import JournalReader
from plantain.records.messages import command_line, counted, next_line
from plantain.review.people import PREFIX, PeopleJudge
from plantain.runs.terms import Terms, load_terms


def rejudge(
    context: typer.Context,
    run: RunArgument,
    judges: list[str] | None = typer.Option(
        None,
        "--judge",
        metavar="MODEL",
        help="Repeatable; a panel's members are separated by commas; people/STUDY: a study's readers. "
        "Default: the run's own judge.",
    ),
    prompts: list[str] | None = typer.Option(
        None, metavar="SET", help="ours, published, or a folder; repeatable."
    ),
    rubric: str = typer.Option(
        "", metavar="NAME", help="Another rubric than the run's, by name or file.toml."
    ),
    repeat: int = typer.Option(1, min=1, max=100, metavar="N", help="Ask each judge N times (consistency)."),
    sample: int | None = typer.Option(None, min=1, help="Judge this many attempts, drawn by the run's seed."),
    ids: Path | None = typer.Option(
        None, metavar="FILE", help="Judge these tasks: one id or unique prefix a line."
    ),
    decisive: bool = typer.Option(False, "--decisive", help="Let these verdicts decide from now on."),
    retry: bool = typer.Option(False, "--retry", help="Ask again where a judge gave no answer."),
    settings: SettingsFile = None,
    to: Path | None = typer.Option(None, metavar="FILE", help="The page. Default: rejudged.html in the run."),
    accept_model_change: ModelChange = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Judge stored attempts again and compare the verdicts. Nothing is generated.

    Verdicts are stored in the run next to the older ones, and recorded answers are reused. Ctrl-C finishes the calls in
    flight; the same command resumes.

    Example: plantain judge rejudge runs/pilot --judge gemini/gemini-3.8-flash --prompts ours --prompts my-prompts
    """
    names = judges or [recorded_judge(run)]
    asked = [
        PeopleJudge(Path(name.removeprefix(PREFIX))) if name.startswith(PREFIX) else name for name in names
    ]
    models = dict.fromkeys(model for name in asked if isinstance(name, str) for model in models_of(name))
    terms = load_terms(settings, tuple(models), run=run)
    request = RejudgeRequest(
        asked, tuple(prompts or ()), sample, decisive, retry, accept_model_change, rubric, repeat, ids
    )
    if repeat > 1 and not (dry_run or as_json):
        _print_forecast(run, request, terms, as_json=False)
    if dry_run:
        return _print_forecast(run, request, terms, as_json=as_json)
    with StageProgress(quiet=as_json) as progress:
        done = run_to_end(run_rejudge(run, request, terms, observer=progress))
    several = len(request.judges) * max(1, len(request.prompts)) * repeat > 1
    again = "" if decisive or rubric or several else command_again(context)  # as --decisive allows
    _print_rejudged(run, done, request, to, again, as_json=as_json)
    return print_end(context, done.summary)


def _print_forecast(run: Path, request: RejudgeRequest, terms: Terms, *, as_json: bool) -> int:
    found: dict[str, Any] = forecast_rejudge(run, request, terms)
    if as_json:
        print_json(found)
        return 0
    print(counted(found["attempts"], "stored attempt"))
    print_bill(found, "at most ")
    for line in found["remarks"]:
        print(line)
    return 0


def _print_rejudged(
    run: Path, done: Rejudged, request: RejudgeRequest, to: Path | None, again: str, *, as_json: bool
) -> None:
    with JournalReader.open(run) as reader:
        attempts = judged_attempts(reader, done, request)
        asked, others = tallies(reader, attempts, done)
        names = [str(one["judge"]) for one in (*asked, *others)]
        found, studies = flips(attempts, names), consistency(attempts)
        page = write_rejudged(reader, [*asked, *others], found, to, studies)
        drawn = {one.key for one in chosen_attempts(reader, request)}
    if as_json:
        rows = [row for one in attempts if one.key in drawn for row in one.rows(names[: len(asked)])]
        document = {"judges": asked, "others": others, "rows": rows, "flips": found, "page": str(page)}
        document |= {"consistency": studies} if studies else {}
        print_json(document)
        return
    for one in (*asked, *others):
        cost = f", {one['calls']} calls, ${one['cost_usd']:z.4f}" if one.get("cost_usd") is not None else ""
        counts = f"{one['judged']} judged, {one['qualified']} accepted, {one['unscored']} unscored"
        print(f"{one['judge']}: {counts}{cost}")
    for (judge, why), n in done.unjudged.items():
        print(f"{judge}: {n} without a verdict: {why}")
    if done.vetoed:
        print(f"{counted(done.vetoed, 'edit')} rejected as before, by the text check or the original check")
    if any(why == NO_ORIGINAL for _, why in done.unjudged):
        own = command_line("import", "RELEASE", "--run", "NEW_RUN", "--originals", "CATALOGUE")
        print(f"judges need the originals; import with your own: {own}")
    for study in studies:
        same, few = cast(Any, study["identical"]), cast(Any, study["one_dimension"])
        print(f"consistency study (Med-Banana-50K, 4.3), {study['judge']} asked {study['repeat']} times:")
        print(
            f"  identical {_share(same)}, different in one dimension {_share(few)}, n = {same['n']}"
            f" ({study['unscored']} unscored); the paper: 87.2 % and 12.8 % of 500"
        )
    for flip in found:
        if flip["criterion"] == QUALIFIED and flip["n"]:
            alone = f"{flip['first']} alone accepts {flip['first_only']}, {flip['second']} alone {flip['second_only']}"
            print(f"of {counted(flip['n'], 'edit')} that both judged, {alone}")
    print(f"page: {page}")
    if again:
        print("the run's earlier verdicts still decide, and its report does not change")
        print(f"to let these decide: {again} --decisive")
    else:
        print(next_line("report", run))


def _share(rate: dict[str, Any]) -> str:
    """Return a rate in per cent with its interval."""
    if rate["rate"] is None:
        return "unscored"
    return f"{100 * rate['rate']:.1f} % ({100 * rate['low']:.1f} to {100 * rate['high']:.1f})"
