"""InstructDiffusion (Geng et al. 2023), run inside the InstructPix2Pix loop by an identity of their guidances.

With e(text, image) the predicted noise, InstructDiffusion steps along

    0.5 * (e(0, i) + e(t, 0)) + s_t * (e(t, i) - e(0, i)) + s_i * (e(t, i) - e(t, 0)),

and InstructPix2Pix, whose third prediction we hand the prompt as well, along

    e(t, 0) + g * (e(t, i) - e(0, i)) + h * (e(0, i) - e(t, 0)).

Both agree for g = s_t + s_i and h = 0.5 + s_i.
"""

from __future__ import annotations

import torch
from diffusers import StableDiffusionInstructPix2PixPipeline

from plantain.models.diffusers.jobs import Steering
from plantain.models.diffusers.pipelines import instruct_pix2pix, runner


class InstructDiffusionPipeline(StableDiffusionInstructPix2PixPipeline):  # type: ignore[misc]  # diffusers is untyped
    """InstructPix2Pix whose third prediction, of no image, still reads the prompt."""

    def _encode_prompt(self, *args: object, **kwargs: object) -> torch.Tensor:
        embedded: torch.Tensor = super()._encode_prompt(*args, **kwargs)
        if self.do_classifier_free_guidance:
            prompt, empty, _ = embedded.chunk(3)
            embedded = torch.cat([prompt, empty, prompt])
        return embedded


def identity(text: float, image: float) -> tuple[float, float]:
    """InstructDiffusion's two guidances (cfg_text, cfg_image) as InstructPix2Pix's: 5.0 and 1.25 are 6.25 and 1.75."""
    return text + image, 0.5 + image


class InstructDiffusionRunner(instruct_pix2pix.InstructPix2PixRunner):
    """Takes InstructDiffusion's own guidances."""

    pipeline_class = InstructDiffusionPipeline

    def guidance(self, steering: Steering) -> dict[str, object]:
        text = 5.0 if steering.guidance is None else steering.guidance
        image = 1.25 if steering.image_guidance is None else steering.image_guidance
        guidance, image_guidance = identity(text, image)
        return runner.given(
            num_inference_steps=steering.steps, guidance_scale=guidance, image_guidance_scale=image_guidance
        )
