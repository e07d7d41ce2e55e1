"""Diffusion-DPO (Wallace et al. 2024) on successes and failures of the same image and task, with a brake.

The loss rewards a gap between winner and loser, which can also grow by making both worse. So the winner's own denoising
error is watched on held-out pairs against the reference model's, and the training ends when it exceeds a stated bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from plantain.train.encoded import Encoded, encode
from plantain.train.examples.pairs import PreferencePair
from plantain.train.latents import Encoder, InstructionPipeline
from plantain.train.loop.training import Schedule, Trained, batch_of, identity_of, run
from plantain.train.noise import Denoising, Draw, draw, same_draw
from plantain.train.preference_plan import BETA, BOUND, Preference
from plantain.train.supervised import AT_ONCE
from plantain.train.weights import make_trainable, with_adapters, without_adapters


def encode_preferences(encoder: Encoder, pairs: Iterable[PreferencePair]) -> Encoded:
    """Encodes preferences one by one; neither pixels nor latents are kept in memory.

    Raises:
        ValueError: there is none.
    """
    return encode(
        (
            pair.id,
            {
                "source": encoder.condition(pair.before),
                "winner": encoder.target(pair.winner),
                "loser": encoder.target(pair.loser),
                "weight": encoder.weight(pair.before),
                "text": encoder.texts([pair.instruction])[0],
            },
        )
        for pair in pairs
    )


class _Gap:
    """Errors of winner and loser under the same noise, of the model and of its reference (adapters off)."""

    def __init__(self, pipe: InstructionPipeline) -> None:
        self.denoising, self.unet = Denoising(pipe), pipe.unet

    def model(self, some: Mapping[str, Tensor], drawn: Draw) -> tuple[Tensor, Tensor]:
        both = torch.cat([some["winner"], some["loser"]])
        twice = Draw(*(torch.cat([part, part]) for part in (drawn.noise, drawn.timestep, drawn.chance)))
        source, text, weight = (torch.cat([some[part], some[part]]) for part in ("source", "text", "weight"))
        winner, loser = self.denoising.errors(both, source, text, weight, twice).chunk(2)
        return winner, loser

    def reference(self, some: Mapping[str, Tensor], drawn: Draw) -> tuple[Tensor, Tensor]:
        without_adapters(self.unet)
        try:
            with torch.no_grad():
                return self.model(some, drawn)
        finally:
            with_adapters(self.unet)


def standing(pipe: InstructionPipeline, pairs: Encoded, *, draws: int = 8, seed: int = 0) -> Preference:
    """Where the model stands on these pairs, a few at a time; the same noise for each pair every time."""
    gap, right, errors = _Gap(pipe), 0.0, torch.zeros(4)
    for chunk in pairs.chunks(AT_ONCE):
        some, ids = pairs.rows(chunk, pipe.device), [pairs.ids[row] for row in chunk]
        for number in range(draws):
            shape = tuple(some["winner"].shape[1:])
            drawn = same_draw(seed, "standing", ids, number, shape, gap.denoising.timesteps)
            with torch.no_grad():
                (winner, loser), (winner0, loser0) = gap.model(some, drawn), gap.reference(some, drawn)
            right += float(((winner - loser) < (winner0 - loser0)).float().sum())
            errors += torch.stack([part.sum().cpu() for part in (winner, winner0, loser, loser0)])
    return Preference(
        right / (draws * len(pairs)), float(errors[0] / errors[1]), float(errors[2] / errors[3])
    )


def prefer(
    pipe: InstructionPipeline,
    pairs: Encoded,
    held_out: Encoded,
    schedule: Schedule,
    folder: Path,
    *,
    base: str,
    lora_rank: int,
    beta: float = BETA,
    bound: float = BOUND,
    on_step: Callable[[int, dict[str, float]], None] = lambda step, noted: None,
    on_standing: Callable[[int, Preference], None] = lambda step, where: None,
    stop: Callable[[], bool] = lambda: False,
) -> Trained:
    """Trains adapters in place so that winners are preferred, or goes on where `folder` stands.

    Args:
        pipe: after supervised steps; without them the loss does not learn (its weights are the reference).
        pairs, held_out: preferences to learn and to watch; no cluster in both.
        schedule: how; its checkpoints are where the held-out pairs are looked at.
        folder: of the checkpoint.
        base: what the base weights are; part of the training's identity.
        lora_rank: of the adapters.
        beta: strength of the tie to the reference.
        bound: largest allowed ratio of the winner's held-out error to the reference's.
        on_step, stop: as for `plantain.train.loop.training.run`.
        on_standing: told where the model stands on the held-out pairs, at each checkpoint.

    Returns:
        How it ended; when the bound was exceeded, with the weights of the last checkpoint within it, and `stopped` says
        so.

    Raises:
        InputError: as `plantain.train.loop.training.run`.
    """
    weights = make_trainable(pipe, lora_rank, schedule.seed)
    gap = _Gap(pipe)
    identity = identity_of(
        schedule,
        {
            "kind": "dpo",
            "base": base,
            "pairs": pairs.ids,
            "canvases": pairs.canvases,
            "lora_rank": lora_rank,
            "beta": beta,
            "bound": bound,
        },
    )

    def loss_of(step: int) -> tuple[Tensor, dict[str, float]]:
        some = pairs.rows(batch_of(schedule, step, pairs.canvases), pipe.device)
        drawn = draw(schedule.seed, "step", step, tuple(some["winner"].shape), gap.denoising.timesteps)
        (winner, loser), (winner0, loser0) = gap.model(some, drawn), gap.reference(some, drawn)
        inside = -0.5 * beta * ((winner - loser) - (winner0 - loser0))
        loss = -functional.logsigmoid(inside).mean()
        return loss, {"loss": float(loss.detach()), "winner": float(winner.detach().mean())}

    def enough(step: int) -> str:
        where = standing(pipe, held_out, seed=schedule.seed)
        on_standing(step, where)
        if where.winner_ratio <= bound:
            return ""
        return f"the winner's held-out error is {where.winner_ratio:.3f} of the reference's, over the bound {bound:g}"

    return run(weights, loss_of, schedule, folder, identity, on_step=on_step, stop=stop, enough=enough)
