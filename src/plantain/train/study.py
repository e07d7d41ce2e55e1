"""The fine-tuning study of MedEBench, section 5: how much an editor gains from 4, 8 or 16 samples of a task.

One model is trained for each task, size and seed, fresh from the base. A model that is finished is not trained again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from plantain.records import InputError
from plantain.train.base import TrainingBase
from plantain.train.editor_folder import Card, save_editor
from plantain.train.encoded import Encoded
from plantain.train.finished import DONE, read_finished, write_json
from plantain.train.latents import Encoder, InstructionPipeline
from plantain.train.pairs import ListedExample, PairSource
from plantain.train.split import PER_TASK, SIZES, TASKS, TaskSplit, choose_tasks, split_task
from plantain.train.supervised import (
    DROPOUT,
    STEPS_PER_SAMPLE,
    encode_pairs,
    fine_tune,
    fixed_loss,
)
from plantain.train.training import Schedule

FULL_RATE, LORA_RATE = 5e-5, 1e-4
"""Learning rates; the paper states none. The first is that of InstructPix2Pix's published fine-tuning example."""


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """What is trained.

    Attributes:
        sizes: training samples per task; 0 is the base, which is not trained.
        seeds: trainings per task and size.
        tasks: at most so many tasks, those with most samples; or named ones in `named`.
        named: tasks by name; () to choose.
        per_task: at most so many samples of a task are used.
        steps_per_sample: training steps for each sample.
        side: of the canvas, in pixels: the longer side of every image, and of the edits of what was trained.
        lora_rank: of adapters; None to train the whole UNet.
        learning_rate: None for the usual one of either way.
        batch: samples per step.
        dropout: share of each case of dropped conditions.
        seed: of the split and of everything that follows.
        checkpoint_every: steps between checkpoints.
    """

    sizes: tuple[int, ...] = SIZES
    seeds: int = 3
    tasks: int = TASKS
    named: tuple[str, ...] = ()
    per_task: int = PER_TASK
    steps_per_sample: int = STEPS_PER_SAMPLE
    side: int = 512
    lora_rank: int | None = None
    learning_rate: float | None = None
    batch: int = 1
    dropout: float = DROPOUT
    seed: int = 0
    checkpoint_every: int = 100

    @property
    def rate(self) -> float:
        usual = FULL_RATE if self.lora_rank is None else LORA_RATE
        return usual if self.learning_rate is None else self.learning_rate

    def check(self) -> None:
        """Refuses what cannot be trained. Raises InputError naming the option."""
        if not self.sizes or min(self.sizes) < 0:
            raise InputError("--sizes: name one or more numbers of samples, 0 for the untrained model")
        if self.side < 64 or self.side % 8:
            raise InputError(f"--side: {self.side} is not a multiple of 8 from 64 pixels on")
        if self.rate <= 0 or not 0 <= self.dropout <= 1 / 3:
            raise InputError("--learning-rate must be above 0, --dropout between 0 and 1/3")
        for name in ("seeds", "tasks", "per_task", "steps_per_sample", "batch", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name.replace('_', '-')}: must be at least 1")


@dataclass(frozen=True, slots=True)
class StudyCell:
    """One model of the study."""

    task: str
    size: int
    seed: int
    training: tuple[str, ...]

    @property
    def place(self) -> Path:
        """Its folder, relative to the study's models."""
        return Path(slug(self.task)) / f"n{self.size}-s{self.seed}"


def slug(task: str) -> str:
    """A task's name as a folder's: readable, and different for different names."""
    digest = hashlib.sha256(task.encode()).hexdigest()[:6]
    return f"{re.sub(r'[^a-z0-9]+', '-', task.casefold()).strip('-')[:40]}-{digest}"


def splits_of(plan: StudyPlan, listed: Sequence[ListedExample]) -> tuple[TaskSplit, ...]:
    """The study's tasks, split. Raises InputError for an unknown task, or one with too few samples."""
    plan.check()
    known = {example.task for example in listed}
    for task in plan.named:
        if task not in known:
            raise InputError(f"--task {task!r}: no such task; there are {', '.join(sorted(known))}")
    chosen = plan.named or choose_tasks(listed, plan.tasks)
    return tuple(
        split_task(listed, task, seed=plan.seed, largest=max(plan.sizes), per_task=plan.per_task)
        for task in chosen
    )


def cells_of(plan: StudyPlan, splits: Sequence[TaskSplit]) -> Iterator[StudyCell]:
    """Every model to be trained, by task, size and seed."""
    for split in splits:
        for size in sorted(set(plan.sizes) - {0}):
            for seed in range(plan.seeds):
                yield StudyCell(split.task, size, seed, split.training[:size])


class StudyObserver:
    """Told how a study goes on; every method may be overridden."""

    def begin(self, cell: StudyCell, steps: int) -> None:
        """A model's training begins or goes on."""

    def step(self, cell: StudyCell, step: int, loss: float) -> None:
        """A step was done."""

    def finished(self, cell: StudyCell, before: float, after: float) -> None:
        """A model is finished; the loss on its own pairs, with fixed noise, before and after."""


def train_study(
    source: PairSource,
    base: TrainingBase,
    plan: StudyPlan,
    models: Path,
    *,
    observer: StudyObserver,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Trains every model of the study that is not finished yet.

    Args:
        source: of pairs.
        base: what is trained.
        plan: what to train.
        models: folder for the models, each a folder that is an editor by itself.
        watch: told how it goes on.
        stop: asked before each step; what is done by then is kept.

    Returns:
        Whether all models are finished.

    Raises:
        InputError: too few samples, or the folder holds models of another study.
    """
    for cell in cells_of(plan, splits_of(plan, source.listed())):
        folder = models / cell.place
        if is_finished(folder, identity(source, base, plan, cell)):
            continue
        if stop() or not _train(source, base, plan, cell, folder, observer, stop):
            return False
    return True


def identity(source: PairSource, base: TrainingBase, plan: StudyPlan, cell: StudyCell) -> str:
    """Hash of all that a model depends on."""
    settings = asdict(plan)
    for name in ("sizes", "seeds", "tasks", "named", "per_task", "checkpoint_every"):
        settings.pop(name)
    said = [source.name, source.digest, base.digest, settings, plan.rate, cell.task, cell.seed, cell.training]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def is_finished(folder: Path, wanted: str) -> bool:
    """Whether a model is there. Raises InputError when the folder holds another one."""
    return read_finished(folder / DONE, wanted) is not None


def _train(
    source: PairSource,
    base: TrainingBase,
    plan: StudyPlan,
    cell: StudyCell,
    folder: Path,
    observer: StudyObserver,
    stop: Callable[[], bool],
) -> bool:
    schedule = Schedule(
        plan.steps_per_sample * cell.size // plan.batch,
        plan.rate,
        plan.batch,
        seed=plan.seed * 10_007 + cell.seed,
        checkpoint_every=plan.checkpoint_every,
    )
    observer.begin(cell, schedule.steps)
    pipe = base.load()
    pairs = encode_pairs(Encoder(pipe, plan.side), source.read(cell.training))
    before = fixed_loss(pipe, pairs)
    work = folder.with_name(folder.name + ".training")
    trained = fine_tune(
        pipe,
        pairs,
        schedule,
        work,
        base=identity(source, base, plan, cell),
        lora_rank=plan.lora_rank,
        dropout=plan.dropout,
        on_step=lambda step, noted: observer.step(cell, step, noted["loss"]),
        stop=stop,
    )
    if trained.stopped:
        return False
    after = fixed_loss(pipe, pairs)
    _keep(pipe, source, base, plan, cell, folder, pairs, (before, after), trained.log)
    observer.finished(cell, before, after)
    _remove(work)
    return True


def _keep(
    pipe: InstructionPipeline,
    source: PairSource,
    base: TrainingBase,
    plan: StudyPlan,
    cell: StudyCell,
    folder: Path,
    pairs: Encoded,
    losses: tuple[float, float],
    log: Sequence[dict[str, float]],
) -> None:
    way = "the whole UNet" if plan.lora_rank is None else f"LoRA adapters of rank {plan.lora_rank}"
    text = (
        f"Fine-tuned on {cell.size} samples of the task “{cell.task}” of `{source.name}` ({source.digest[:12]}…), "
        f"{len(log)} steps of {plan.batch}, {way}, learning rate {plan.rate:g}, seed {plan.seed}/{cell.seed}, "
        f"images at {plan.side} pixels, no augmentation."
    )
    save_editor(
        pipe,
        base.folder,
        folder,
        Card(f"{base.name}, {cell.task}, n = {cell.size}", base.name, base.licence, text, plan.side),
        lora=plan.lora_rank is not None,
    )
    record = {
        "identity": identity(source, base, plan, cell),
        "task": cell.task,
        "size": cell.size,
        "seed": cell.seed,
        "trained_on": list(pairs.ids),
        "source": {"name": source.name, "digest": source.digest},
        "base": {"name": base.name, "digest": base.digest, "licence": base.licence},
        "plan": {**asdict(plan), "learning_rate": plan.rate},
        "fixed_loss": {"before": losses[0], "after": losses[1]},
        "log": [entry["loss"] for entry in log],
    }
    write_json(folder / DONE, record)


def _remove(work: Path) -> None:
    """The checkpoint of a finished training."""

    shutil.rmtree(work, ignore_errors=True)
