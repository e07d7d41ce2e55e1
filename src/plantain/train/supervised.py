"""Supervised fine-tuning of an InstructPix2Pix on pairs (Brooks et al. 2023, 3.2; MedEBench, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from plantain.train.latents import Encoder, InstructionPipeline
from plantain.train.noise import Denoising, draw, dropped
from plantain.train.pairs import TrainingPair
from plantain.train.training import Schedule, Trained, batch_of, identity_of, run
from plantain.train.weights import make_trainable

STEPS_PER_SAMPLE = 50
"""MedEBench, section 5."""

DROPOUT = 0.05
"""Share of steps without text, without image, and without both (InstructPix2Pix's published code)."""


@dataclass(frozen=True, slots=True)
class EncodedPairs:
    """Pairs as the model sees them, on its device.

    Attributes:
        ids: of the pairs.
        source, target: latents (n, 4, h, w).
        text: states of the instructions (n, tokens, width).
        empty: states of "" (1, tokens, width).
    """

    ids: tuple[str, ...]
    source: Tensor
    target: Tensor
    text: Tensor
    empty: Tensor


def encode_pairs(encoder: Encoder, pairs: Iterable[TrainingPair]) -> EncodedPairs:
    """Encodes pairs one by one; pixels are not kept.

    Raises:
        ValueError: there is none.
    """
    ids, sources, targets, texts = [], [], [], []
    for pair in pairs:
        ids.append(pair.id)
        sources.append(encoder.condition(pair.before))
        targets.append(encoder.target(pair.after))
        texts.append(encoder.texts([pair.instruction])[0])
    if not ids:
        raise ValueError("no pairs to learn from")
    return EncodedPairs(
        tuple(ids), torch.stack(sources), torch.stack(targets), torch.stack(texts), encoder.texts([""])
    )


def fine_tune(
    pipe: InstructionPipeline,
    pairs: EncodedPairs,
    schedule: Schedule,
    folder: Path,
    *,
    base: str,
    lora_rank: int | None = None,
    dropout: float = DROPOUT,
    on_step: Callable[[int, dict[str, float]], None] = lambda step, noted: None,
    stop: Callable[[], bool] = lambda: False,
) -> Trained:
    """Trains the pipeline's UNet in place on these pairs, or goes on where `folder` stands.

    No augmentation: a mirrored image makes "left" wrong.

    Args:
        pipe: fresh from its base weights.
        pairs: what to learn.
        schedule: how.
        folder: of the checkpoint.
        base: what the base weights are, e.g. their digest; part of the training's identity.
        lora_rank: of adapters; None to train the whole UNet.
        dropout: share of each of the three cases of dropped conditions, in [0, 1/3].
        on_step, stop: as for `plantain.train.training.run`.

    Raises:
        InputError: as `plantain.train.training.run`.
    """
    weights = make_trainable(pipe, lora_rank, schedule.seed)
    denoising = Denoising(pipe)
    identity = identity_of(
        schedule,
        {"kind": "supervised", "base": base, "pairs": pairs.ids, "lora_rank": lora_rank, "dropout": dropout},
    )

    def loss_of(step: int) -> tuple[Tensor, dict[str, float]]:
        rows = batch_of(schedule, step, len(pairs.ids))
        drawn = draw(schedule.seed, "step", step, tuple(pairs.target[rows].shape), denoising.timesteps)
        source, text = dropped(pairs.source[rows], pairs.text[rows], pairs.empty, drawn.chance, dropout)
        loss = denoising.errors(pairs.target[rows], source, text, drawn).mean()
        return loss, {"loss": float(loss.detach())}

    return run(weights, loss_of, schedule, folder, identity, on_step=on_step, stop=stop)


def fixed_loss(pipe: InstructionPipeline, pairs: EncodedPairs, *, draws: int = 16, seed: int = 0) -> float:
    """Mean denoising error on pairs, with the same noise every time: comparable before and after a training."""
    denoising = Denoising(pipe)
    total = 0.0
    with torch.no_grad():
        for number in range(draws):
            drawn = draw(seed, "fixed", number, tuple(pairs.target.shape), denoising.timesteps)
            total += float(denoising.errors(pairs.target, pairs.source, pairs.text, drawn).mean())
    return total / draws
