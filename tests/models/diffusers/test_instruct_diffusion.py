from __future__ import annotations

import math
from collections.abc import Callable

import torch

from plantain.models.diffusers.jobs import Loading
from plantain.models.diffusers.pipelines.stable_diffusion import InstructDiffusionRunner, identity


@torch.inference_mode()
def test_agrees_with_an_explicit_loop_of_its_own_rule(tiny_loading: Callable[[str], Loading]) -> None:
    """InstructDiffusion's update written out: three predictions, (text, image), (none, image), (text, none)."""
    pipe = InstructDiffusionRunner(tiny_loading("instruct-diffusion"), "cpu").pipe
    text, image = 5.0, 1.25
    pixels = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    guidance, image_guidance = identity(text, image)
    done = pipe(
        "Remove the mole",
        image=pixels,
        num_inference_steps=6,
        guidance_scale=guidance,
        image_guidance_scale=image_guidance,
        generator=torch.Generator().manual_seed(2),
        output_type="latent",
    ).images

    encode = lambda words: pipe.text_encoder(  # noqa: E731
        pipe.tokenizer(
            words, padding="max_length", max_length=77, truncation=True, return_tensors="pt"
        ).input_ids
    )[0]
    prompt, empty = encode("Remove the mole"), encode("")
    seen = pipe.vae.encode(2.0 * pixels - 1.0).latent_dist.mode()
    unseen = torch.zeros_like(seen)
    generator = torch.Generator().manual_seed(2)
    scheduler = pipe.scheduler
    scheduler.set_timesteps(6)
    latents = torch.randn(seen.shape, generator=generator) * scheduler.init_noise_sigma
    for time in scheduler.timesteps:
        scaled = scheduler.scale_model_input(latents, time)
        both, without_text, without_image = (
            pipe.unet(torch.cat([scaled, shown], dim=1), time, encoder_hidden_states=words).sample
            for words, shown in ((prompt, seen), (empty, seen), (prompt, unseen))
        )
        noise = (
            0.5 * (without_text + without_image)
            + text * (both - without_text)
            + image * (both - without_image)
        )
        latents = scheduler.step(noise, time, latents, generator=generator).prev_sample
    assert math.isclose(float((latents - done).abs().max()), 0.0, abs_tol=1e-4 * float(latents.abs().max()))
