"""The fine-tuning study of MedEBench, section 3.4: how much an editor gains from 4, 8 or 16 samples of a task.

One model is trained for each task, size and seed, fresh from the base. A finished model is not trained again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plantain.files.opening import open_folder
from plantain.records import InputError
from plantain.records.messages import counted
from plantain.train.finished import DONE, read_finished, write_json
from plantain.train.pairs import ListedExample, PairSource
from plantain.train.plans import FinetunePlan, TrainingProgress
from plantain.train.split import TaskSplit, largest_tasks, split_task, tasks_to_split

if TYPE_CHECKING:  # imports torch
    from plantain.train.base import TrainingBase

UNRELATED = {*("sizes", "seeds", "tasks", "named", "per_task", "judge")}
"""Settings that change no single model."""


@dataclass(frozen=True, slots=True)
class StudyCell:
    """One model of the fine-tuning study.

    Attributes:
        task: the task; `size`: number of training samples.
        seed: seed of the training.
        training: ids of the training samples.
    """

    task: str
    size: int
    seed: int
    training: tuple[str, ...]

    @property
    def place(self) -> Path:
        """The model's folder, relative to the study's models, e.g. "edema-1a2b3c/n10-s0"."""
        digest = hashlib.sha256(self.task.encode()).hexdigest()[:6]
        slug = re.sub(r"[^a-z0-9]+", "-", self.task.casefold()).strip("-")[:40]
        return Path(f"{slug}-{digest}") / f"n{self.size}-s{self.seed}"

    def steps(self, plan: FinetunePlan) -> int:
        return plan.steps_per_sample * self.size // plan.batch

    def __str__(self) -> str:
        return f"{self.task}, n = {self.size}, seed {self.seed}"


def splits_of(plan: FinetunePlan, listed: Sequence[ListedExample]) -> tuple[TaskSplit, ...]:
    """Split the examples of each task of the study. Raise InputError for an unknown task or too few samples."""
    known = {example.task for example in listed}
    for task in plan.named:
        if task not in known:
            raise InputError(f"--task {task}: no such task; there are {', '.join(sorted(known))}")
    rules = {"seed": plan.seed, "largest": max(plan.sizes), "per_task": plan.per_task}
    possible = tasks_to_split(listed, **rules)
    usable = [example for example in listed if example.task in possible] or listed
    named = plan.named or largest_tasks(usable, plan.tasks)
    return tuple(split_task(listed, task, **rules) for task in named)


def cells_of(plan: FinetunePlan, splits: Sequence[TaskSplit]) -> Iterator[StudyCell]:
    """Yield every model to be trained, by task, size and seed."""
    for split in splits:
        for size in sorted(set(plan.sizes) - {0}):
            for seed in range(plan.seeds):
                yield StudyCell(split.task, size, seed, split.training[:size])


def train_study(
    source: PairSource,
    base: TrainingBase,
    plan: FinetunePlan,
    models: Path,
    *,
    progress: TrainingProgress,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train every model of the study that is not finished.

    Args:
        source: source of the pairs.
        base: weights to train.
        plan: settings of the study.
        models: folder of the models, each a complete editor.
        progress: receives the progress.
        stop: called before each step; finished models are kept.

    Returns:
        True if all models are finished.

    Raises:
        InputError: there are too few samples, or the folder contains models of another study.
    """
    for cell in cells_of(plan, splits_of(plan, source.listed())):
        folder = models / cell.place
        if read_finished(folder / DONE, _identity(source, base, plan, cell)) is not None:
            continue
        open_folder(models, str(cell.place.parent))
        if stop() or not _train(source, base, plan, cell, models, progress, stop):
            return False
    return True


def _identity(source: PairSource, base: TrainingBase, plan: FinetunePlan, cell: StudyCell) -> str:
    """Hash of everything that a model depends on."""
    settings = plan.model_dump(exclude=UNRELATED) | {"learning_rate": plan.rate}
    parts = [source.name, source.digest, base.digest, settings, cell.task, cell.seed, cell.training]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _train(
    source: PairSource,
    base: TrainingBase,
    plan: FinetunePlan,
    cell: StudyCell,
    models: Path,
    progress: TrainingProgress,
    stop: Callable[[], bool],
) -> bool:
    from plantain.train.denoising import Encoded, Encoder
    from plantain.train.editor import save_editor
    from plantain.train.supervised import encode_pair, fine_tune
    from plantain.train.training import Schedule

    seed = plan.seed * 10_007 + cell.seed
    schedule = Schedule(cell.steps(plan), plan.rate, plan.batch, seed)
    progress.begin(str(cell), schedule.steps)
    pipe, folder, identity = base.load(), models / cell.place, _identity(source, base, plan, cell)
    encoder = Encoder(pipe, plan.side)
    pairs = Encoded(cell.training, source.read, lambda pair: encode_pair(encoder, pair))
    trained = fine_tune(pipe, pairs, schedule, progress, stop, lora_rank=plan.lora_rank)
    if trained.stopped:
        return False
    text, lora = _card(source, plan, cell), plan.lora_rank is not None
    save_editor(pipe, base.folder, folder, base, title=str(cell), text=text, side=plan.side, lora=lora)
    record = {
        "identity": identity,
        "task": cell.task,
        "size": cell.size,
        "seed": cell.seed,
        "trained_on": list(pairs.ids),
        "source": {"name": source.name, "digest": source.digest},
        "base": {"name": base.name, "digest": base.digest, "licence": base.licence},
        "plan": plan.model_dump(mode="json") | {"learning_rate": plan.rate},
        "log": list(trained.log),
    }
    write_json(folder / DONE, record)
    return True


def _card(source: PairSource, plan: FinetunePlan, cell: StudyCell) -> str:
    weights = "the whole UNet" if plan.lora_rank is None else f"LoRA adapters of rank {plan.lora_rank}"
    return (
        f"Fine-tuned on {counted(cell.size, 'sample')} of the task “{cell.task}” of `{source.name}` "
        f"({source.digest[:12]}…): {weights}, {counted(cell.steps(plan), 'step')} of {plan.batch}, learning rate "
        f"{plan.rate:g}, seed {plan.seed}/{cell.seed}, images at {plan.side} pixels, no augmentation."
    )
