"""`plantain train finetune`: an editor trained on n samples of each task, measured on other samples."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.held_out import write_held_out
from plantain.bench.benchmark.medebench import paper_tasks
from plantain.cli.terminal.application import application
from plantain.cli.terminal.ctrl_c import stopping_on_ctrl_c
from plantain.cli.train.bar import TrainingBar
from plantain.cli.train.measuring import measure_trained
from plantain.cli.train.settings import read_plan, settings_help
from plantain.models.diffusers.settings import Settings
from plantain.models.extras import require_extra
from plantain.records import InputError
from plantain.records.counts import counted
from plantain.runs.settings.terms import load_terms
from plantain.train.pairs import ListedExample, PairSource, TrainingPair
from plantain.train.plans import FinetunePlan
from plantain.train.releases import TABLES, ReleasePairs, StoredOriginals
from plantain.train.split import TaskSplit
from plantain.train.study import StudyCell, cells_of, splits_of, train_study

app = application()
STOPPED = 3


@app.command()
def finetune(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="Benchmark, or release with Parquet tables.")
    ],
    model: Annotated[
        str, typer.Option("--model", help="InstructPix2Pix: diffusers/FOLDER or diffusers/HUB-ID.")
    ],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="New folder, or one to resume.")],
    originals: Annotated[
        Path | None, typer.Option(help="Run or catalogue with a release's originals [default: the release].")
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task", help="May be repeated. Default: the six of the paper's Table 7, else the largest."
        ),
    ] = None,
    few_shot: Annotated[
        Path | None,
        typer.Option(
            "--few-shot", metavar="RUN", help="Scored run with --shots: Table 7 (b), on the page beside (a)."
        ),
    ] = None,
    chosen: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help=settings_help(FinetunePlan))
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="TOML with [limits], [providers.NAME], [consent].")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan; train nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print machine-readable results.")] = False,
) -> int:
    """Train one model per task, size and seed, then measure all on the same held-out samples (MedEBench, Table 7a).

    Every model starts from the base; training sets are nested, patients stay whole, images are not flipped. Ctrl-C
    keeps finished steps; run the same command to resume.

    Example: plantain train finetune bench --model diffusers/timbrooks/instruct-pix2pix --to runs/ft --set lora_rank=8
    """
    plan = read_plan(FinetunePlan, chosen or ())
    terms = load_terms(settings, (model,))
    benchmark = None if (source / TABLES).is_dir() else Benchmark.load(source)
    pairs: PairSource = (
        ReleasePairs(source, StoredOriginals(originals or source))
        if benchmark is None
        else BenchmarkPairs(benchmark)
    )
    sizes = Counter(example.task for example in pairs.listed())
    named = tuple(task or ()) or plan.named or paper_tasks(sizes, max(plan.sizes) + 1)
    plan = plan.model_copy(update={"named": named})
    splits = splits_of(plan, pairs.listed())
    cells = list(cells_of(plan, splits))
    if dry_run:
        _print_plan(plan, splits, cells, as_json=as_json)
        return 0
    require_extra("plantain train finetune", "torch", "torch", "diffusers", "peft")
    from plantain.train.base import open_base

    base = open_base(model, terms.provider_as(model, Settings))
    with TrainingBar(quiet=as_json) as bar, stopping_on_ctrl_c(bar.note) as stop:
        done = train_study(pairs, base, plan, to / "models", progress=bar, stop=stop)
    if not done:
        typer.echo("plantain: stopped (interrupted); run the same command to resume", err=True)
        return STOPPED
    held_out = _held_out(benchmark, pairs, splits, to)
    folders: dict[tuple[int, int], dict[str, Path]] = {(0, 0): {s.task: base.folder for s in splits}}
    for cell in cells:
        folders.setdefault((cell.size, cell.seed), {})[cell.task] = to / "models" / cell.place
    local = replace(
        terms, models=(f"diffusers/{base.folder}",)
    )  # the base's licence holds for what it became
    title = f"{model}, fine-tuned on {pairs.name}"
    code, page = asyncio.run(
        measure_trained(
            held_out, folders, to / "evaluation", title, local, plan.judge, quiet=as_json, few_shot=few_shot
        )
    )
    if page is not None:
        _print_end(to, plan, page, as_json=as_json)
    return code


class BenchmarkPairs:
    """Samples of a benchmark with a real image after: (previous, prompt, changed)."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark
        self.name, self.digest = benchmark.name, benchmark.digest

    def listed(self) -> list[ListedExample]:
        """Return every such sample. Raise InputError if there is none."""
        samples = [sample for sample in self._benchmark.samples if sample.changed is not None]
        if not samples:
            raise InputError(f"{self.name}: no sample has an image after the edit: nothing to train on")
        return [ListedExample(sample.id, sample.task, sample.cluster) for sample in samples]

    def read(self, ids: Sequence[str]) -> Iterator[TrainingPair]:
        """Yield the pairs of these ids, in the order given."""
        for sample in map(self._benchmark.sample, ids):
            before, after = self._benchmark.previous(sample), self._benchmark.changed(sample)
            yield TrainingPair(sample.id, sample.task, sample.cluster, sample.prompt, before, after)


def _held_out(
    benchmark: Benchmark | None, pairs: PairSource, splits: Sequence[TaskSplit], to: Path
) -> Benchmark:
    ids = [sample for split in splits for sample in split.held_out]
    if benchmark is not None:
        return benchmark.subset(ids)
    identity = hashlib.sha256(orjson.dumps([pairs.name, pairs.digest, sorted(ids)])).hexdigest()
    return write_held_out(pairs.read(ids), to / "held-out", pairs.name, identity)


def _print_plan(
    plan: FinetunePlan, splits: Sequence[TaskSplit], cells: Sequence[StudyCell], *, as_json: bool
) -> None:
    steps = sum(cell.steps(plan) for cell in cells)
    if as_json:
        rows = [{"task": s.task, "held_out": list(s.held_out), "training": list(s.training)} for s in splits]
        typer.echo(orjson.dumps({"models": len(cells), "steps": steps, "tasks": rows}).decode())
        return
    typer.echo(f"{counted(len(cells), 'model')}, {counted(steps, 'step')} in total")
    for split in splits:
        typer.echo(
            f"  {split.task}: {len(split.training)} samples to train on, {len(split.held_out)} held out"
        )


def _print_end(to: Path, plan: FinetunePlan, page: Path, *, as_json: bool) -> None:
    if as_json:
        rows = orjson.loads(page.with_suffix(".json").read_bytes())
        document = {"models": str(to / "models"), "sizes": plan.sizes, "report": str(page), "rows": rows}
        typer.echo(orjson.dumps(document).decode())
    else:
        typer.echo(f"models: {to / 'models'}\nTable 7: {page}")
