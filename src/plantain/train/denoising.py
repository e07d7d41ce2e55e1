"""Denoising of an InstructPix2Pix in training: encoded examples, noise, errors, dropped conditions, trainable weights.

Images are encoded on the canvas on which the editor works, so training sees exactly what editing sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from plantain.models.diffusers.methods import METHODS
from plantain.models.frames import Frame
from plantain.pixels.arrays import Pixels
from plantain.records import derive_seed
from plantain.train.base import METHOD, InstructionPipeline

TARGETS = ("to_q", "to_k", "to_v", "to_out.0")
"""Layers with LoRA adapters: the projections of every attention."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """The encoding of images and texts for one pipeline at one size.

    Attributes:
        pipe: the pipeline, of which the frozen VAE and text encoder are used.
        side: longer side of the canvas in pixels (`[providers.diffusers]` `side`).
    """

    pipe: InstructionPipeline
    side: int

    def condition(self, pixels: Pixels) -> Tensor:
        """Encode an original, uint8 (H, W, 3), as the condition of an edit: unscaled latents, float32 (4, h, w)."""
        canvas = self._frame(pixels).enter(pixels)
        reference = next(self.pipe.vae.parameters())
        image = torch.from_numpy(np.ascontiguousarray(canvas)).permute(2, 0, 1)[None]
        with torch.no_grad():
            image = image.to(reference.device, reference.dtype) / 127.5 - 1.0
            latents: Tensor = self.pipe.vae.encode(image).latent_dist.mode()[0].float()
        return latents

    def target(self, pixels: Pixels) -> Tensor:
        """Encode an edited image, uint8 (H, W, 3), as the target: latents, float32 (4, h, w), times scaling factor."""
        return self.condition(pixels) * self.pipe.vae.config.scaling_factor

    def weight(self, pixels: Pixels) -> Tensor:
        """Return how much of each latent pixel is inside the image and not padding: float32 (1, h, w) in [0, 1]."""
        frame = self._frame(pixels)
        inside = torch.zeros(1, frame.canvas_height, frame.canvas_width)
        inside[:, frame.top : frame.top + frame.inner_height, frame.left : frame.left + frame.inner_width] = (
            1.0
        )
        return nn.functional.avg_pool2d(inside, self.pipe.vae_scale_factor)

    def text(self, text: str) -> Tensor:
        """Encode a text to hidden states, float32 (tokens, width); text beyond the model's length is cut."""
        tokenizer = self.pipe.tokenizer
        tokens = tokenizer(
            [text],
            padding="max_length",
            max_length=tokenizer.model_max_length,
            truncation=True,
            return_tensors="pt",
        )
        device = next(self.pipe.text_encoder.parameters()).device
        with torch.no_grad():
            states: Tensor = self.pipe.text_encoder(tokens.input_ids.to(device))[0][0].float()
        return states

    def _frame(self, pixels: Pixels) -> Frame:
        return METHODS[METHOD].frame.frame(pixels.shape[1], pixels.shape[0], self.side)


@dataclass(frozen=True, slots=True)
class Draw:
    """Random numbers of one step, drawn on the CPU so that every device sees the same.

    Attributes:
        noise: float32 (n, 4, h, w).
        timestep: int64 (n,), in [0, training timesteps).
        chance: float32 (n,), uniform in [0, 1); decides which condition is dropped.
    """

    noise: Tensor
    timestep: Tensor
    chance: Tensor

    def twice(self) -> Draw:
        """Repeat the random numbers, so that two sets of examples, joined to one batch, get the same ones."""
        return Draw(*(torch.cat([part, part]) for part in (self.noise, self.timestep, self.chance)))


def draw_by_id(
    seed: int, what: str, ids: Sequence[str], number: int, shape: tuple[int, ...], timesteps: int
) -> Draw:
    """Draw noise (n, *shape), timesteps and chances (n,) that only depend on seed, `what`, id and `number`.

    Args:
        what: purpose of the draw, e.g. "step"; `number`: its number, such as the training step.
        ids: ids of the n examples.
        shape: shape of one example's noise.
        timesteps: number of timesteps of the noise schedule.
    """
    noise, timestep, chance = [], [], []
    for name in ids:
        generator = torch.Generator().manual_seed(derive_seed(seed, f"{what} {name}", number) % 2**63)
        noise.append(torch.randn((1, *shape), generator=generator))
        timestep.append(torch.randint(0, timesteps, (1,), generator=generator))
        chance.append(torch.rand(1, generator=generator))
    return Draw(torch.cat(noise), torch.cat(timestep), torch.cat(chance))


class Denoising:
    """The denoising error of a UNet on encoded edits, with the pipeline's noise schedule.

    Args:
        pipe: the pipeline, whose scheduler defines noise and target.
    """

    def __init__(self, pipe: InstructionPipeline) -> None:
        from diffusers import DDPMScheduler

        self.schedule = DDPMScheduler.from_config(pipe.scheduler.config)
        self.unet: nn.Module = pipe.unet

    @property
    def timesteps(self) -> int:
        return int(self.schedule.config.num_train_timesteps)

    def errors(self, target: Tensor, source: Tensor, text: Tensor, weight: Tensor, drawn: Draw) -> Tensor:
        """Return each example's squared error, averaged over the latents inside the image: float32 (n,).

        Args:
            target: scaled latents of the image to be generated, (n, 4, h, w).
            source: latents of the original, (n, 4, h, w), zero if the condition is dropped.
            text: text states, (n, tokens, width).
            weight: weight of each latent pixel, (n, 1, h, w).
            drawn: noise and timesteps.
        """
        noise = drawn.noise.to(target.device)
        timestep = drawn.timestep.to(target.device)
        noisy = self.schedule.add_noise(target, noise, timestep)
        predicted = self.unet(torch.cat([noisy, source], 1), timestep, encoder_hidden_states=text).sample
        velocity = self.schedule.config.prediction_type == "v_prediction"
        wanted = self.schedule.get_velocity(target, noise, timestep) if velocity else noise
        errors = (predicted - wanted).pow(2).mean(dim=1, keepdim=True)
        return (errors * weight).sum(dim=(1, 2, 3)) / weight.sum(dim=(1, 2, 3))


def drop_conditions(
    source: Tensor, text: Tensor, empty: Tensor, chance: Tensor, share: float
) -> tuple[Tensor, Tensor]:
    """Drop conditions at random, as classifier-free guidance needs (InstructPix2Pix, 3.2.1); return (source, text).

    For a `chance` below `share` only the text is dropped, up to twice that both, up to three times only the image.

    Args:
        source, text: conditions, (n, ...).
        empty: text states of "", (n, tokens, width).
        chance: uniform in [0, 1), (n,).
        share: probability of each of the three cases.
    """
    chance = chance.to(source.device)
    no_text = (chance < 2 * share)[:, None, None]
    no_image = ((chance >= share) & (chance < 3 * share))[:, None, None, None]
    return torch.where(no_image, torch.zeros_like(source), source), torch.where(no_text, empty, text)


def make_trainable(pipe: InstructionPipeline, lora_rank: int | None, seed: int) -> dict[str, nn.Parameter]:
    """Freeze all weights of a pipeline except those to train, and return these by name.

    Args:
        pipe: the pipeline whose UNet is trained.
        lora_rank: rank of new adapters; None to train the whole UNet.
        seed: seed of the adapters' initial weights.
    """
    for part in (pipe.vae, pipe.text_encoder, pipe.unet):
        part.requires_grad_(False)
        part.eval()
    if lora_rank is None:
        pipe.unet.requires_grad_(True)
    else:
        from peft import LoraConfig

        torch.manual_seed(seed)
        config = LoraConfig(
            r=lora_rank, lora_alpha=lora_rank, init_lora_weights="gaussian", target_modules=list(TARGETS)
        )
        pipe.unet.add_adapter(config)
    return {name: weight for name, weight in pipe.unet.named_parameters() if weight.requires_grad}


Parts = Mapping[str, Tensor]


class _Named(Protocol):
    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=_Named)


class Encoded:
    """Encoded training examples in memory: named tensors, about 0.5 MB for an example of 512 pixels.

    Args:
        ids: ids of the examples, in order.
        read: yields examples by id.
        encode: encodes an example to named tensors; "source" is (channels, height, width).

    Attributes:
        ids: ids of the examples.
        canvases: height and width of each example's latents; all examples of a batch share one canvas.

    Raises:
        InputError: as `read`.
    """

    def __init__(
        self,
        ids: Sequence[str],
        read: Callable[[Sequence[str]], Iterable[E]],
        encode: Callable[[E], Parts],
    ) -> None:
        parts = {
            example.id: {name: value.detach().float().cpu() for name, value in encode(example).items()}
            for example in read(ids)
        }
        self.ids = tuple(ids)
        self._parts = [parts[name] for name in self.ids]
        shapes = [one["source"].shape for one in self._parts]
        self.canvases = tuple((int(shape[-2]), int(shape[-1])) for shape in shapes)

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, numbers: Sequence[int], device: torch.device) -> dict[str, Tensor]:
        """Return the tensors of these examples, all of one canvas, by name: float32 (n, ...) on a device."""
        chosen = [self._parts[number] for number in numbers]
        return {part: torch.stack([one[part] for one in chosen]).to(device) for part in chosen[0]}

    def chunks(self, most: int) -> list[list[int]]:
        """Divide the indices of all examples into chunks of at most `most`, each of one canvas size."""
        found = []
        for canvas in dict.fromkeys(self.canvases):
            alike = [number for number, other in enumerate(self.canvases) if other == canvas]
            found += [alike[at : at + most] for at in range(0, len(alike), most)]
        return found
