"""`plantain bench attention`: attention of open editors, compared with the region of the change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.attention_page import write_attention_page
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.tables import make_table
from plantain.bench.score.attention import measure_attention, recordable_arms
from plantain.cli.bench.table import print_grounding
from plantain.cli.terminal.options import AsJson, BenchPath, BenchRunArgument, ScoringJudge, SettingsFile
from plantain.cli.terminal.progress import StageProgress, print_end
from plantain.models.diffusers.attention.watched import watched_editor
from plantain.models.diffusers.provider import Settings
from plantain.records import InputError
from plantain.records.messages import next_line
from plantain.runs.terms import load_terms


def attention(
    context: typer.Context,
    run: BenchRunArgument,
    editor: list[str] | None = typer.Option(None, help="An arm of the run. Default: every open editor's."),
    bench: BenchPath = None,
    settings: SettingsFile = None,
    judge: ScoringJudge = None,
    to: Path | None = typer.Option(None, metavar="DIR", help="Folder of the page. Default: the run."),
    as_json: AsJson = False,
) -> int:
    """Repeat each edit, record its attention to the concept's words, and compare that with the region.

    Measured edits are skipped. Press Ctrl-C to stop; rerun the same command to resume.

    Example: plantain bench attention runs/bench --editor diffusers/medebench-instruct-pix2pix
    """
    with BenchRun.open(run) as opened:
        arms = recordable_arms(opened, list(dict.fromkeys(editor or ())))
        root = opened.find_benchmark(bench)
    benchmark = Benchmark.load(root)
    terms = load_terms(settings, tuple(arm.model for arm in arms), engine="local", run=run)
    for arm in arms:
        own = terms.options(arm.model, "editor")
        if not isinstance(own, Settings):
            raise InputError(f"--editor {arm.model}: attention can be read only from a diffusers model")
        recorder = watched_editor(own, arm.model, arm.fingerprint)
        try:
            with StageProgress(quiet=as_json) as progress:
                summary = asyncio.run(
                    measure_attention(run, benchmark, arm.label, recorder, terms=terms, observer=progress)
                )
        finally:
            recorder.close()
        if summary.stopped is not None:
            return print_end(context, summary)
    page = write_attention_page(run, benchmark, to, judge=judge)
    if as_json:
        print(page.with_suffix(".json").read_text(encoding="utf-8"), end="")
        return 0
    with BenchRun.open(run) as opened:
        print_grounding(make_table(read_scores(opened), judge))
    typer.echo(f"attention: {page}")
    print(next_line("bench", "table", run))
    return 0
