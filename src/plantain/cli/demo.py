"""`plantain demo`: the whole build, offline, on real images, ending with a page to look at."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from plantain.cli.runs.build import build_watched, tell_end
from plantain.cli.terminal.application import application
from plantain.journal import JournalReader
from plantain.journal.telemetry import costs, status_summary
from plantain.pipeline.demo import demo_recipe, fill_demo_catalogue
from plantain.pipeline.run import peak_rss_mb, peak_worker_rss_mb
from plantain.report import write_report
from plantain.report.terminal import table_one

app = application()

NOTICE = """\
Real images, offline models: a template writer, a procedural editor and an instrument judge (an instrument, not an
expert). The chest radiograph is not healthy, the brain template is a population average, and some findings were
rendered by plantain so that there is something to remove. Research only; everything edited is synthetic."""


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="made or resumed")] = Path("demo-run"),
    limit: Annotated[int | None, typer.Option(min=1, help="close at most this many tasks")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable")] = False,
) -> int:
    """Builds a small dataset of judged edits offline. Kill it and type it again: it goes on.

    Example: plantain demo
    """
    begun = time.monotonic()
    if not as_json:
        print(NOTICE, file=sys.stderr)
    fill_demo_catalogue(folder / "catalogue")
    run = folder / "run"
    summary = build_watched(demo_recipe(folder), run, limit=limit, quiet=as_json)
    report = write_report(run)
    with JournalReader.open(run) as reader:
        status = status_summary(reader)
        steps = {cost.step: cost.mean_latency_s for cost in costs(reader)}
    if as_json:
        extra = {
            "report": str(report),
            "seconds": round(time.monotonic() - begun, 3),
            "peak_rss_mb": round(peak_rss_mb(), 1),
            "peak_rss_mb_worker": round(peak_worker_rss_mb(), 1),
            "seconds_per_call": steps,
        }
        print(orjson.dumps({**status, **extra}, option=orjson.OPT_INDENT_2).decode())
    else:
        Console().print(table_one(run))
        print(f"Look at it: {report}")
    return tell_end(summary, shlex.join(["plantain", "demo", str(folder)]))
