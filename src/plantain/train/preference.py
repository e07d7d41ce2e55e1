"""Diffusion-DPO of an InstructPix2Pix (Wallace et al. 2024, eq. 14), ended before the winner suffers.

The loss rewards a gap between winner and loser, which also grows when both become worse. So the winner's own error is
measured on monitored pairs against the reference model's, and training ends when it exceeds a bound. The model is a
UNet with LoRA adapters; its reference is the same with adapters off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from plantain.train.base import InstructionPipeline
from plantain.train.checkpoints import Checkpoint
from plantain.train.denoising import Denoising, Draw, Encoder, draw_by_id, make_trainable
from plantain.train.encoded import Encoded
from plantain.train.pairs import PreferencePair
from plantain.train.plans import PreferencePlan
from plantain.train.training import AT_ONCE, Schedule, Session, identity_of, run


@dataclass(frozen=True, slots=True)
class Preference:
    """How a model compares with its reference on some pairs, with fixed noise.

    Attributes:
        accuracy: share of pairs and draws whose winner gained more than its loser, in [0, 1].
        winner_ratio: the winner's error divided by the reference's; 1 at the start.
        loser_ratio: the same for the loser.
    """

    accuracy: float
    winner_ratio: float
    loser_ratio: float


@dataclass(frozen=True, slots=True)
class PreferenceErrors:
    """Squared errors of each example, of the model and of its reference: float32 (n,)."""

    winner: Tensor
    loser: Tensor
    winner_reference: Tensor
    loser_reference: Tensor

    @property
    def gap(self) -> Tensor:
        """(w - w0) - (l - l0); negative if the winner gained more than the loser."""
        return (self.winner - self.winner_reference) - (self.loser - self.loser_reference)


def encode_preference(encoder: Encoder, pair: PreferencePair) -> dict[str, Tensor]:
    """Return a preference as the UNet sees it: latents of three images, weights and text states."""
    return {
        "source": encoder.condition(pair.before),
        "winner": encoder.target(pair.winner),
        "loser": encoder.target(pair.loser),
        "weight": encoder.weight(pair.before),
        "text": encoder.text(pair.instruction),
    }


def preference_loss(errors: PreferenceErrors, beta: float) -> Tensor:
    """Return -log sigmoid(-beta / 2 ((w - w0) - (l - l0))) per example: float32 (n,); log 2 before training."""
    return -functional.logsigmoid(-0.5 * beta * errors.gap)


def preference_errors(
    pipe: InstructionPipeline, pairs: Encoded, numbers: Sequence[int], seed: int, what: str, number: int
) -> PreferenceErrors:
    """Return the errors of some examples of one canvas; noise depends on seed, `what`, `number` and the id only."""
    denoising = Denoising(pipe)
    rows, ids = pairs.rows(numbers, pipe.device), [pairs.ids[row] for row in numbers]
    drawn = draw_by_id(seed, what, ids, number, tuple(rows["winner"].shape[1:]), denoising.timesteps).twice()
    pipe.unet.disable_adapters()
    try:
        with torch.no_grad():
            reference = _winner_and_loser(denoising, rows, drawn)
    finally:
        pipe.unet.enable_adapters()
    return PreferenceErrors(*_winner_and_loser(denoising, rows, drawn), *reference)


def compare_with_reference(
    pipe: InstructionPipeline, pairs: Encoded, *, draws: int = 8, seed: int = 0, at_once: int = AT_ONCE
) -> Preference:
    """Compare the model with its reference on pairs, with the same noise for each pair every time."""
    right, sums = 0.0, torch.zeros(4)
    for chunk in pairs.chunks(at_once):
        for number in range(draws):
            with torch.no_grad():
                found = preference_errors(pipe, pairs, chunk, seed, "standing", number)
            right += float((found.gap < 0).float().sum())
            each = (found.winner, found.winner_reference, found.loser, found.loser_reference)
            sums += torch.stack([part.sum().cpu() for part in each])
    return Preference(right / (draws * len(pairs)), float(sums[0] / sums[1]), float(sums[2] / sums[3]))


def prefer(
    pipe: InstructionPipeline,
    pairs: Encoded,
    monitored: Encoded,
    plan: PreferencePlan,
    session: Session,
    *,
    base: str,
    measured: Callable[[int, Preference], None] = lambda step, preference: None,
) -> Checkpoint:
    """Train adapters in place so that winners are preferred, or resume from the session's checkpoint.

    Args:
        pipe: after supervised steps, without which the loss does not learn.
        pairs, monitored: preferences to train on and to measure; no cluster is in both.
        plan: settings; every `plan.every` steps the monitored pairs are measured.
        session: checkpoint, progress and stop.
        base: identifies the base weights.
        measured: receives each measurement with its step.

    Returns:
        How it ended; if the bound was exceeded, with the weights of the last checkpoint within it.

    Raises:
        InputError: as `run`.
    """
    schedule = Schedule(plan.steps, plan.rate, plan.batch, plan.seed, plan.every)
    weights = make_trainable(pipe, plan.lora_rank, plan.seed)
    settings = {"lora_rank": plan.lora_rank, "beta": plan.beta, "bound": plan.bound}
    identity = identity_of(
        schedule, kind="dpo", base=base, pairs=pairs.ids, canvases=pairs.canvases, **settings
    )

    def loss_of(numbers: list[int], step: int) -> Tensor:
        errors = preference_errors(pipe, pairs, numbers, plan.seed, "step", step)
        return preference_loss(errors, plan.beta).sum()

    def reason_to_end(step: int) -> str:
        found = compare_with_reference(pipe, monitored, seed=plan.seed)
        measured(step, found)
        if found.winner_ratio <= plan.bound:
            return ""
        return (
            f"the winner's monitored error is {found.winner_ratio:.3f} of the reference's, over the bound "
            f"{plan.bound:g}"
        )

    return run(weights, loss_of, pairs.canvases, schedule, session, identity, reason_to_end=reason_to_end)


def _winner_and_loser(denoising: Denoising, rows: Mapping[str, Tensor], drawn: Draw) -> tuple[Tensor, Tensor]:
    both = torch.cat([rows["winner"], rows["loser"]])
    source, text, weight = (torch.cat([rows[part], rows[part]]) for part in ("source", "text", "weight"))
    winner, loser = denoising.errors(both, source, text, weight, drawn).chunk(2)
    return winner, loser
