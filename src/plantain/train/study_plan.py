"""What the fine-tuning study of MedEBench, section 5, is to train; help and plans need no torch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plantain.records import InputError
from plantain.train.examples.pairs import ListedExample
from plantain.train.flow.methods import WEIGHTINGS
from plantain.train.loop.rates import RATES
from plantain.train.split import PER_TASK, SIZES, TASKS, TaskSplit, choose_tasks, split_task

STEPS_PER_SAMPLE = 50
"""MedEBench, section 5."""

DROPOUT = 0.05
"""Share of steps without text, without image, and without both (InstructPix2Pix's published code)."""

FULL_RATE, LORA_RATE = 5e-5, 1e-4
"""Learning rates; the paper states none. The first is that of InstructPix2Pix's published fine-tuning example."""

CHECKPOINT_GB = 200.0
"""That a study writes in checkpoints; every 100 steps of the paper's whole UNets would be three terabytes."""


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
        checkpoint_every: steps between checkpoints; fewer are written where `checkpoint_gb` asks for it.
        weighting: of shares of noise, for flow-matching editors; by diffusers' names.
        gradient_checkpointing: activations are computed again instead of kept: slower, less memory, the same weights.
        bf16: an InstructPix2Pix computes in bfloat16 and learns in float32; others train in their own precision.
        rates, warmup, ema: as in `Schedule`.
        checkpoint_gb: all checkpoints of the study together write at most so many gigabytes.
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
    weighting: str = "none"
    gradient_checkpointing: bool = False
    bf16: bool = False
    rates: str = "constant"
    warmup: int = 0
    ema: float = 0.0
    checkpoint_gb: float = CHECKPOINT_GB

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
        if self.lora_rank is not None and self.lora_rank < 1:
            raise InputError("--lora: the rank of adapters is at least 1")
        if self.weighting not in WEIGHTINGS:
            raise InputError(f"--weighting {self.weighting}: choose one of {', '.join(WEIGHTINGS)}")
        if self.rate <= 0 or not 0 <= self.dropout <= 1 / 3:
            raise InputError("--learning-rate must be above 0, --dropout between 0 and 1/3")
        if self.rates not in RATES:
            raise InputError(f"--rates {self.rates}: choose one of {', '.join(RATES)}")
        if self.warmup < 0 or not 0 <= self.ema < 1 or self.checkpoint_gb < 0:
            raise InputError("--warmup and --checkpoint-gb must be at least 0, --ema in [0, 1)")
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
