"""`plantain bench generate`: run editors over a benchmark, or import outputs made elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import cast

import typer
from rich.table import Table

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.editors import FUNCTION, function_in_file
from plantain.bench.generate.generate import ANOTHER_RATIO, generate
from plantain.bench.generate.output_files import export_outputs, outputs_at
from plantain.bench.generate.requests import ArmRequest, parse_sweep
from plantain.bench.generate.runfile import BenchRun, PromptVariant
from plantain.cli.terminal.options import (
    AsJson,
    BenchArgument,
    EngineKind,
    ModelChange,
    Seed,
    SettingsFile,
    chosen_words,
)
from plantain.cli.terminal.progress import BuildProgress, print_end, run_to_end
from plantain.cli.terminal.tables import folded, print_json, print_table, right
from plantain.pages.wording import plain
from plantain.records import InputError, OutcomeKind
from plantain.records.messages import counted, next_line
from plantain.runs.terms import load_terms


def generate_outputs(
    context: typer.Context,
    bench: BenchArgument,
    run: Path = typer.Option(..., metavar="DIR", help="The run's folder, made or resumed."),
    editor: list[str] | None = typer.Option(
        None, metavar="MODEL", help="provider/model, or my_file.py:my_function[=NAME]; repeatable."
    ),
    preset: list[str] | None = typer.Option(None, help="A preset with its grid and prompt; repeatable."),
    prompt: PromptVariant = typer.Option(PromptVariant.ORIGINAL, help="Which text editors receive."),
    seeds: int = typer.Option(1, min=1, max=1000, help="Outputs for each point of the sweep."),
    sweep: list[str] | None = typer.Option(None, help="guidance=7.5,7.6; once for each parameter."),
    shots: str = typer.Option("", help="Numbers of demonstrations, e.g. 0,1,2,3: a few-shot study."),
    task: list[str] | None = typer.Option(None, help="With --shots; repeatable. Default: Table 7's six."),
    outputs: list[str] | None = typer.Option(
        None, metavar="PATH[=NAME]", help="Import {model}/{id}_{k}.png; repeatable."
    ),
    settings: SettingsFile = None,
    seed: Seed = 0,
    retry: str = typer.Option("", help="Request again outputs with these outcomes, e.g. refused,transport."),
    limit: int | None = typer.Option(None, min=1, help="Request at most N outputs, baselines excluded."),
    to: Path | None = typer.Option(None, metavar="DIR", help="Write {model}/{id}_{k}.png there."),
    engine: EngineKind = "",
    accept_model_change: ModelChange = False,
    as_json: AsJson = False,
) -> int:
    """Make every arm's outputs for every sample; existing outputs are never made again.

    The baselines copy-input, resize-only, jpeg-75 and ground-truth are always included. Press Ctrl-C to finish the
    calls in flight and stop; rerun the same command to resume.

    Example: plantain bench generate medebench --run runs/bench --editor gemini/gemini-3.1-flash-image --seeds 3
    """
    benchmark = Benchmark.load(bench)
    editors = tuple(dict.fromkeys(editor or ()))
    functions = [function_in_file(name) for name in editors if FUNCTION.fullmatch(name)]
    if double := [name for name, n in Counter(made.name for made in functions).items() if n > 1]:
        raise InputError(
            f"--editor: two functions are called {double[0]}; name one with FILE.py:FUNCTION=NAME"
        )
    wanted = ArmRequest(
        editors=tuple(name for name in editors if not FUNCTION.fullmatch(name)),
        own={made.name: made for made in functions},
        presets=tuple(dict.fromkeys(preset or ())),
        prompt=prompt,
        seeds=seeds,
        sweep=parse_sweep(sweep or ()),
        shots=parse_shots(shots),
        tasks=tuple(dict.fromkeys(task or ())),
        outputs=outputs_at(outputs or (), [sample.id for sample in benchmark.samples]),
        retry=parse_retry(retry),
    )
    if task and not wanted.shots:
        raise InputError("--task: names the tasks of a few-shot study; give --shots as well")
    if wanted.shots and not wanted.models:
        raise InputError("--shots: name the editors with --editor")
    for imported in wanted.outputs:
        if imported.strangers:
            n, of = len(imported.strangers), "to no sample of this benchmark"
            files = counted(n, f"file belongs {of} and was", f"files belong {of} and were")
            print(
                f"plantain: warning: {imported.label}: {files} left out, e.g. {imported.strangers[0]}",
                file=sys.stderr,
            )
    terms = load_terms(settings, wanted.models, engine=engine, run=run)
    with BuildProgress(quiet=as_json, what="generate") as progress:
        summary = run_to_end(
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
        print_json(document)
    else:
        _print_table(rows)
        if any(ANOTHER_RATIO in reason for row in rows for reason in cast(dict[str, int], row["reasons"])):
            print(
                f"the models must edit the images in {benchmark.samples[0].previous.parent}, not the raw ones"
            )
        if summary.stopped is None:
            print(next_line("bench", "score", run))
    return print_end(context, summary)


REASONS = 3
"""Most reasons printed for an arm."""


def parse_shots(text: str) -> tuple[int, ...]:
    """Parse numbers of demonstrations, e.g. "0,1,2,3". Raise InputError for any other text."""
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    if not all(word.isdecimal() and len(word) < 3 for word in words):
        raise InputError(f"--shots: {text!r} is not like 0,1,2,3")
    return tuple(sorted({int(word) for word in words}))


def parse_retry(text: str) -> frozenset[OutcomeKind]:
    """Parse names of outcomes, e.g. "refused,transport". Raise InputError for unknown ones."""
    allowed = [kind for kind in OutcomeKind if kind not in (OutcomeKind.OK, OutcomeKind.CANCELLED)]
    return frozenset(map(OutcomeKind, chosen_words("--retry", text.split(","), allowed)))


def arm_row(bench: BenchRun, label: str) -> dict[str, object]:
    """Count an arm's samples, outputs, images, and outputs without an image by outcome and by reason."""
    outputs = list(bench.outputs(label))
    reasons = Counter(output.reason for output in outputs if output.edited is None)
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
        "reasons": dict(sorted(reasons.items())),
    }


def _print_table(rows: list[dict[str, object]]) -> None:
    numbers = right("samples", "outputs", "images")
    table = Table(*folded("arm"), *numbers, "without an image", title="outputs")
    for row in rows:
        lost = cast(dict[str, int], row["without_image"])
        why = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in lost.items())
        table.add_row(str(row["arm"]), str(row["samples"]), str(row["outputs"]), str(row["images"]), why)
    print_table(table)
    for row in rows:
        reasons = cast(dict[str, int], row["reasons"])
        for reason, n in [*reasons.items()][:REASONS]:
            print(f"{row['arm']}: {n} without an image: {plain(reason)}")
        if len(reasons) > REASONS:
            print(f"{row['arm']}: and {len(reasons) - REASONS} more reasons (--json names them)")
