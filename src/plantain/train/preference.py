"""Direct preference optimisation on successes and failures of the same image and task, with a brake.

Diffusion-DPO (Wallace et al. 2024, eq. 14) and Flow-DPO (Liu et al. 2025, with its constant beta) have one loss over
squared errors: of noise in the one, of velocity in the other. It rewards a gap between winner and loser, which can also
grow by making both worse. So the winner's own error is watched on held-out pairs against the reference model's, and the
training ends when it exceeds a stated bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from plantain.train.encoded import Encoded
from plantain.train.loop.training import Schedule, Trained, batch_of, identity_of, run
from plantain.train.preference_plan import BETA, BOUND, Preference


@dataclass(frozen=True, slots=True)
class PreferenceErrors:
    """Squared errors, averaged over the part that shows the picture, under one noise for all four: float32 (n,) each.

    Attributes:
        winner, loser: of the model.
        winner_reference, loser_reference: of its reference, without a gradient.
    """

    winner: Tensor
    loser: Tensor
    winner_reference: Tensor
    loser_reference: Tensor

    @property
    def gap(self) -> Tensor:
        """How much more the winner's error grew than the loser's; below 0 where the winner is preferred."""
        return (self.winner - self.winner_reference) - (self.loser - self.loser_reference)


class PreferenceModel(Protocol):
    """A model that learns beside the reference that it was."""

    @property
    def kind(self) -> str:
        """Of its training: "dpo" or "flow-dpo"; a part of what a checkpoint is of."""
        ...

    @property
    def at_once(self) -> int:
        """Examples that go through the network together."""
        ...

    def make_adapters(self, rank: int, seed: int) -> dict[str, nn.Parameter]:
        """What learns, by name; until it is changed the model is its own reference."""
        ...

    def errors(
        self, pairs: Encoded, numbers: Sequence[int], seed: int, what: str, draw: int
    ) -> PreferenceErrors:
        """Errors of some examples of one canvas; the noise of each hangs on seed, `what`, its id and `draw` alone."""
        ...


def preference_loss(errors: PreferenceErrors, beta: float) -> Tensor:
    """-log sigmoid(-beta / 2 ((w - w0) - (l - l0))) of each example: float32 (n,), log 2 where nothing was learned."""
    return -functional.logsigmoid(-0.5 * beta * errors.gap)


def standing(model: PreferenceModel, pairs: Encoded, *, draws: int = 8, seed: int = 0) -> Preference:
    """Where the model stands on these pairs, a few at a time; the same noise for each pair every time."""
    right, sums = 0.0, torch.zeros(4)
    for chunk in pairs.chunks(model.at_once):
        for number in range(draws):
            with torch.no_grad():
                found = model.errors(pairs, chunk, seed, "standing", number)
            right += float((found.gap < 0).float().sum())
            each = (found.winner, found.winner_reference, found.loser, found.loser_reference)
            sums += torch.stack([part.sum().cpu() for part in each])
    return Preference(right / (draws * len(pairs)), float(sums[0] / sums[1]), float(sums[2] / sums[3]))


def prefer(
    model: PreferenceModel,
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
        model: after supervised steps; without them the loss does not learn (it is the reference).
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
    weights = model.make_adapters(lora_rank, schedule.seed)
    identity = identity_of(
        schedule,
        {
            "kind": model.kind,
            "base": base,
            "pairs": pairs.ids,
            "canvases": pairs.canvases,
            "lora_rank": lora_rank,
            "beta": beta,
            "bound": bound,
        },
    )

    def loss_of(step: int) -> tuple[Tensor, dict[str, float]]:
        batch = batch_of(schedule, step, pairs.canvases)
        *others, last = [batch[at : at + model.at_once] for at in range(0, len(batch), model.at_once)]

        def part(chunk: list[int]) -> tuple[Tensor, float]:
            errors = model.errors(pairs, chunk, schedule.seed, "step", step)
            loss = preference_loss(errors, beta).sum() / len(batch)
            return loss, float(errors.winner.detach().sum()) / len(batch)

        total, winner = 0.0, 0.0
        for chunk in others:
            loss, of_winner = part(chunk)
            loss.backward()
            total, winner = total + float(loss.detach()), winner + of_winner
        loss, of_winner = part(last)
        loss = loss + total
        return loss, {"loss": float(loss.detach()), "winner": winner + of_winner}

    def enough(step: int) -> str:
        where = standing(model, held_out, seed=schedule.seed)
        on_standing(step, where)
        if where.winner_ratio <= bound:
            return ""
        return f"the winner's held-out error is {where.winner_ratio:.3f} of the reference's, over the bound {bound:g}"

    return run(weights, loss_of, schedule, folder, identity, on_step=on_step, stop=stop, enough=enough)
