"""Settings and progress of the trainings. Imports no torch, so that help and dry runs need none."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

FULL_RATE, LORA_RATE = 5e-5, 1e-4
"""Learning rates; MedEBench states none. The first is that of InstructPix2Pix's published fine-tuning example."""

AtLeast1 = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0)]
Side = Annotated[int, Field(ge=64, multiple_of=8)]


class Plan(BaseModel):
    """The settings of one training command."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FinetunePlan(Plan):
    """The fine-tuning study of MedEBench, section 3.4; docs/design/training.md names its open choices.

    Attributes:
        sizes: numbers of training samples per task; the untrained base (0) is always measured, too.
        seeds: number of trainings per task and size.
        tasks: maximum number of tasks; those with most samples are used.
        named: names of the tasks to use instead.
        per_task: maximum number of samples of a task.
        steps_per_sample: training steps per sample.
        side: longer side of the canvas in pixels, in training and later in editing.
        lora_rank: rank of adapters; None to train the whole UNet.
        learning_rate: learning rate; None for `FULL_RATE`, with adapters `LORA_RATE`.
        batch: samples per step.
        seed: seed of the split and all later random choices.
        judge: name of the judge of the held-out edits; "none" for metrics only.
    """

    sizes: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] = (4, 8, 16)
    seeds: AtLeast1 = 3
    tasks: AtLeast1 = 6
    named: tuple[str, ...] = ()
    per_task: AtLeast1 = 30
    steps_per_sample: AtLeast1 = 50
    side: Side = 512
    lora_rank: AtLeast1 | None = None
    learning_rate: Rate | None = None
    batch: AtLeast1 = 1
    seed: Annotated[int, Field(ge=0)] = 0
    judge: str = "offline/instruments"

    @property
    def rate(self) -> float:
        usual = FULL_RATE if self.lora_rank is None else LORA_RATE
        return usual if self.learning_rate is None else self.learning_rate


class PreferencePlan(Plan):
    """Settings of training on preferences: Diffusion-DPO after supervised steps.

    Attributes:
        steps: number of steps of preference training.
        supervised_steps: number of steps on the winners before that; 0 if the base was fine-tuned already.
        held_out: share of the clusters that are monitored, not trained on.
        side: longer side of the canvas in pixels, in training and later in editing.
        lora_rank: rank of the adapters.
        supervised_learning_rate, learning_rate: learning rates of the steps on winners and of the preference steps.
        batch: pairs per step.
        beta: strength of the regularisation towards the reference model (Wallace et al. 2024, 5.1).
        bound: training ends when the winner's monitored error exceeds this many times the reference's.
        seed: seed of split, order and noise.
        every: steps between measurements of the monitored pairs.
    """

    steps: AtLeast1 = 400
    supervised_steps: Annotated[int, Field(ge=0)] = 200
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.2
    side: Side = 512
    lora_rank: AtLeast1 = 8
    supervised_learning_rate: Rate = LORA_RATE
    learning_rate: Rate = 1e-5
    batch: AtLeast1 = 1
    beta: Rate = 5000.0
    bound: Annotated[float, Field(ge=1)] = 1.05
    seed: Annotated[int, Field(ge=0)] = 0
    every: AtLeast1 = 50


class TrainingProgress:
    """Receives the progress of a training; override any method."""

    def begin(self, what: str, steps: int) -> None:
        """Report the start of a training of this many steps; 0: work of unknown length."""

    def step(self, step: int, loss: float | None = None) -> None:
        """Report a finished training step and its loss, if known."""

    def note(self, line: str) -> None:
        """Show a message of one line."""
