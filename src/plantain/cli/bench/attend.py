"""`plantain bench attend`: where open editors looked, against the region where the change belongs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.arms import Arm
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.failure_types import CutOffs
from plantain.bench.leaderboard.grounding_page import (
    grounding_rows,
    recorded_kinds,
    table_lines,
    write_grounding,
)
from plantain.bench.leaderboard.table_rows import read_scores
from plantain.bench.score.attending import Measuring, attend, attended_arms
from plantain.cli.terminal.application import application
from plantain.cli.terminal.stages import StageProgress
from plantain.journal import JsonValue
from plantain.metrics.grounding import ALPHA
from plantain.models.diffusers.attention.watched import watched_editor
from plantain.models.diffusers.attention.watching import Choice, Watching
from plantain.models.diffusers.settings import Settings
from plantain.records import InputError
from plantain.runs.settings.terms import Terms, load_terms
from plantain.runs.summary import RunSummary

app = application()
USUAL = CutOffs()


@app.command()
def attend_outputs(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="a run of plantain bench generate")],
    editor: Annotated[
        list[str] | None, typer.Option("--editor", help="an arm of the run; default: every open editor's")
    ] = None,
    bench: Annotated[
        Path | None, typer.Option("--bench", metavar="PATH", help="where the benchmark is now")
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", help="TOML with [providers.diffusers], [engine], as for generate"),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="where edits are repeated: local, or ray; instead of the settings' [engine]"
        ),
    ] = "",
    parts: Annotated[str, typer.Option(help="parts of the UNet whose layers count")] = "down,mid,up",
    resolutions: Annotated[
        str, typer.Option(help="heights of attention maps that count, e.g. 16,32; all if empty")
    ] = "",
    tokens: Annotated[str, typer.Option(help="of a concept: last, or mean of all")] = "last",
    block: Annotated[
        str,
        typer.Option(
            help="of joint attention: what places of the output, or of the reference, take from words"
        ),
    ] = "output",
    layers: Annotated[
        str, typer.Option(help="by number from 0, e.g. 3,9; all; some: 4 of a transformer, all of a UNet")
    ] = "some",
    steps: Annotated[str, typer.Option(help="by number from 0; all; some, as for layers")] = "some",
    heads: Annotated[str, typer.Option(help="by number from 0, or all")] = "all",
    alpha: Annotated[float, typer.Option(help="factor on Otsu's threshold")] = ALPHA,
    size: Annotated[str, typer.Option(help="measured at the size of the image, or of the latent")] = "image",
    every_output: Annotated[
        bool, typer.Option("--every-output", help="not only the outputs that are scored")
    ] = False,
    judge: Annotated[str | None, typer.Option("--judge", help="whose EA tells failed edits")] = None,
    low_ea: Annotated[float, typer.Option(help="editing accuracy below this is low")] = USUAL.ea,
    high_cp: Annotated[float, typer.Option(help="context preservation from this on is high")] = USUAL.cp,
    high_iou: Annotated[float, typer.Option(help="overlap from this on is high")] = USUAL.iou,
    gallery: Annotated[int, typer.Option(min=0, help="samples to show of each editor")] = 8,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="for the page; default: the run")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Table 4 as JSON")] = False,
) -> int:
    """Does each edit once more, watched, and measures the attention of its concept's words against the region.

    What was measured with the same options is not measured again. Ctrl-C keeps what is done; the same command goes on.

    Example: plantain bench attend runs/bench --editor diffusers/medebench-instruct-pix2pix
    """
    with BenchRun.open(run) as opened:
        arms = attended_arms(opened, tuple(dict.fromkeys(editor or ())))
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
    document: dict[str, JsonValue] = {**watching.as_json()}
    measuring = Measuring(alpha, size, "all" if every_output else "scored", document)
    measuring.check()
    for arm in arms:
        summary = _watch(run, benchmark, arm, terms, measuring, watching, quiet=as_json)
        if summary.stopped is not None:
            print(f"plantain: stopped ({summary.stopped}); type the same command to go on", file=sys.stderr)
            return 1 if summary.failed else 3
    cuts = CutOffs(low_ea, high_cp, high_iou)
    page = write_grounding(run, benchmark, to, judge=judge, cuts=cuts, gallery=gallery)
    if as_json:
        print(page.with_suffix(".json").read_text(encoding="utf-8"), end="")
        return 0
    with BenchRun.open(run) as opened:
        scores = read_scores(opened)
        for line in table_lines(grounding_rows(scores), recorded_kinds(opened, scores)):
            typer.echo(line)
    typer.echo(f"attention: {page}")
    return 0


def _watch(
    run: Path,
    benchmark: Benchmark,
    arm: Arm,
    terms: Terms,
    measuring: Measuring,
    watching: Watching,
    *,
    quiet: bool,
) -> RunSummary:
    attender = watched_editor(terms.provider_as(arm.model, Settings), arm.model, arm.fingerprint, watching)
    try:
        with StageProgress(quiet=quiet) as progress:
            return asyncio.run(
                attend(run, benchmark, arm.label, attender, measuring, terms=terms, observer=progress)
            )
    finally:
        attender.close()


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _choice(option: str, text: str) -> Choice:
    if text in ("some", "all"):
        return "some" if text == "some" else "all"
    return _numbers(option, text)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in _words(text))
    except ValueError:
        raise InputError(f"{option} {text!r}: numbers with commas between, like 16,32") from None
