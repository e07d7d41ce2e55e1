"""`plantain train finetune` and `dpo`: an open editor on n samples of each task, or on the preferences of a release."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, get_origin

import orjson
import typer
from pydantic import ValidationError

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.medebench import paper_tasks
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.leaderboard.learning import TrainedEditor, trained_label, write_learning
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.cli.terminal.options import (
    BASE_MODEL,
    AsJson,
    BenchArgument,
    DryRun,
    Originals,
    SettingsFile,
    parse_settings,
)
from plantain.cli.terminal.progress import (
    BuildProgress,
    StageProgress,
    TrainingBar,
    print_end,
    print_stop,
    run_to_end,
    stopping_on_ctrl_c,
)
from plantain.cli.terminal.tables import print_json
from plantain.files.installed import require_extra
from plantain.models.diffusers.provider import Settings
from plantain.records import InputError
from plantain.records.messages import counted, next_line, suggest
from plantain.roles import Editor
from plantain.runs.progress import RunSummary
from plantain.runs.setup import RunSetup
from plantain.runs.terms import Terms, load_terms
from plantain.train.pairs import ListedExample, TrainingPair
from plantain.train.plans import FinetunePlan, Plan, PreferencePlan
from plantain.train.releases import ReleasePreferences, StoredOriginals
from plantain.train.split import TaskSplit, tasks_to_split
from plantain.train.study import StudyCell, cells_of, splits_of, train_study

P = TypeVar("P", bound=Plan)


def read_plan(form: type[P], settings: Sequence[str]) -> P:
    """Make a training plan from NAME=VALUE settings. Raise InputError, naming an unknown or invalid one."""
    values: dict[str, object] = {}
    for name, value in parse_settings(settings).items():
        if name not in form.model_fields:
            raise InputError(f"--set {name}: no such setting; {suggest(name, form.model_fields)}")
        several = get_origin(form.model_fields[name].annotation) is tuple
        values[name] = [part for part in value.split(",") if part] if several else value
    try:
        return form.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"--set {first['loc'][0]}: {first['msg'].lower()}") from error


def settings_help(form: type[Plan]) -> str:
    """List a plan's settings with their defaults, for `--help`."""
    return "Repeatable: " + ", ".join(
        f"{name}={_written(field.default)}" for name, field in form.model_fields.items()
    )


def _written(value: object) -> str:
    if value is None:
        return ""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def finetune(
    context: typer.Context,
    bench: BenchArgument,
    model: str = typer.Option(..., help=BASE_MODEL),
    to: Path = typer.Option(..., metavar="DIR", help="New folder, or one to resume."),
    task: list[str] | None = typer.Option(
        None, help="Repeatable. Default: the six of the paper's Table 7, else the largest."
    ),
    few_shot: Path | None = typer.Option(
        None, metavar="RUN", help="Scored run with --shots: Table 7 (b), shown next to (a)."
    ),
    chosen: list[str] | None = typer.Option(
        None, "--set", metavar="NAME=VALUE", help=settings_help(FinetunePlan)
    ),
    settings: SettingsFile = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Train one model per task, size and seed, then measure all on the same held-out samples (MedEBench, Table 7a).

    Every model starts from the base; training sets are nested, patients stay whole, images are not flipped. Ctrl-C
    keeps finished models; the same command resumes.

    Example: plantain train finetune bench --model diffusers/timbrooks/instruct-pix2pix --to runs/ft --set lora_rank=8
    """
    plan = read_plan(FinetunePlan, chosen or ())
    terms = load_terms(settings, (model,))
    benchmark = Benchmark.load(bench)
    pairs = BenchmarkPairs(benchmark)
    possible = tasks_to_split(pairs.listed(), seed=plan.seed, largest=max(plan.sizes), per_task=plan.per_task)
    sizes = Counter(example.task for example in pairs.listed() if example.task in possible)
    named = tuple(task or ()) or plan.named or paper_tasks(sizes)
    plan = plan.model_copy(update={"named": named})
    splits = splits_of(plan, pairs.listed())
    cells = list(cells_of(plan, splits))
    if dry_run:
        _print_plan(plan, splits, cells, as_json=as_json)
        return 0
    require_extra("plantain train finetune", "torch", "torch", "diffusers", "peft")
    from plantain.train.base import open_base

    base = open_base(model, terms.provider_as(model, Settings))
    with TrainingBar(quiet=as_json) as bar, stopping_on_ctrl_c() as stop:
        done = train_study(pairs, base, plan, to / "models", progress=bar, stop=stop)
    if not done:
        return print_stop(context, "interrupted")
    held_out = benchmark.subset([sample for split in splits for sample in split.held_out])
    folders: dict[tuple[int, int], dict[str, Path]] = {(0, 0): {s.task: base.folder for s in splits}}
    for cell in cells:
        folders.setdefault((cell.size, cell.seed), {})[cell.task] = to / "models" / cell.place
    local = replace(
        terms, models=(f"diffusers/{base.folder}",)
    )  # the base's licence also covers the fine-tuned models
    title = f"{model}, fine-tuned on {pairs.name}"
    ended, page = run_to_end(
        measure_trained(
            held_out, folders, to / "evaluation", title, local, plan.judge, quiet=as_json, few_shot=few_shot
        )
    )
    if page is not None:
        _print_end(to, plan, page, as_json=as_json)
    return print_end(context, ended)


class BenchmarkPairs:
    """Training pairs of a benchmark: (image before, prompt, image after) of samples with a real image after."""

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


def _print_plan(
    plan: FinetunePlan, splits: Sequence[TaskSplit], cells: Sequence[StudyCell], *, as_json: bool
) -> None:
    steps = sum(cell.steps(plan) for cell in cells)
    if as_json:
        rows = [{"task": s.task, "held_out": list(s.held_out), "training": list(s.training)} for s in splits]
        print_json({"models": len(cells), "steps": steps, "tasks": rows})
        return
    shots = ", ".join(map(str, sorted({0, *plan.sizes})))
    typer.echo(f"{counted(len(cells), 'model')}, {counted(steps, 'step')} in total; shots: {shots}")
    for split in splits:
        training = counted(len(split.training), "sample")
        typer.echo(f"  {split.task}: {training} to train on, {len(split.held_out)} held out")


def _print_end(to: Path, plan: FinetunePlan, page: Path, *, as_json: bool) -> None:
    if as_json:
        rows = orjson.loads(page.with_suffix(".json").read_bytes())
        document = {"models": str(to / "models"), "sizes": plan.sizes, "report": str(page), "rows": rows}
        print_json(document)
    else:
        again = next_line("bench", "table", to / "evaluation")
        typer.echo(f"models: {to / 'models'}\nTable 7: {page}\n{again}")


NO_JUDGE = "none"


async def measure_trained(
    held_out: Benchmark,
    folders: Mapping[tuple[int, int], Mapping[str, Path]],
    run: Path,
    title: str,
    terms: Terms,
    judge: str,
    *,
    quiet: bool,
    few_shot: Path | None = None,
) -> tuple[RunSummary, Path | None]:
    """Measure trained models: generate and score missing outputs.

    Args:
        held_out: samples that no model was trained on.
        folders: for (samples per task, seed), the model folder of each task; 0 samples: the untrained model.
        run: folder of the benchmark run.
        title: title of the page.
        terms: terms for calling the editors.
        judge: "provider/model", or `NO_JUDGE` for metrics only.
        quiet: True to show no progress.
        few_shot: run of Table 7 (b), shown next to (a).

    Returns:
        The run's summary, and the path of Table 7's page; None if the run stopped.
    """
    setup = RunSetup(terms)
    task_of = {sample.id: sample.task for sample in held_out.samples}
    editors: dict[str, Editor] = {}
    for (size, seed), by_task in sorted(folders.items()):
        label = trained_label(size, seed)
        models = {task: setup.editor(f"diffusers/{folder}") for task, folder in sorted(by_task.items())}
        editors[label] = TrainedEditor(f"diffusers/{label}", models, task_of)
    with BuildProgress(quiet=quiet, what="generate") as progress:
        made = await generate(held_out, run, ArmRequest(own=editors), terms, observer=progress)
    if made.stopped is not None:
        return made, None
    described = any(sample.detailed for sample in held_out.samples)
    judges = () if judge == NO_JUDGE else (JudgeName(judge, "D" if described else "P"),)
    asked = replace(terms, models=tuple(name.model for name in judges))
    with StageProgress(quiet=quiet) as stages:
        scored = await score_run(run, held_out, ScoreRequest(judges=judges), terms=asked, observer=stages)
    if scored.stopped is not None:
        return scored, None
    return scored, write_learning(run, run.parent, title, few_shot)


def dpo(
    context: typer.Context,
    release: Path = typer.Argument(..., metavar="RELEASE", help="Release with the preference table."),
    model: str = typer.Option(..., help=BASE_MODEL),
    to: Path = typer.Option(..., metavar="DIR", help="New folder, or one to resume."),
    originals: Originals = None,
    chosen: list[str] | None = typer.Option(
        None, "--set", metavar="NAME=VALUE", help=settings_help(PreferencePlan)
    ),
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> int:
    """Train an InstructPix2Pix by Diffusion-DPO to prefer edits that the judge accepted to those that it rejected.

    Training ends early when the winner's own error on monitored pairs exceeds the bound. Ctrl-C keeps the editor of
    finished supervised steps; the same command resumes.

    Example: plantain train dpo release --model diffusers/timbrooks/instruct-pix2pix --to runs/dpo --set beta=2000
    """
    plan = read_plan(PreferencePlan, chosen or ())
    require_extra("plantain train dpo", "torch", "torch", "diffusers", "peft")
    from plantain.train.base import open_base
    from plantain.train.preference import MODEL, train_preferences

    source = ReleasePreferences(release, StoredOriginals(originals or release))
    if line := source.left_out():
        print(f"plantain: {line}", file=sys.stderr)
    base = open_base(model, load_terms(settings, (model,)).provider_as(model, Settings))
    with TrainingBar(quiet=as_json) as bar, stopping_on_ctrl_c() as stop:
        record = train_preferences(source, base, plan, to, progress=bar, stop=stop)
    if record is None:
        return print_stop(context, "interrupted")
    if as_json:
        print_json({"model": str(to / MODEL), **record})
        return 0
    if record["stopped"]:
        typer.echo(f"ended at step {record['step']}: {record['stopped']}")
    typer.echo(f"model: {to / MODEL}")
    typer.echo(next_line("bench", "generate", "BENCH", "--run", "RUN", "--editor", f"diffusers/{to / MODEL}"))
    return 0
