"""`plantain prompts compare`: the same stored edits under two sets of prompts."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.table import Table

from plantain.audit.jury import models_of
from plantain.audit.rejudging.prompts import (
    PassCounts,
    PromptComparison,
    compare_prompts,
    judge_recorded,
)
from plantain.audit.rejudging.prompts_page import write_prompts_page
from plantain.audit.rejudging.prompts_plan import plan_comparison
from plantain.audit.rejudging.wordings import wording_of
from plantain.cli.runs.build import print_end
from plantain.cli.terminal.application import application
from plantain.cli.terminal.stages import StageProgress
from plantain.cli.terminal.tables import print_table
from plantain.files.writing import replace_file
from plantain.journal import JournalReader
from plantain.records import InputError
from plantain.records.counts import counted
from plantain.runs.settings.terms import load_terms

app = application()


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="a folder of prompts, or ours: shipped")],
    second: Annotated[str, typer.Argument(metavar="B", help="the prompts to compare them with")],
    on: Annotated[Path, typer.Option("--on", metavar="RUN", help="the run whose stored edits are judged")],
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="the comparison's own folder; resumed where it is there"),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="so many edits, drawn by the run's seed; default: all")
    ] = None,
    judge: Annotated[
        str,
        typer.Option(
            "--judge", metavar="MODEL", help="or several, separated by commas; default: the run's own"
        ),
    ] = "",
    settings: Annotated[
        Path | None, typer.Option("--settings", help="[limits], [providers.NAME] and [consent], in TOML")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="ask again where the judge gave no report")] = False,
    only_plan: Annotated[bool, typer.Option("--plan", help="calls, tokens and cost; judges nothing")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> int:
    """Judges the same stored edits under two sets of prompts and shows which verdicts flip, how far they agree and
    what either costs. The run is only read; answers are kept in --run and never asked for twice.

    Example: plantain prompts compare shipped my-prompts --on runs/cxr-pilot --sample 100 --run runs/words
    """
    wordings = wording_of(first), wording_of(second)
    named, judge = judge, judge or judge_recorded(on)
    terms = load_terms(settings, models_of(judge))
    if only_plan:
        document = plan_comparison(on, *wordings, judge=judge, terms=terms, sample=sample)
        print(
            orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() if as_json else _plan_lines(document)
        )
        return 0
    if run is None:
        raise InputError("--run: name a folder for the judge's answers: they are kept, and paid for once")
    if run.resolve() == on.resolve():
        raise InputError("--run: name a folder other than --on, which is only read")
    with StageProgress(quiet=as_json) as progress:
        came = asyncio.run(
            compare_prompts(
                on,
                *wordings,
                judge=judge,
                terms=terms,
                run=run,
                sample=sample,
                retry=retry,
                observer=progress,
            )
        )
    with JournalReader.open(run) as reader:
        originals = {image.id: image.prepared_sha256 for image in reader.images()}
    document = came.as_json() | {"report": str(write_prompts_page(came, run, originals))}
    numbers = orjson.dumps(document, option=orjson.OPT_INDENT_2)
    replace_file(run / "prompts.json", numbers)
    if as_json:
        print(numbers.decode())
    else:
        _print(came, run)
    again = ["plantain", "prompts", "compare", first, second, "--on", str(on), "--run", str(run)]
    given = {"--sample": sample, "--judge": named, "--settings": settings}
    again += [word for option, value in given.items() if value for word in (option, str(value))]
    return print_end(came.summary, shlex.join(again))


def _print(came: PromptComparison, run: Path) -> None:
    a, b = came.names
    table = Table(
        title=f"{came.judge}: {len(came.both)} of {counted(came.sampled, 'edit')} judged under both"
    )
    for heading in ("passes", a, b, "no to yes", "yes to no", "same", "kappa (95 %)"):
        table.add_column(heading, justify="left" if heading == "passes" else "right", overflow="fold")
    for name, counts in {"qualified": came.qualified(), **came.criteria()}.items():
        table.add_row(name.replace("_", " "), *_cells(counts))
    print_table(table)
    for name, cost, calls in zip(came.names, came.cost_usd, came.calls, strict=True):
        print(f"{name}: {counted(calls, 'call')}, {'cost unknown' if cost is None else f'${cost:z.4f}'}")
    for name, missing in came.unjudged.items():
        if missing:
            print(f"{name}: {counted(missing, 'edit')} without a report")
    print(f"flips with their pictures: {run / 'prompts.html'}")


def _cells(counts: PassCounts) -> tuple[str, ...]:
    agreement = counts.agreement
    same = "" if agreement.observed is None else f"{agreement.observed:z.2f}"
    kappa = agreement.reason if agreement.value is None else f"{agreement.value:z.2f}"
    if agreement.low is not None and agreement.high is not None:
        kappa = f"{kappa} ({agreement.low:z.2f} to {agreement.high:z.2f})"
    return str(counts.first), str(counts.second), str(counts.to_yes), str(counts.to_no), same, kappa


def _plan_lines(document: Mapping[str, object]) -> str:
    lines = [f"{counted(document['attempts'], 'edit')}, each judged twice"]
    rows, cost = document["calls_by"], document["cost_usd"]
    assert isinstance(rows, list)
    for row in rows:
        tokens = row.get("tokens_per_call")
        each = f", about {tokens['read']} tokens read and {tokens['written']} written each" if tokens else ""
        lines.append(f"{counted(row['calls'], row['step'] + ' call')} to {row['model']}{each}")
    if isinstance(cost, dict):
        lines.append(f"cost ${cost['low']:z.2f} to ${cost['high']:z.2f}, expected ${cost['expected']:z.2f}")
    else:
        unpriced = document["unpriced_models"]
        assert isinstance(unpriced, list)
        lines.append(f"cost unknown: no price for {', '.join(map(str, unpriced))}")
    remarks = document["remarks"]
    assert isinstance(remarks, list)
    return "\n".join([*lines, *map(str, remarks)])
