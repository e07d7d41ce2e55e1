"""`plantain bench score`: metrics and judges over a bench run's outputs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import METRICS, REQUIREMENTS, ScoreRequest, chosen, score_run
from plantain.bench.score.set_distances import stored_distances
from plantain.cli.terminal.options import (
    AsJson,
    BenchPath,
    BenchRunArgument,
    EngineKind,
    ModelChange,
    SettingsFile,
)
from plantain.cli.terminal.progress import StageProgress, print_end, run_to_end
from plantain.cli.terminal.tables import print_json
from plantain.journal import JournalReader
from plantain.journal.questions.benchmark import score_reasons
from plantain.metrics.networks import CLIP, find_networks
from plantain.models.hosted.prompts import PUBLISHED, prompts_folder
from plantain.records.messages import command_line, counted, next_line
from plantain.rubrics import MEDEBENCH, rubric_named
from plantain.runs.progress import RunSummary
from plantain.runs.terms import load_terms

NONE = "none"
OFFLINE = "offline/instruments"


def score(
    context: typer.Context,
    run: BenchRunArgument,
    bench: BenchPath = None,
    metrics: list[str] | None = typer.Option(
        None, help=f"Only these of {', '.join(METRICS)}; default: all that can be measured."
    ),
    judge: list[str] | None = typer.Option(None, help="provider/model, repeatable; 'none' for none."),
    variant: list[str] | None = typer.Option(None, help="P: judge by the prompt; D: by the description."),
    draws: int | None = typer.Option(None, help="Answers per output; default: 3, offline 1."),
    prompts: str = typer.Option("ours", metavar="NAME", help="ours, published, or a folder of templates."),
    rubric: str = typer.Option(MEDEBENCH.name, help="A name, or a file.toml."),
    retry: bool = typer.Option(False, "--retry", help="Ask judges again where they failed."),
    settings: SettingsFile = None,
    clip: str = typer.Option(CLIP, help="CLIP weights on this machine: name or folder."),
    inception: Path | None = typer.Option(None, help="TorchScript file of FID's Inception network."),
    inception_sha256: str | None = typer.Option(
        None, help="Its published hash; without it the metric is not called FID."
    ),
    encoder: Path | None = typer.Option(
        None, help="Folder of a vision encoder of transformers, e.g. Rad-DINO, for frechet_encoder."
    ),
    engine: EngineKind = "",
    accept_model_change: ModelChange = False,
    as_json: AsJson = False,
) -> int:
    """Compute the missing scores of stored outputs. Stored scores and answers are reused; nothing is generated.

    Press Ctrl-C to finish the calls in flight and stop; rerun the same command to resume.

    Example: plantain bench score runs/bench --judge offline/instruments --judge gemini/gemini-3.1-pro-preview --draws 3
    """
    named = [name for given in metrics for name in given.split(",") if name] if metrics else None
    wanted = chosen(named)
    with BenchRun.open(run) as recorded:
        root = recorded.find_benchmark(bench)
        described = any(facts.detailed for facts in recorded.samples.values())
    judged_by = rubric_named(rubric)
    folder = prompts_folder(prompts)
    usual = (["P", "D"] if prompts == PUBLISHED else ["D"]) if described else ["P"]
    names = tuple(
        JudgeName(model, way, draws, folder, judged_by)
        for model in dict.fromkeys(judge or [OFFLINE])
        if model != NONE
        for way in dict.fromkeys(variant or usual)
    )
    terms = load_terms(settings, tuple(name.model for name in names), engine=engine, run=run)
    networks = find_networks(
        wanted, clip=clip, inception=inception, inception_sha256=inception_sha256, encoder=encoder
    )
    request = ScoreRequest(named, names, networks, retry)
    benchmark = Benchmark.load(root)
    with StageProgress(quiet=as_json) as progress:
        summary = run_to_end(
            score_run(
                run,
                benchmark,
                request,
                terms=terms,
                observer=progress,
                accept_model_change=accept_model_change,
            )
        )
    _print_scores(run, root, summary, wanted, as_json=as_json)
    return print_end(context, summary)


def _print_scores(run: Path, bench: Path, summary: RunSummary, wanted: set[str], *, as_json: bool) -> None:
    """Print the scores that the run has now: of judges, and of the wanted metrics."""
    with JournalReader.open(run) as reader:
        rows = [row for row in score_reasons(reader) if "@" in row[0] or row[0] in wanted]
        distances = [one for one in stored_distances(reader) if one.metric.partition(":")[0] in wanted]
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
                {"metric": metric, "scored": scored, "unscored": sum(reasons.values()), "reasons": reasons}
                for metric, scored, reasons in scores
            ],
            "distances": [asdict(distance) for distance in distances],
            "not_measured": summary.notes,
            "stopped": summary.stopped,
        }
        print_json(document)
    else:
        alike: dict[tuple[str, int], list[str]] = {}
        for metric, scored, reasons in scores:
            print(f"{metric:<32} {scored:>6} scored {sum(reasons.values()):>6} unscored")
            for reason, n in [*reasons.items()][:3]:
                alike.setdefault((reason, n), []).append(metric)
        for (reason, n), of in alike.items():
            print(f"{', '.join(of)}: {n} unscored{' each' if len(of) > 1 else ''}: {reason}")
        if any(REQUIREMENTS["roi"] in reasons for _, _, reasons in scores):
            print(
                "to add regions: `plantain bench prepare RAW --to NEW` proposes them for pairs. Or ask readers: "
                f"{command_line('review', 'new', 'STUDY', '--from', bench, '--task', 'choose-roi')}, then "
                f"{command_line('bench', 'prepare', bench, '--study', 'STUDY')}. Then generate into a new run"
            )
        arms: dict[tuple[str, str], list[str]] = {}
        for one in distances:
            if one.value is None:
                arms.setdefault((one.metric, one.reason), []).append(one.arm)
            else:
                print(f"{one.metric} of {one.arm}: {one.value:.3g}, {one.line}")
        for (metric, reason), of in arms.items():
            print(f"{metric} of {', '.join(of)}: unscored: {reason}")
        stored = counted(summary.measured + summary.judged, "score")
        print(f"{stored} stored, {counted(summary.made, 'judge call')} made")
        if summary.stopped is None:
            print(next_line("bench", "table", run))
