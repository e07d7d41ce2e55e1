"""The diffusion side of a training step: what is noised, how far, and what the model should have said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from plantain.records import derive_seed
from plantain.train.latents import InstructionPipeline


@dataclass(frozen=True, slots=True)
class Draw:
    """The chance part of one step, drawn on the CPU so that every device sees the same.

    Attributes:
        noise: float32 (n, 4, h, w).
        timestep: int64 (n,), in [0, training timesteps).
        chance: float32 (n,), uniform in [0, 1); decides which condition is dropped.
    """

    noise: Tensor
    timestep: Tensor
    chance: Tensor

    def of(self, some: slice) -> Draw:
        """Those of some of the examples."""
        return Draw(self.noise[some], self.timestep[some], self.chance[some])


def draw(seed: int, what: str, number: int, shape: tuple[int, ...], timesteps: int) -> Draw:
    """The draw of one step: it depends on the seed and the step's number alone, so a resumed training repeats it."""
    generator = torch.Generator().manual_seed(derive_seed(seed, what, number) % 2**63)
    return Draw(
        torch.randn(shape, generator=generator),
        torch.randint(0, timesteps, (shape[0],), generator=generator),
        torch.rand(shape[0], generator=generator),
    )


def same_draw(
    seed: int, what: str, ids: Sequence[str], number: int, shape: tuple[int, ...], timesteps: int
) -> Draw:
    """A draw for each example that depends on its id, not on its neighbours: alike in whatever chunks they come."""
    each = [draw(seed, f"{what} {name}", number, (1, *shape), timesteps) for name in ids]
    return Draw(
        *(
            torch.cat(parts)
            for parts in zip(*((one.noise, one.timestep, one.chance) for one in each), strict=True)
        )
    )


class Denoising:
    """How well a UNet denoises encoded edits, under the pipeline's own noise schedule.

    Args:
        pipe: an InstructPix2Pix; its scheduler's settings say which noise and which target.
        bf16: the UNet computes in bfloat16 (torch's autocast); its weights, errors and gradients are float32.
    """

    def __init__(self, pipe: InstructionPipeline, *, bf16: bool = False) -> None:
        from diffusers import DDPMScheduler

        self.bf16 = bf16
        self.schedule = DDPMScheduler.from_config(pipe.scheduler.config)
        self.unet: nn.Module = pipe.unet

    @property
    def timesteps(self) -> int:
        return int(self.schedule.config.num_train_timesteps)

    def errors(self, target: Tensor, source: Tensor, text: Tensor, weight: Tensor, drawn: Draw) -> Tensor:
        """Squared error of each example, averaged over the part of its latent that shows the image: float32 (n,).

        Args:
            target: scaled latents of the image to be generated, (n, 4, h, w).
            source: latents of the image before, (n, 4, h, w), zero where the condition is dropped.
            text: text states, (n, tokens, width).
            weight: of each latent pixel, (n, 1, h, w).
            drawn: noise and timesteps.
        """
        noise = drawn.noise.to(target.device)
        timestep = drawn.timestep.to(target.device)
        noisy = self.schedule.add_noise(target, noise, timestep)
        with torch.autocast(target.device.type, torch.bfloat16, enabled=self.bf16):
            predicted = self.unet(torch.cat([noisy, source], 1), timestep, encoder_hidden_states=text).sample
        kind = self.schedule.config.prediction_type
        if kind == "epsilon":
            wanted = noise
        elif kind == "v_prediction":
            wanted = self.schedule.get_velocity(target, noise, timestep)
        else:
            raise ValueError(f"a scheduler that predicts {kind!r} cannot be trained here")
        errors = (predicted.float() - wanted.float()).pow(2).mean(dim=1, keepdim=True)
        return (errors * weight).sum(dim=(1, 2, 3)) / weight.sum(dim=(1, 2, 3))


def dropped(
    source: Tensor, text: Tensor, empty: Tensor, chance: Tensor, share: float
) -> tuple[Tensor, Tensor]:
    """Conditions with some taken away, so that guidance by text and by image can be learned (InstructPix2Pix, 3.2.1).

    Below `share` only the text goes, up to twice it both, up to three times it only the image.

    Args:
        source, text: conditions, (n, ...).
        empty: text states of "", (1, tokens, width).
        chance: uniform in [0, 1), (n,).
        share: probability of each of the three cases.
    """
    chance = chance.to(source.device)
    no_text = (chance < 2 * share)[:, None, None]
    no_image = ((chance >= share) & (chance < 3 * share))[:, None, None, None]
    return torch.where(no_image, torch.zeros_like(source), source), torch.where(no_text, empty, text)
