"""LoRA of a flow-matching editor on pairs, with the loss of diffusers' own training examples (Kontext, FLUX.2).

With x the target's tokens, e noise and s the share of noise, the transformer sees (1 - s) x + s e before the tokens of
the reference and is to say e - x (Lipman et al. 2023; Esser et al. 2024). s is drawn from the scheduler's sigmas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from diffusers import FlowMatchEulerDiscreteScheduler
from diffusers.training_utils import (
    compute_density_for_timestep_sampling,
    compute_loss_weighting_for_sd3,
)
from torch import Tensor, nn

from plantain.models.diffusers.pipelines.runner import Runner
from plantain.records import InputError, derive_seed
from plantain.train.encoded import Encoded
from plantain.train.flow.adapters import make_adapters
from plantain.train.flow.conditions import TARGET, handed_again, tokens_of
from plantain.train.flow.methods import WEIGHTINGS
from plantain.train.loop.training import Schedule, Trained, batch_of, identity_of, run


class FlowMatching:
    """How well a transformer says the way from noise to encoded edits.

    Args:
        runner: of the editor.
        weighting: one of `WEIGHTINGS`.

    Raises:
        InputError: another weighting.
    """

    def __init__(self, runner: Runner, weighting: str = "none") -> None:
        if weighting not in WEIGHTINGS:
            raise InputError(f"--weighting {weighting}: choose one of {', '.join(WEIGHTINGS)}")
        self.transformer: nn.Module = runner.pipe.transformer
        self.weighting = weighting
        self.precision = runner.precision
        self.device = torch.device(runner.device)
        self.sigmas: Tensor = FlowMatchEulerDiscreteScheduler.from_config(runner.pipe.scheduler.config).sigmas

    def error(self, pairs: Encoded, number: int, seed: int, what: str, draw: int) -> Tensor:
        """Weighted squared error of one example, averaged over the tokens that show the picture: float32, a scalar.

        Args:
            pairs: encoded.
            number: of the example.
            seed, what, draw: name the noise and the share of it; both are drawn on the processor from them alone.
        """
        row = pairs.rows([number], self.device)
        noise, sigma = self.drawn(pairs.ids[number], tuple(row[TARGET].shape), seed, what, draw)
        factor = compute_loss_weighting_for_sd3(self.weighting, sigma).mean()
        return factor * self.squared(row, noise, sigma)

    def drawn(
        self, name: str, shape: tuple[int, ...], seed: int, what: str, draw: int
    ) -> tuple[Tensor, Tensor]:
        """Noise in the tokens' order, (1, places, channels), and its share, (1,), for the example of that name.

        Args:
            name: of the example.
            shape: of its target, (1, channels, h, w).
            seed, what, draw: with the name, all that both hang on.
        """
        generator = torch.Generator().manual_seed(derive_seed(seed, f"{what} {name}", draw) % 2**63)
        _, channels, height, width = shape
        noise = torch.randn((1, height * width, channels), generator=generator).to(self.device)
        share = compute_density_for_timestep_sampling(
            self.weighting, 1, logit_mean=0.0, logit_std=1.0, generator=generator
        )
        last = len(self.sigmas) - 1
        return noise, self.sigmas[(share * last).long().clamp(max=last)].to(self.device)

    def squared(self, row: Mapping[str, Tensor], noise: Tensor, sigma: Tensor) -> Tensor:
        """Squared error of the velocity, averaged over the tokens that show the picture: float32, a scalar.

        Args:
            row: of `Encoded.rows`, one example with a target.
            noise, sigma: of `drawn`.
        """
        target = tokens_of(row[TARGET])
        noisy = ((1.0 - sigma) * target + sigma * noise).to(self.precision)
        predicted = self.transformer(**handed_again(row, noisy, sigma))[0][:, : target.shape[1]]
        errors = (predicted.float() - (noise - target)).pow(2).mean(dim=2)
        weight = row["weight"].flatten(1)
        return (errors * weight).sum() / weight.sum()


def flow_fine_tune(
    runner: Runner,
    pairs: Encoded,
    schedule: Schedule,
    folder: Path,
    *,
    base: str,
    rank: int,
    weighting: str = "none",
    checkpointing: bool = False,
    start: Path | None = None,
    on_step: Callable[[int, dict[str, float]], None] = lambda step, noted: None,
    stop: Callable[[], bool] = lambda: False,
) -> Trained:
    """Trains adapters on the editor's transformer, in place, or goes on where `folder` stands.

    The examples of a batch go through the transformer one by one and their gradients are summed: a batch needs the
    memory of one example, and its texts may be of any length.

    Args:
        runner: fresh from its base weights.
        pairs: what to learn.
        schedule: how.
        folder: of the checkpoint.
        base: what the base weights are, e.g. their digest; part of the training's identity.
        rank: of the adapters.
        weighting: one of `WEIGHTINGS`.
        checkpointing: activations are computed again on the way back instead of kept; the weights become the same.
        start: a file of adapters to go on from; None for fresh ones.
        on_step, stop: as for `plantain.train.loop.training.run`.

    Raises:
        InputError: as `plantain.train.loop.training.run` and `make_adapters`.
    """
    matching = FlowMatching(runner, weighting)
    weights = make_adapters(runner, rank, schedule.seed, start)
    if checkpointing:
        runner.pipe.transformer.enable_gradient_checkpointing()
    identity = identity_of(
        schedule,
        {
            "kind": "flow",
            "base": base,
            "pairs": pairs.ids,
            "canvases": pairs.canvases,
            "lora_rank": rank,
            "weighting": weighting,
        },
    )

    def loss_of(step: int) -> tuple[Tensor, dict[str, float]]:
        *others, last = batch_of(schedule, step, pairs.canvases)
        count = len(others) + 1
        total = 0.0
        for number in others:
            part = matching.error(pairs, number, schedule.seed, "step", step) / count
            part.backward()
            total += float(part.detach())
        loss = matching.error(pairs, last, schedule.seed, "step", step) / count + total
        return loss, {"loss": float(loss.detach())}

    return run(weights, loss_of, schedule, folder, identity, on_step=on_step, stop=stop)


def flow_fixed_loss(
    runner: Runner, pairs: Encoded, *, draws: int = 16, seed: int = 0, weighting: str = "none"
) -> float:
    """Mean error on pairs, with the same noise every time: comparable before and after a training."""
    matching = FlowMatching(runner, weighting)
    with torch.no_grad():
        errors = [
            float(matching.error(pairs, number, seed, "fixed", draw))
            for number in range(len(pairs))
            for draw in range(draws)
        ]
    return sum(errors) / len(errors)
