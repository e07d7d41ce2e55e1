"""A pipeline's reference has the size of its canvas, as the pipeline's own code sizes it; and its image tokens
have the positions of the language model's own code."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch
from diffusers.pipelines.flux2.image_processor import Flux2ImageProcessor
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit as edit
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as plus
from PIL import Image

from plantain.models.diffusers.jobs import Loading
from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.pipelines.runner import runner_for
from plantain.models.diffusers.pipelines.stable_diffusion import InstructDiffusionRunner, identity

SIZES = [
    (width, height)
    for width, height in product(range(200, 1600, 41), repeat=2)
    if 1 / 3 <= width / height <= 3
]
"""Every aspect from 1:3 to 3:1 in steps that are no multiple of anything; 512 x 223 and 409 x 512 come on top."""
SIZES += [(512, 223), (409, 512), (1024, 1024), (2048, 1024), (3000, 1000)]


def flux2(width: int, height: int, side: int) -> tuple[int, int]:
    """`__call__` of the FLUX.2 pipeline: beyond 1024 squared the reference shrinks, then it is cut to 16s."""
    seen = Flux2ImageProcessor._resize_if_exceeds_area(Image.new("1", (width, height)), 1024 * 1024)
    return seen.width // 16 * 16, seen.height // 16 * 16


def qwen(width: int, height: int, side: int) -> tuple[int, int]:
    found = edit.calculate_dimensions(side * side, width / height)[:2]
    assert found == plus.calculate_dimensions(side * side, width / height)
    return int(found[0]), int(found[1])


@pytest.mark.parametrize("side", [512, 768, 1024, 1280])
@pytest.mark.parametrize(
    ("method", "rule"),
    [("flux2-klein", flux2), ("flux2", flux2), ("qwen-image-edit", qwen), ("qwen-image-edit-plus", qwen)],
)
def test_canvas_is_the_reference_at_every_aspect(
    method: str, rule: Callable[[int, int, int], tuple[int, int]], side: int
) -> None:
    policy = METHODS[method].frame
    canvases = {policy.frame(*size, side).canvas for size in SIZES}
    assert len(canvases) > 10
    assert {canvas: rule(*canvas, side) for canvas in canvases} == {canvas: canvas for canvas in canvases}


@pytest.mark.parametrize("method", ["qwen-image-edit", "qwen-image-edit-plus"])
def test_image_tokens_get_the_models_positions(method: str, tiny_loading: Callable[[str], Loading]) -> None:
    """Positions that reach the language model, against `get_rope_index` of transformers; without the hook: none."""
    runner = runner_for(tiny_loading(method), "cpu")
    encoder, pipe = runner.pipe.text_encoder, runner.pipe
    asked: list[dict[str, torch.Tensor]] = []
    placed: list[torch.Tensor | None] = []
    encoder.register_forward_pre_hook(lambda _, args, inputs: asked.append(dict(inputs)), with_kwargs=True)
    encoder.model.language_model.register_forward_pre_hook(
        lambda _, args, inputs: placed.append(inputs.get("position_ids")), with_kwargs=True
    )
    image = Image.new("RGB", (112, 84), "grey")
    pipe.encode_prompt(image=[image] if method.endswith("plus") else image, prompt="brighter", device="cpu")
    (inputs,) = asked
    patches = inputs["input_ids"] == encoder.config.image_token_id
    assert patches.sum() == inputs["image_grid_thw"].prod() // 4
    expected, _ = encoder.model.get_rope_index(
        inputs["input_ids"],
        mm_token_type_ids=patches.int(),
        image_grid_thw=inputs["image_grid_thw"],
        attention_mask=inputs["attention_mask"],
    )
    assert placed[0] is not None
    assert torch.equal(placed[0][-3:], expected)
    height, width = expected[1, 0][patches[0]], expected[2, 0][patches[0]]
    assert len(set(height.tolist())) > 1
    assert not torch.equal(height, width)


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
