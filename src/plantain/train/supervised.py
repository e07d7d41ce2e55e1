"""Supervised fine-tuning of an InstructPix2Pix on pairs (Brooks et al. 2023, 3.2; MedEBench, section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor

from plantain.train.encoded import Encoded, encode
from plantain.train.examples.pairs import TrainingPair
from plantain.train.latents import Encoder, InstructionPipeline
from plantain.train.loop.training import Schedule, Trained, batch_of, identity_of, run
from plantain.train.noise import Denoising, draw, dropped, same_draw
from plantain.train.study_plan import DROPOUT
from plantain.train.weights import make_trainable

AT_ONCE = 8
"""Examples that are measured in one call of the network."""

LEARNED_AT_ONCE = 4
"""Examples that are learned from in one call; the gradients of a larger batch are summed, in the memory of these."""


def pair_parts(encoder: Encoder, pair: TrainingPair) -> dict[str, Tensor]:
    """A pair as the UNet sees it: latents of both pictures, which part shows them, text states, and those of ""."""
    return {
        "source": encoder.condition(pair.before),
        "target": encoder.target(pair.after),
        "weight": encoder.weight(pair.before),
        "text": encoder.texts([pair.instruction])[0],
        "empty": encoder.texts([""])[0],
    }


def encode_pairs(encoder: Encoder, pairs: Iterable[TrainingPair]) -> Encoded:
    """Encodes pairs one by one; neither pixels nor latents are kept in memory.

    Raises:
        ValueError: there is none.
    """
    return encode((pair.id, pair_parts(encoder, pair)) for pair in pairs)


def fine_tune(
    pipe: InstructionPipeline,
    pairs: Encoded,
    schedule: Schedule,
    folder: Path,
    *,
    base: str,
    lora_rank: int | None = None,
    dropout: float = DROPOUT,
    bf16: bool = False,
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
        bf16: as `Denoising`.
        on_step, stop: as for `plantain.train.loop.training.run`.

    Raises:
        InputError: as `plantain.train.loop.training.run`.
    """
    weights = make_trainable(pipe, lora_rank, schedule.seed)
    denoising = Denoising(pipe, bf16=bf16)
    identity = identity_of(
        schedule,
        {
            "kind": "supervised",
            "base": base,
            "pairs": pairs.ids,
            "canvases": pairs.canvases,
            "lora_rank": lora_rank,
            "dropout": dropout,
            **({"bf16": True} if bf16 else {}),
        },
    )

    def loss_of(step: int) -> tuple[Tensor, dict[str, float]]:
        some = pairs.rows(batch_of(schedule, step, pairs.canvases), pipe.device)
        drawn = draw(schedule.seed, "step", step, tuple(some["target"].shape), denoising.timesteps)
        source, text = dropped(some["source"], some["text"], some["empty"], drawn.chance, dropout)
        count = len(text)

        def part(these: slice) -> Tensor:
            shown = (some["target"][these], source[these], text[these], some["weight"][these])
            return denoising.errors(*shown, drawn.of(these)).sum() / count

        *others, last = [slice(at, at + LEARNED_AT_ONCE) for at in range(0, count, LEARNED_AT_ONCE)]
        total = 0.0
        for these in others:
            loss = part(these)
            loss.backward()
            total += float(loss.detach())
        loss = part(last) + total
        return loss, {"loss": float(loss.detach())}

    return run(weights, loss_of, schedule, folder, identity, on_step=on_step, stop=stop)


def fixed_loss(
    pipe: InstructionPipeline, pairs: Encoded, *, draws: int = 16, seed: int = 0, bf16: bool = False
) -> float:
    """Mean denoising error on pairs, with the same noise every time: comparable before and after a training."""
    denoising = Denoising(pipe, bf16=bf16)
    total = 0.0
    with torch.no_grad():
        for chunk in pairs.chunks(AT_ONCE):
            some, ids = pairs.rows(chunk, pipe.device), [pairs.ids[row] for row in chunk]
            for number in range(draws):
                shape = tuple(some["target"].shape[1:])
                drawn = same_draw(seed, "fixed", ids, number, shape, denoising.timesteps)
                errors = denoising.errors(some["target"], some["source"], some["text"], some["weight"], drawn)
                total += float(errors.sum())
    return total / (draws * len(pairs))
