"""Supervised fine-tuning of an InstructPix2Pix on pairs: the whole UNet, or LoRA adapters."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from plantain.train.base import InstructionPipeline
from plantain.train.denoising import Denoising, Encoded, Encoder, draw_by_id, drop_conditions, make_trainable
from plantain.train.pairs import TrainingPair
from plantain.train.plans import TrainingProgress
from plantain.train.training import Schedule, Trained, run

DROPOUT = 0.05
"""Share of steps without text, without image, and without both (InstructPix2Pix's published code)."""


def encode_pair(encoder: Encoder, pair: TrainingPair) -> dict[str, Tensor]:
    """Encode a training pair to tensors by name: "source", "target", "weight", "text" and "empty" (states of "")."""
    return {
        "source": encoder.condition(pair.before),
        "target": encoder.target(pair.after),
        "weight": encoder.weight(pair.before),
        "text": encoder.text(pair.instruction),
        "empty": encoder.text(""),
    }


def fine_tune(
    pipe: InstructionPipeline,
    pairs: Encoded,
    schedule: Schedule,
    progress: TrainingProgress,
    stop: Callable[[], bool] = lambda: False,
    *,
    lora_rank: int | None = None,
) -> Trained:
    """Train the pipeline's UNet in place; return the state in which it ended.

    Images are not augmented: a mirrored image makes "left" wrong.

    Args:
        pipe: the pipeline, freshly loaded from its base weights.
        pairs: examples encoded by `encode_pair`.
        schedule: steps, learning rate, batch and seed.
        progress, stop: as for `run`.
        lora_rank: rank of adapters; None to train the whole UNet.

    Raises:
        InputError: as `run`.
    """
    weights = make_trainable(pipe, lora_rank, schedule.seed)
    denoising = Denoising(pipe)

    def loss_of(numbers: list[int], step: int) -> Tensor:
        rows, ids = pairs.rows(numbers, pipe.device), [pairs.ids[number] for number in numbers]
        shape = tuple(rows["target"].shape[1:])
        drawn = draw_by_id(schedule.seed, "step", ids, step, shape, denoising.timesteps)
        source, text = drop_conditions(rows["source"], rows["text"], rows["empty"], drawn.chance, DROPOUT)
        return denoising.errors(rows["target"], source, text, rows["weight"], drawn).sum()

    return run(weights, loss_of, pairs.canvases, schedule, progress, stop)
