"""`plantain bench attention`: attention of open editors, compared with the region of the change."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.attention_page import (
    CutOffs,
    failure_rows,
    grounding_rows,
    missing_maps,
    recorded_layers,
    table_lines,
    write_attention_page,
)
from plantain.bench.leaderboard.scores import read_scores
from plantain.bench.score.attention import MapOptions, measure_attention, recordable_arms
from plantain.cli.terminal.application import application
from plantain.cli.terminal.stages import StageProgress
from plantain.metrics.grounding import ALPHA
from plantain.models.diffusers.attention.watched import watched_editor
from plantain.models.diffusers.attention.watching import Choice, Watching
from plantain.models.diffusers.settings import Settings
from plantain.records import InputError
from plantain.runs.settings.terms import load_terms

app = application()
USUAL = CutOffs()


@app.command(
    epilog="Example: plantain bench attention runs/bench --editor diffusers/medebench-instruct-pix2pix"
)
def attention(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run of `plantain bench generate`.")],
    editor: Annotated[
        list[str] | None, typer.Option("--editor", help="An arm of the run. Default: every open editor's.")
    ] = None,
    bench: Annotated[
        Path | None, typer.Option("--bench", metavar="PATH", help="Where the benchmark is now.")
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", help="TOML with [providers.diffusers], [engine], as for generate."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="Where edits are repeated: local, or ray. Replaces the settings' [engine]."
        ),
    ] = "",
    parts: Annotated[str, typer.Option(help="Parts of the UNet whose layers count.")] = "down,mid,up",
    resolutions: Annotated[
        str, typer.Option(help="Heights of attention maps that count, e.g. 16,32. Default: all.")
    ] = "",
    tokens: Annotated[str, typer.Option(help="Tokens of a concept: last, or mean of all.")] = "last",
    block: Annotated[
        str,
        typer.Option(help="Of joint attention: positions of the output, or of the reference."),
    ] = "output",
    layers: Annotated[
        str, typer.Option(help="Numbers from 0, e.g. 3,9; all; or some: 4 of a transformer, all of a UNet.")
    ] = "some",
    steps: Annotated[str, typer.Option(help="Numbers from 0; all; or some, as for layers.")] = "some",
    heads: Annotated[str, typer.Option(help="Numbers from 0, or all.")] = "all",
    alpha: Annotated[float, typer.Option(help="Factor on Otsu's threshold.")] = ALPHA,
    judge: Annotated[str | None, typer.Option("--judge", help="Whose EA decides which edits failed.")] = None,
    low_ea: Annotated[float, typer.Option(help="Editing accuracy below this is low.")] = USUAL.ea,
    high_cp: Annotated[float, typer.Option(help="Context preservation from this on is high.")] = USUAL.cp,
    high_iou: Annotated[float, typer.Option(help="Overlap from this on is high.")] = USUAL.iou,
    gallery: Annotated[int, typer.Option(min=0, help="Samples to show of each editor.")] = 8,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Folder of the page. Default: the run.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print Table 4 as JSON.")] = False,
) -> int:
    """Repeat each edit, record its attention to the concept's words, and compare that with the region.

    Edits measured with the same options are skipped. Press Ctrl-C to stop; rerun the same command to resume.
    """
    with BenchRun.open(run) as opened:
        arms = recordable_arms(opened, list(dict.fromkeys(editor or ())))
        root = opened.find_benchmark(bench)
    benchmark = Benchmark.load(root)
    terms = load_terms(settings, tuple(arm.model for arm in arms), engine=engine)
    watching = Watching(
        _words(parts),
        _numbers("--resolutions", resolutions),
        tokens,
        block,
        _choice("--heads", heads),
        _choice("--layers", layers),
        _choice("--steps", steps),
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
            print(f"plantain: stopped ({summary.stopped}); rerun the same command to resume", file=sys.stderr)
            return 1 if summary.failed else 3
    cuts = CutOffs(low_ea, high_cp, high_iou)
    page = write_attention_page(run, benchmark, to, judge=judge, cuts=cuts, gallery=gallery)
    if as_json:
        print(page.with_suffix(".json").read_text(encoding="utf-8"), end="")
        return 0
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
        for line in table_lines(grounding_rows(scores), recorded_layers(opened, scores)):
            typer.echo(line)
        for arm_label, reason, count in missing_maps(scores):
            typer.echo(f"{arm_label}: {count} without a map: {reason}")
        for row in failure_rows(scores, judge, cuts):
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
