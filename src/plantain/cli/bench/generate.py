"""`plantain bench generate`: run editors over a benchmark, or import outputs made elsewhere."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, cast

import orjson
import typer
from rich.table import Table

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.arms import RULES, PromptVariant, parse_sweep
from plantain.bench.generate.generate import generate
from plantain.bench.generate.output_files import export_outputs, outputs_at
from plantain.bench.generate.requests import ArmRequest, parse_editors
from plantain.bench.generate.runfile import BenchRun
from plantain.cli.build import print_end
from plantain.cli.terminal.application import application
from plantain.cli.terminal.progress import BuildProgress
from plantain.cli.terminal.tables import print_table
from plantain.offline.workers import close_workers
from plantain.records import InputError, OutcomeKind
from plantain.records.counts import counted
from plantain.runs.settings.terms import load_terms

app = application()


class Restore(StrEnum):
    """Whether restored arms are made."""

    NONE, OUTSIDE = "none", "outside"


@app.command(
    epilog="Example: plantain bench generate medebench --run runs/bench --editor gemini/gemini-3.1-flash-image "
    "--seeds 3"
)
def generate_outputs(
    bench: Annotated[Path, typer.Argument(metavar="BENCH", help="A benchmark's folder.")],
    run: Annotated[Path, typer.Option("--run", metavar="DIR", help="The run's folder, made or resumed.")],
    editor: Annotated[
        list[str] | None,
        typer.Option("--editor", metavar="MODEL[=NAME]", help="provider/model; may be repeated."),
    ] = None,
    preset: Annotated[
        list[str] | None,
        typer.Option("--preset", help="An editor with its published grid and words; may be repeated."),
    ] = None,
    prompt: Annotated[
        PromptVariant, typer.Option(help="Which text editors receive.")
    ] = PromptVariant.ORIGINAL,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Outputs for each point of the sweep.")] = 1,
    sweep: Annotated[
        list[str] | None, typer.Option("--sweep", help="guidance=7.5,7.6; once for each parameter.")
    ] = None,
    shots: Annotated[
        str, typer.Option("--shots", help="Numbers of demonstrations, e.g. 0,1,2,3: a few-shot study.")
    ] = "",
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--outputs", metavar="PATH[=NAME]", help="Import {model}/{id}_{k}.png; may be repeated."
        ),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="TOML with [limits], [providers.NAME], [consent].")
    ] = None,
    score_output: Annotated[
        str, typer.Option("--score-output", help=f"Which output of several is scored: {' or '.join(RULES)}.")
    ] = "first",
    seed: Annotated[int, typer.Option(min=0, help="Of the run; every output's is derived from it.")] = 0,
    retry: Annotated[
        str,
        typer.Option("--retry", help="Request again outputs with these outcomes, e.g. refused,transport."),
    ] = "",
    restore: Annotated[
        Restore,
        typer.Option(
            help="outside: add an arm for each editor with the original put back outside the change."
        ),
    ] = Restore.NONE,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Most outputs to request from editors; baselines do not count."),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Write {model}/{id}_{k}.png there.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="Where heavy work runs: local, or ray. Replaces the settings' [engine]."
        ),
    ] = "",
    accept_model_change: Annotated[
        bool,
        typer.Option(
            "--accept-model-change", help="Continue when a provider serves another model than before."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run's arms as JSON.")] = False,
) -> int:
    """Make every arm's outputs for every sample; existing outputs are never made again.

    The baselines copy-input, resize-only, jpeg-75 and ground-truth are always included. Press Ctrl-C to finish what is
    in flight and stop; rerun the same command to resume.
    """
    benchmark = Benchmark.load(bench)
    editors, labels = parse_editors(editor or ())
    wanted = ArmRequest(
        editors=editors,
        labels=labels,
        presets=tuple(dict.fromkeys(preset or ())),
        prompt=prompt,
        seeds=seeds,
        sweep=parse_sweep(sweep or ()),
        shots=parse_shots(shots),
        outputs=outputs_at(outputs or (), [sample.id for sample in benchmark.samples]),
        rule=cast(Literal["first", "mean"], score_output),
        retry=parse_retry(retry),
        restore=restore is Restore.OUTSIDE,
    )
    if wanted.shots and not wanted.names:
        raise InputError("--shots: name the editors that are shown demonstrations with --editor")
    for imported in wanted.outputs:
        if imported.strangers:
            files = counted(len(imported.strangers), "file belongs", "files belong")
            print(
                f"plantain: warning: {imported.label}: {files} to no sample of this benchmark and were left out, "
                f"e.g. {imported.strangers[0]}",
                file=sys.stderr,
            )
    terms = load_terms(settings, wanted.models, engine=engine)
    with generate_progress(quiet=as_json) as progress:
        try:
            summary = asyncio.run(
                generate(
                    benchmark,
                    run,
                    wanted,
                    terms,
                    seed=seed,
                    limit=limit,
                    observer=progress,
                    accept_model_change=accept_model_change,
                )
            )
        finally:
            close_workers()
    with BenchRun.open(run) as made:
        if to is not None:
            export_outputs(made, to)
        rows = [arm_row(made, label) for label in made.arms]
        spent = made.reader.spent_usd()
    if as_json:
        document = {
            "arms": rows,
            "tasks": summary.planned,
            "closed": {state.value: n for state, n in sorted(summary.closed.items())},
            "calls": {"made": summary.made, "replayed": summary.replayed},
            "cost_usd": spent,
            "stopped": summary.stopped,
        }
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        _print_table(rows)
    options = "".join(f" --{name} …" for name, given in (("editor", editor), ("preset", preset)) if given)
    again = shlex.join(["plantain", "bench", "generate", str(bench), "--run", str(run)])
    return print_end(summary, f"{again}{options} (the same options)")


def parse_shots(text: str) -> tuple[int, ...]:
    """Read "0,1,2,3". Raises InputError for anything else."""
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    if not all(word.isdecimal() and len(word) < 3 for word in words):
        raise InputError(f"--shots: {text!r} is not like 0,1,2,3")
    return tuple(sorted({int(word) for word in words}))


def parse_retry(text: str) -> frozenset[OutcomeKind]:
    """Read "refused,transport". Raises InputError for other words."""
    allowed = [kind.value for kind in OutcomeKind if kind not in (OutcomeKind.OK, OutcomeKind.CANCELLED)]
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in allowed:
            raise InputError(f"--retry: {word!r}; choose from {', '.join(allowed)}")
    return frozenset(map(OutcomeKind, words))


def arm_row(bench: BenchRun, label: str) -> dict[str, object]:
    """Return an arm's counts: samples, outputs, images, and outputs without an image by outcome."""
    outputs = list(bench.outputs(label))
    lost = Counter(output.reason.partition(":")[0] for output in outputs if output.edited is None)
    arm = bench.arms[label]
    return {
        "arm": label,
        "model": arm.model,
        "kind": arm.kind.value,
        "samples": len(bench.covered(label)),
        "outputs": len(outputs),
        "images": sum(output.edited is not None for output in outputs),
        "without_image": dict(sorted(lost.items())),
        "rule": arm.rule,
    }


def _print_table(rows: list[dict[str, object]]) -> None:
    table = Table(title="outputs", title_justify="left")
    for heading in ("arm", "samples", "outputs", "images", "without an image"):
        table.add_column(heading, justify="left" if heading.startswith(("arm", "without")) else "right")
    table.columns[0].overflow = "fold"
    for row in rows:
        lost = cast(dict[str, int], row["without_image"])
        why = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in lost.items())
        table.add_row(str(row["arm"]), str(row["samples"]), str(row["outputs"]), str(row["images"]), why)
    print_table(table)


def generate_progress(*, quiet: bool) -> BuildProgress:
    """Return the live line of a build, worded for a bench run."""
    return BuildProgress(
        quiet=quiet,
        what="generate",
        success="complete",
        failed="lack an image",
        steps=lambda tasks, outputs: counted(outputs, "output") if outputs != tasks else "one output each",
    )
