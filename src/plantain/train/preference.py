"""Diffusion-DPO (Wallace et al. 2024) on successes and failures of the same image and task, with a brake.

The loss rewards a gap between winner and loser, which can also grow by making both worse. So the winner's own denoising
error is watched on held-out pairs against the reference model's, and the training ends when it exceeds a stated bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from plantain.train.latents import Encoder, InstructionPipeline
from plantain.train.noise import Denoising, Draw, draw
from plantain.train.pairs import PreferencePair
from plantain.train.training import Schedule, Trained, batch_of, identity_of, run
from plantain.train.weights import make_trainable, with_adapters, without_adapters

BETA = 5000.0
"""Strength of the tie to the reference model (Wallace et al. 2024, 5.1)."""

BOUND = 1.05
"""The winner's error on held-out pairs may grow to so many times the reference's before training ends."""


@dataclass(frozen=True, slots=True)
class EncodedPreferences:
    """Preferences as the model sees them: latents (n, 4, h, w) and text states (n, tokens, width)."""

    ids: tuple[str, ...]
    source: Tensor
    winner: Tensor
    loser: Tensor
    text: Tensor


@dataclass(frozen=True, slots=True)
class Preference:
    """How a model stands to its reference on some pairs, with fixed noise.

    Attributes:
        accuracy: share of pairs and draws whose winner gained more on its loser than in the reference, in [0, 1].
        winner_ratio: the winner's error over the reference's; 1 at the start.
        loser_ratio: the same of the loser.
    """

    accuracy: float
    winner_ratio: float
    loser_ratio: float


def encode_preferences(encoder: Encoder, pairs: Iterable[PreferencePair]) -> EncodedPreferences:
    """Encodes preferences one by one; pixels are not kept.

    Raises:
        ValueError: there is none.
    """
    ids, sources, winners, losers, texts = [], [], [], [], []
    for pair in pairs:
        ids.append(pair.id)
        sources.append(encoder.condition(pair.before))
        winners.append(encoder.target(pair.winner))
        losers.append(encoder.target(pair.loser))
        texts.append(encoder.texts([pair.instruction])[0])
    if not ids:
        raise ValueError("no preferences to learn from")
    return EncodedPreferences(
        tuple(ids), torch.stack(sources), torch.stack(winners), torch.stack(losers), torch.stack(texts)
    )


class _Gap:
    """Errors of winner and loser under the same noise, of the model and of its reference (adapters off)."""

    def __init__(self, pipe: InstructionPipeline, pairs: EncodedPreferences) -> None:
        self.denoising, self.pairs, self.unet = Denoising(pipe), pairs, pipe.unet

    def model(self, rows: list[int], drawn: Draw) -> tuple[Tensor, Tensor]:
        pairs = self.pairs
        both = torch.cat([pairs.winner[rows], pairs.loser[rows]])
        twice = Draw(*(torch.cat([part, part]) for part in (drawn.noise, drawn.timestep, drawn.chance)))
        source, text = (torch.cat([part[rows], part[rows]]) for part in (pairs.source, pairs.text))
        winner, loser = self.denoising.errors(both, source, text, twice).chunk(2)
        return winner, loser

    def reference(self, rows: list[int], drawn: Draw) -> tuple[Tensor, Tensor]:
        without_adapters(self.unet)
        try:
            with torch.no_grad():
                return self.model(rows, drawn)
        finally:
            with_adapters(self.unet)

    def drawn(self, seed: int, what: str, number: int, rows: list[int]) -> Draw:
        shape = tuple(self.pairs.winner[rows].shape)
        return draw(seed, what, number, shape, self.denoising.timesteps)


def standing(
    pipe: InstructionPipeline, pairs: EncodedPreferences, *, draws: int = 8, seed: int = 0
) -> Preference:
    """Where the model stands on these pairs; the same noise every time."""
    gap, rows = _Gap(pipe, pairs), list(range(len(pairs.ids)))
    right, errors = 0.0, torch.zeros(4)
    for number in range(draws):
        drawn = gap.drawn(seed, "standing", number, rows)
        with torch.no_grad():
            (winner, loser), (winner0, loser0) = gap.model(rows, drawn), gap.reference(rows, drawn)
        right += float(((winner - loser) < (winner0 - loser0)).float().mean())
        errors += torch.stack([part.mean().cpu() for part in (winner, winner0, loser, loser0)])
    return Preference(right / draws, float(errors[0] / errors[1]), float(errors[2] / errors[3]))


def prefer(
    pipe: InstructionPipeline,
    pairs: EncodedPreferences,
    held_out: EncodedPreferences,
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
        on_step, stop: as for `plantain.train.training.run`.
        on_standing: told where the model stands on the held-out pairs, at each checkpoint.

    Returns:
        How it ended; when the bound was exceeded, with the weights of the last checkpoint within it, and `stopped` says
        so.

    Raises:
        InputError: as `plantain.train.training.run`.
    """
    weights = make_trainable(pipe, lora_rank, schedule.seed)
    gap = _Gap(pipe, pairs)
    identity = identity_of(
        schedule,
        {
            "kind": "dpo",
            "base": base,
            "pairs": pairs.ids,
            "lora_rank": lora_rank,
            "beta": beta,
            "bound": bound,
        },
    )

    def loss_of(step: int) -> tuple[Tensor, dict[str, float]]:
        rows = batch_of(schedule, step, len(pairs.ids))
        drawn = gap.drawn(schedule.seed, "step", step, rows)
        (winner, loser), (winner0, loser0) = gap.model(rows, drawn), gap.reference(rows, drawn)
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
