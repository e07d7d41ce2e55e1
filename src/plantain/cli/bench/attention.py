"""`plantain bench attention`: attention of open editors, compared with the region of the change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.attention_page import (
    CutOffs,
    failure_rows,
    grounding_rows,
    missing_maps,
    recorded_layers,
    write_attention_page,
)
from plantain.bench.leaderboard.scores import read_scores
from plantain.bench.score.attention import MapOptions, measure_attention, recordable_arms
from plantain.cli.bench.paper import grounding_table
from plantain.cli.terminal.ending import print_end
from plantain.cli.terminal.options import (
    AsJson,
    BenchPath,
    BenchRunArgument,
    EngineKind,
    Gallery,
    ScoringJudge,
    SettingsFile,
)
from plantain.cli.terminal.progress import StageProgress
from plantain.cli.terminal.tables import print_table
from plantain.metrics.grounding import ALPHA
from plantain.models.diffusers.attention.watched import watched_editor
from plantain.models.diffusers.attention.watching import Choice, Watching
from plantain.models.diffusers.settings import Settings
from plantain.records import InputError
from plantain.runs.settings.terms import load_terms


def attention(
    context: typer.Context,
    run: BenchRunArgument,
    editor: list[str] | None = typer.Option(None, help="An arm of the run. Default: every open editor's."),
    bench: BenchPath = None,
    settings: SettingsFile = None,
    engine: EngineKind = "",
    parts: str = typer.Option("down,mid,up", help="Parts of the UNet whose layers count."),
    block: str = typer.Option("output", help="Positions in joint attention: output or reference."),
    layers: str = typer.Option("some", help="Numbers from 0, e.g. 3,9; all; or some (4 of a transformer)."),
    steps: str = typer.Option("some", help="Numbers from 0; all; or some, as for layers."),
    heads: str = typer.Option("all", help="Numbers from 0, or all."),
    alpha: float = typer.Option(ALPHA, help="Factor on Otsu's threshold."),
    judge: ScoringJudge = None,
    gallery: Gallery = 8,
    to: Path | None = typer.Option(None, metavar="DIR", help="Folder of the page. Default: the run."),
    as_json: AsJson = False,
) -> int:
    """Repeat each edit, record its attention to the concept's words, and compare that with the region.

    Edits measured with the same options are skipped. Press Ctrl-C to stop; rerun the same command to resume.

    Example: plantain bench attention runs/bench --editor diffusers/medebench-instruct-pix2pix
    """
    with BenchRun.open(run) as opened:
        arms = recordable_arms(opened, list(dict.fromkeys(editor or ())))
        root = opened.find_benchmark(bench)
    benchmark = Benchmark.load(root)
    terms = load_terms(settings, tuple(arm.model for arm in arms), engine=engine, run=run)
    watching = Watching(
        _words(parts),
        block=block,
        heads=_choice("--heads", heads),
        layers=_choice("--layers", layers),
        steps=_choice("--steps", steps),
    )
    watching.check()
    options = MapOptions(alpha, watching.as_json())
    for arm in arms:
        own = terms.options(arm.model, "editor")
        if not isinstance(own, Settings):
            raise InputError(f"--models {arm.model}: attention can be read only from a diffusers model")
        recorder = watched_editor(own, arm.model, arm.fingerprint, watching)
        try:
            with StageProgress(quiet=as_json) as progress:
                summary = asyncio.run(
                    measure_attention(
                        run, benchmark, arm.label, recorder, options, terms=terms, observer=progress
                    )
                )
        finally:
            recorder.close()
        if summary.stopped is not None:
            return print_end(context, summary)
    page = write_attention_page(run, benchmark, to, judge=judge, gallery=gallery)
    if as_json:
        print(page.with_suffix(".json").read_text(encoding="utf-8"), end="")
        return 0
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
        print_table(grounding_table(grounding_rows(scores)))
        for arm_label, recorded in recorded_layers(opened, scores).items():
            if recorded:
                typer.echo(f"{arm_label}: {'; '.join(recorded)}")
        for arm_label, reason, count in missing_maps(scores):
            typer.echo(f"{arm_label}: {count} without a map: {reason}")
        for row in failure_rows(scores, judge, CutOffs()):
            typer.echo(row.split_line)
    typer.echo(f"attention: {page}")
    return 0


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _choice(option: str, text: str) -> Choice:
    if text == "some":
        return "some"
    return "all" if text == "all" else _numbers(option, text)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in _words(text))
    except ValueError:
        raise InputError(f"{option} {text!r}: give numbers separated by commas, e.g. 16,32") from None
