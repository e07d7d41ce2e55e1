"""`plantain train finetune`: an open editor on n samples of each task, measured on samples that no n ever saw."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.held_out import write_held_out
from plantain.cli.terminal.application import application
from plantain.cli.terminal.ctrl_c import stopping_on_ctrl_c
from plantain.cli.train.bar import TrainingBar
from plantain.cli.train.measuring import MeasuredModel, measure_trained
from plantain.models.extras import require_extra
from plantain.records import InputError
from plantain.records.counts import counted
from plantain.runs.settings.terms import Terms, load_terms
from plantain.train.examples.benchmark_pairs import BenchmarkPairs
from plantain.train.examples.originals import StoredOriginals
from plantain.train.examples.pairs import PairSource
from plantain.train.examples.release_pairs import TABLES, ReleasePairs
from plantain.train.split import PER_TASK, SIZES, TASKS, TaskSplit
from plantain.train.study_cost import SHARE, StudyCost, study_cost
from plantain.train.study_plan import (
    CHECKPOINT_GB,
    DROPOUT,
    STEPS_PER_SAMPLE,
    StudyCell,
    StudyObserver,
    StudyPlan,
    cells_of,
    splits_of,
)

if TYPE_CHECKING:
    from plantain.train.base import TrainingBase

app = application()
STOPPED = 3


@app.command()
def finetune(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="a benchmark, or a release with its parquet tables")
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="diffusers/…: InstructPix2Pix; with --lora also Kontext, klein, Qwen-Image-Edit",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="a new folder, or one to go on with")],
    originals: Annotated[
        Path | None,
        typer.Option(help="run or catalogue with the originals of a release; default: those that it carries"),
    ] = None,
    sizes: Annotated[str, typer.Option(help="samples of each task that are learned from")] = ",".join(
        map(str, SIZES)
    ),
    seeds: Annotated[int, typer.Option(help="trainings for each task and size")] = 3,
    tasks: Annotated[int, typer.Option(help="tasks, those with most samples")] = TASKS,
    task: Annotated[list[str] | None, typer.Option("--task", help="a task by name; may be repeated")] = None,
    per_task: Annotated[int, typer.Option(help="samples of a task that are used at all")] = PER_TASK,
    steps_per_sample: Annotated[int, typer.Option(help="training steps for each sample")] = STEPS_PER_SAMPLE,
    lora: Annotated[
        int | None, typer.Option("--lora", metavar="RANK", help="train adapters, not the whole UNet")
    ] = None,
    side: Annotated[
        int, typer.Option(help="longer side of the canvas, in pixels; the trained editor works at the same")
    ] = 512,
    learning_rate: Annotated[float | None, typer.Option(help="default: 5e-5, of adapters 1e-4")] = None,
    batch: Annotated[int, typer.Option(help="samples per step")] = 1,
    dropout: Annotated[
        float, typer.Option(help="share of steps without text, without image, without both")
    ] = DROPOUT,
    seed: Annotated[int, typer.Option(min=0, help="of the split and of all that follows")] = 0,
    checkpoint_every: Annotated[int, typer.Option(help="steps between checkpoints")] = 100,
    weighting: Annotated[
        str,
        typer.Option(
            help="of shares of noise, for Kontext, klein, Qwen: none, logit_normal, sigma_sqrt, cosmap"
        ),
    ] = "none",
    gradient_checkpointing: Annotated[
        bool, typer.Option("--gradient-checkpointing", help="less memory, more time, the same weights")
    ] = False,
    bf16: Annotated[
        bool,
        typer.Option("--bf16", help="InstructPix2Pix computes in bfloat16; its weights learn in float32"),
    ] = False,
    rates: Annotated[
        str, typer.Option(help="how the learning rate goes on after the warm-up: constant, linear, cosine")
    ] = "constant",
    warmup: Annotated[int, typer.Option(help="steps in which the learning rate rises from 0")] = 0,
    ema: Annotated[
        float,
        typer.Option(help="decay of a running average of the weights, which is what is kept; 0 for none"),
    ] = 0.0,
    checkpoint_gb: Annotated[
        float, typer.Option(help="all checkpoints together write at most so many gigabytes")
    ] = CHECKPOINT_GB,
    judge: Annotated[
        str, typer.Option(help="who scores the held-out edits; none for metrics only")
    ] = "offline/instruments",
    settings: Annotated[
        Path | None, typer.Option(help="TOML with [limits], [providers.NAME], [consent]")
    ] = None,
    plan_only: Annotated[bool, typer.Option("--plan", help="say what would be trained, and stop")] = False,
    measure: Annotated[
        bool, typer.Option(help="measure on the held-out samples, when all is trained")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="what was trained and measured, as JSON")] = False,
) -> int:
    """Trains one model for each task, size and seed, then measures all on the same held-out samples (Table 7a).

    Fresh from the base each time, nested training sets, sources kept whole, no flips. Ctrl-C keeps what is trained; the
    same command goes on.

    Example: plantain train finetune medebench --model diffusers/timbrooks/instruct-pix2pix --out runs/ft --lora 8
    """
    plan = StudyPlan(
        sizes=_numbers(sizes),
        seeds=seeds,
        tasks=tasks,
        named=tuple(dict.fromkeys(task or ())),
        per_task=per_task,
        steps_per_sample=steps_per_sample,
        side=side,
        lora_rank=lora,
        learning_rate=learning_rate,
        batch=batch,
        dropout=dropout,
        seed=seed,
        checkpoint_every=checkpoint_every,
        weighting=weighting,
        gradient_checkpointing=gradient_checkpointing,
        bf16=bf16,
        rates=rates,
        warmup=warmup,
        ema=ema,
        checkpoint_gb=checkpoint_gb,
    )
    plan.check()
    terms = load_terms(settings, (model,))
    pairs, benchmark = open_source(source, originals)
    splits = splits_of(plan, pairs.listed())
    cells = list(cells_of(plan, splits))
    if plan_only:
        cost = study_cost(plan, cells, _base_folder(model, terms))
        _print_plan(plan, splits, cost, as_json=as_json)
        return 0
    require_extra("plantain train finetune", "torch", "torch", "diffusers")
    from plantain.train.base import open_base
    from plantain.train.study import train_study

    base = open_base(model, terms.provider(model).options(), adapters=lora is not None)
    with TrainingBar(quiet=as_json) as bar, stopping_on_ctrl_c(bar.say) as stop:
        done = train_study(pairs, base, plan, out / "models", observer=_Watch(bar, len(cells)), stop=stop)
    if not done:
        typer.echo("plantain: stopped (interrupted); type the same command to go on", err=True)
        return STOPPED
    if not measure:
        _print_end(out, plan, None, as_json=as_json)
        return 0
    held_out = _held_out(benchmark, pairs, splits, out)
    trained = MeasuredModel(
        held_out, plan.seeds, tuple(sorted(set(plan.sizes))), _folders(out, cells), base.folder
    )
    title = f"{model}, fine-tuned on {pairs.name}"
    code, page = asyncio.run(
        measure_trained(trained, out / "evaluation", title, _local(terms, base), judge, quiet=as_json)
    )
    if page is not None:
        _print_end(out, plan, page, as_json=as_json)
    return code


def open_source(source: Path, originals: Path | None) -> tuple[PairSource, Benchmark | None]:
    """Pairs of a benchmark or a release, and the benchmark where it is one. Raises InputError."""
    if (source / TABLES).is_dir():
        return ReleasePairs(source, StoredOriginals(originals or source)), None
    benchmark = Benchmark.load(source)
    return BenchmarkPairs(benchmark), benchmark


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        raise InputError(f"--sizes {text!r}: numbers with commas between, like 0,4,8,16") from None


def _held_out(
    benchmark: Benchmark | None, pairs: PairSource, splits: Sequence[TaskSplit], out: Path
) -> Benchmark:
    ids = [sample for split in splits for sample in split.held_out]
    if benchmark is not None:
        return benchmark.subset(ids)
    identity = hashlib.sha256(orjson.dumps([pairs.name, pairs.digest, sorted(ids)])).hexdigest()
    return write_held_out(pairs.read(ids), out / "held-out", pairs.name, identity)


def _folders(out: Path, cells: Sequence[StudyCell]) -> dict[tuple[str, int, int], Path]:
    return {(cell.task, cell.size, cell.seed): out / "models" / cell.place for cell in cells}


def _local(terms: Terms, base: TrainingBase) -> Terms:
    """The terms, with the base's licence accepted for what was trained from it, as the user accepted the base's."""
    return replace(terms, models=(f"diffusers/{base.folder}",))


class _Watch(StudyObserver):
    def __init__(self, bar: TrainingBar, models: int) -> None:
        self._bar, self._models, self._begun = bar, models, 0

    def begin(self, cell: StudyCell, steps: int) -> None:
        self._bar.begin(f"{cell.task}, n = {cell.size}, seed {cell.seed}", steps)

    def step(self, cell: StudyCell, step: int, loss: float) -> None:
        self._bar.step(step, loss)

    def finished(self, cell: StudyCell, before: float, after: float) -> None:
        self._bar.say(
            f"{cell.task}, n = {cell.size}, seed {cell.seed}: loss on its own samples {before:.3f} -> {after:.3f}"
        )


def _base_folder(model: str, terms: Terms) -> Path:
    """Where the base's weights lie; a folder that is not there when nobody knows yet."""
    from plantain.models.diffusers.plan import plan_editor

    try:
        return plan_editor(model, terms.provider(model).options()).weights.folder
    except InputError:
        return Path("not-here")


def _print_plan(plan: StudyPlan, splits: Sequence[TaskSplit], cost: StudyCost, *, as_json: bool) -> None:
    if as_json:
        rows = [{"task": s.task, "held_out": list(s.held_out), "training": list(s.training)} for s in splits]
        document = {"models": cost.models, "steps": cost.steps, "tasks": rows, "cost": asdict(cost)}
        typer.echo(orjson.dumps(document).decode())
        return
    typer.echo(f"{counted(cost.models, 'model')}, {counted(cost.steps, 'step')} in all")
    for split in splits:
        sizes = ", ".join(str(size) for size in plan.sizes)
        typer.echo(
            f"  {split.task}: {len(split.held_out)} held out, {len(split.training)} to learn {sizes} from"
        )
    if not cost.weights:
        typer.echo("disk and hours: unknown, the weights are not here")
        return
    each, written = _gb(cost.checkpoint_gb), _gb(cost.written_gb)
    checkpoints = (
        f"a checkpoint of {each} every {counted(cost.checkpoint_every, 'step')}, {written} written in all"
        if cost.checkpoint_every
        else f"a checkpoint of {each} only when it is stopped (--checkpoint-gb {plan.checkpoint_gb:g})"
    )
    typer.echo(
        f"disk: {_gb(cost.kept_gb)} of models stay, {_gb(cost.peak_gb)} at most at one time; {checkpoints}"
    )
    hours = ", ".join(f"{name} {number:.1f}" for name, number in cost.hours.items())
    typer.echo(f"hours, estimated at {SHARE:.0%} of each device's peak, not measured: {hours}")


def _gb(number: float) -> str:
    return f"{number:.1f} GB" if number >= 0.1 else f"{1000 * number:.1f} MB"


def _print_end(out: Path, plan: StudyPlan, page: Path | None, *, as_json: bool) -> None:
    if as_json:
        rows = orjson.loads(page.with_suffix(".json").read_bytes()) if page else []
        document = {
            "models": str(out / "models"),
            "sizes": plan.sizes,
            "report": str(page) if page else None,
            "rows": rows,
        }
        typer.echo(orjson.dumps(document).decode())
    else:
        typer.echo(f"models: {out / 'models'}")
        if page is not None:
            typer.echo(f"Table 7 (a): {page}")
