"""`plantain bench score`: metrics and judges over a bench run's outputs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.bench.score.suite import METRICS, chosen
from plantain.cli.terminal.application import application
from plantain.cli.terminal.stages import StageProgress
from plantain.journal import JournalReader
from plantain.journal.questions.benchmark import score_reasons
from plantain.metrics.networks.available import CLIP, find_networks
from plantain.offline.workers import close_workers
from plantain.records.counts import counted
from plantain.rubrics import MEDEBENCH, rubric_named
from plantain.runs.settings.terms import load_terms
from plantain.runs.summary import RunSummary

app = application()
NONE = "none"
OFFLINE = "offline/instruments"


@app.command()
def score(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="a run of `plantain bench generate`")],
    bench: Annotated[
        Path | None, typer.Option("--bench", help="the benchmark; default: where the run says it was")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics", help=f"only these of {', '.join(METRICS)}; default: all that can be measured"
        ),
    ] = None,
    judge: Annotated[
        list[str] | None,
        typer.Option("--judge", help=f"provider/model; several times for several judges; {NONE!r} for none"),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option("--variant", help="P: judged by the prompt; D: by the description of the change"),
    ] = None,
    without_truth: Annotated[
        bool, typer.Option("--without-truth", help="judges do not see the real image after")
    ] = False,
    draws: Annotated[
        int | None, typer.Option(help="answers of a judge on each output; default: 3, of instruments 1")
    ] = None,
    prompts: Annotated[
        str,
        typer.Option(
            "--prompts",
            metavar="NAME",
            help="Wording of the question: ours, published (MedEBench's protocol), or a folder with scale.md.j2.",
        ),
    ] = "ours",
    rubric: Annotated[
        str,
        typer.Option(
            "--rubric", help="by what they judge: medebench, med-banana, a package's, or a file.toml of yours"
        ),
    ] = MEDEBENCH.name,
    every_output: Annotated[
        bool, typer.Option("--every-output", help="judge all outputs of a grid, not only those that count")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="ask judges again where they failed")] = False,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="[limits], [providers.NAME] and [consent], in TOML")
    ] = None,
    clip: Annotated[str, typer.Option(help="weights of CLIP on this machine: their name or folder")] = CLIP,
    inception: Annotated[
        Path | None, typer.Option(help="TorchScript file of FID's Inception network")
    ] = None,
    inception_sha256: Annotated[
        str | None, typer.Option("--inception-sha256", help="its published hash; makes FID be called FID")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="where heavy work runs: local, or ray; instead of the settings' [engine]"
        ),
    ] = "",
    accept_model_change: Annotated[
        bool,
        typer.Option("--accept-model-change", help="go on when a provider serves another model than before"),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print what the run has as JSON")] = False,
) -> int:
    """Scores what the stored outputs lack; nothing is generated again, and no answer is asked for twice.

    Ctrl-C finishes what is in flight and stops; type the same command to go on.

    Example: plantain bench score runs/bench --judge offline/instruments --judge gemini/gemini-3.1-pro-preview --draws 3
    """
    from plantain.models.hosted.prompts.library import PUBLISHED, prompts_folder

    named = [name for given in metrics for name in given.split(",") if name] if metrics else None
    wanted = chosen(named)
    with BenchRun.open(run) as recorded:
        root = recorded.find_benchmark(bench)
        described = any(facts.detailed for facts in recorded.samples.values())
    judged_by = rubric_named(rubric)
    folder = prompts_folder(prompts)
    usual = (["P", "D"] if prompts == PUBLISHED else ["D"]) if described else ["P"]
    names = tuple(
        JudgeName(model, way, not without_truth, draws, folder, judged_by)
        for model in _judges(judge)
        for way in dict.fromkeys(variant or usual)
    )
    terms = load_terms(settings, tuple(name.model for name in names), engine=engine, run=run)
    networks = find_networks(wanted, clip=clip, inception=inception, inception_sha256=inception_sha256)
    wish = ScoreRequest(named, names, networks, retry, every_output)
    benchmark = Benchmark.load(root)
    with StageProgress(quiet=as_json) as progress:
        try:
            summary = asyncio.run(
                score_run(
                    run,
                    benchmark,
                    wish,
                    terms=terms,
                    observer=progress,
                    accept_model_change=accept_model_change,
                )
            )
        finally:
            close_workers()
    return _print_end(run, summary, as_json=as_json)


def _judges(given: list[str] | None) -> list[str]:
    """Return the named judges, each once; without any, the instruments."""
    return [name for name in dict.fromkeys(given or [OFFLINE]) if name != NONE]


def _print_end(run: Path, summary: RunSummary, *, as_json: bool) -> int:
    """Print the scores that the run has now and how the process ended; return the exit code."""
    with JournalReader.open(run) as reader:
        rows = score_reasons(reader)
    scores = []
    for metric in dict.fromkeys(row[0] for row in rows):
        reasons = {reason: n for name, missing, reason, n in rows if name == metric and missing}
        scored = sum(n for name, missing, _, n in rows if name == metric and not missing)
        scores.append((metric, scored, reasons))
    if as_json:
        document = {
            "stored": {"metrics": summary.measured, "judges": summary.judged, "sets": summary.sets},
            "calls": {"made": summary.made, "replayed": summary.replayed},
            "scores": [
                {
                    "metric": metric,
                    "scored": scored,
                    "unscored": sum(reasons.values()),
                    "reasons": reasons,
                }
                for metric, scored, reasons in scores
            ],
            "not_measured": summary.notes,
            "stopped": summary.stopped,
        }
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        for metric, scored, reasons in scores:
            print(f"{metric:<32} {scored:>6} scored {sum(reasons.values()):>6} unscored")
            if reasons:
                print("  " + "; ".join(f"{n} x {reason}" for reason, n in list(reasons.items())[:3]))
        stored = counted(summary.measured + summary.judged, "score")
        print(f"{stored} stored, {counted(summary.made, 'judge call')} made")
    if summary.stopped is None:
        return 0
    if summary.left:
        print(f"plantain: {summary.left}", file=sys.stderr)
    print(f"plantain: stopped ({summary.stopped}); type the same command to go on", file=sys.stderr)
    return 1 if summary.failed else 3
