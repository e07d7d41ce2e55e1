"""What a pipeline looks at has the size of what it draws, as the pipeline's own code sizes it; and its image tokens
stand where the language model's own code puts them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from diffusers.pipelines.flux2.image_processor import Flux2ImageProcessor
from diffusers.pipelines.longcat_image import pipeline_longcat_image_edit as longcat_edit
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit as edit
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_inpaint as inpaint
from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as plus
from PIL import Image

from plantain.models.diffusers.jobs import Loading
from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.pipelines.runner import runner_for
from plantain.models.frames import FramePolicy

LOOKING = (
    "flux-kontext",
    "flux-kontext-inpaint",
    "flux2",
    "flux2-klein",
    "longcat-image-edit",
    "qwen-image-edit",
    "qwen-image-edit-inpaint",
    "qwen-image-edit-plus",
)
"""Methods that look at a reference beside what they draw."""

SIZES = [
    (width, height)
    for width, height in product(range(200, 1600, 41), repeat=2)
    if 1 / 3 <= width / height <= 3
]
"""Every aspect from 1:3 to 3:1 in steps that are no multiple of anything; 512 x 223 and 409 x 512 come on top."""
SIZES += [(512, 223), (409, 512), (1024, 1024), (2048, 1024), (3000, 1000)]


def flux2(width: int, height: int, side: int) -> tuple[int, int]:
    """`__call__` of both FLUX.2 pipelines: beyond 1024 squared the reference shrinks, then it is cut to 16s."""
    seen = Flux2ImageProcessor._resize_if_exceeds_area(Image.new("1", (width, height)), 1024 * 1024)
    return seen.width // 16 * 16, seen.height // 16 * 16


def qwen(width: int, height: int, side: int) -> tuple[int, int]:
    found = edit.calculate_dimensions(side * side, width / height)[:2]
    assert found == plus.calculate_dimensions(side * side, width / height)
    assert found == inpaint.calculate_dimensions(side * side, width / height)[:2]
    return int(found[0]), int(found[1])


def longcat(width: int, height: int, side: int) -> tuple[int, int]:
    found = longcat_edit.calculate_dimensions(side * side, width / height)
    return int(found[0]), int(found[1])


@pytest.mark.parametrize("side", [512, 768, 1024, 1280])
@pytest.mark.parametrize(
    ("method", "rule"),
    [
        ("flux2-klein", flux2),
        ("flux2", flux2),
        ("qwen-image-edit", qwen),
        ("qwen-image-edit-plus", qwen),
        ("qwen-image-edit-inpaint", qwen),
        ("longcat-image-edit", longcat),
    ],
)
def test_canvas_is_the_reference_at_every_aspect(
    method: str, rule: Callable[[int, int, int], tuple[int, int]], side: int
) -> None:
    policy = METHODS[method].frame
    canvases = {policy.frame(*size, side).canvas for size in SIZES}
    assert len(canvases) > 10
    assert {canvas: rule(*canvas, side) for canvas in canvases} == {canvas: canvas for canvas in canvases}


MEDEBENCH_SIDE = 512
"""Its paper says 512 pixels wide; of the published ones some are 512 at their longer side (336 x 512, 409 x 512)."""

MEDEBENCH_SIZES = sorted(
    {
        size
        for other in range(MEDEBENCH_SIDE // 3 + 1, 3 * MEDEBENCH_SIDE + 1)
        for size in ((MEDEBENCH_SIDE, other), (other, MEDEBENCH_SIDE))
    }
)
"""Every size with such a side from 1:3 to 3:1, more than its 1,182 samples can have."""


def kontext(width: int, height: int, side: int) -> tuple[int, int]:
    """`__call__` of both Kontext pipelines without their own choice of a size: only multiples of 16 stay."""
    return width // 16 * 16, height // 16 * 16


@pytest.mark.parametrize("method", LOOKING)
def test_canvas_is_the_reference_for_every_size_that_medebench_can_have(method: str) -> None:
    rules = {"flux2": flux2, "flux2-klein": flux2, "longcat-image-edit": longcat}
    rule = kontext if method.startswith("flux-kontext") else rules.get(method, qwen)
    policy = METHODS[method].frame
    canvases = {policy.frame(*size).canvas for size in MEDEBENCH_SIZES}
    assert len(canvases) > 10
    assert {canvas: rule(*canvas, policy.side) for canvas in canvases} == {
        canvas: canvas for canvas in canvases
    }


def test_without_a_rule_the_reference_was_another() -> None:
    """409 x 512, as it was drawn before: 1152 x 912 beside a reference of 1136 x 896 (height first)."""
    assert FramePolicy("area", 1024, 16).frame(409, 512).canvas == (912, 1152)
    assert flux2(912, 1152, 1024) == (896, 1136)


@pytest.mark.parametrize("method", ["flux2-klein", "qwen-image-edit", "longcat-image-edit"])
def test_canvases_stay_near_the_area_and_the_proportions(method: str) -> None:
    policy = METHODS[method].frame
    for width, height in SIZES:
        frame = policy.frame(width, height)
        across, down = frame.canvas
        assert 0.93 <= across * down / 1024**2 <= 1.07
        assert abs(math.log(across / down * height / width)) < 0.05


class Seen(Exception):
    """Raised with the reference's size when a pipeline comes to encode it."""


@pytest.mark.parametrize("method", LOOKING)
@pytest.mark.parametrize("size", [(223, 512), (409, 512), (300, 900), (640, 480)])
def test_pipelines_encode_a_reference_of_the_canvas_size(
    method: str,
    size: tuple[int, int],
    tiny_loading: Callable[[str], Loading],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pipeline's own call, up to where it has sized the reference; FLUX.2 at its own side, where it shrinks."""
    from plantain.models.diffusers.jobs import Job, Steering

    loading = tiny_loading(method)
    runner = runner_for(loading, "cpu")
    side = None if method.startswith("flux2") else 256
    canvas = METHODS[method].frame.frame(*size, side).canvas

    def encode(image: torch.Tensor, *args: object, **more: object) -> torch.Tensor:
        raise Seen((image.shape[-1], image.shape[-2]))

    monkeypatch.setattr(runner.pipe, "_encode_vae_image", encode)
    picture = np.zeros((canvas[1], canvas[0], 3), np.uint8)
    job = Job(picture, instruction="brighter", seed=1, side=side, region=picture[..., 0] == 0)
    with pytest.raises(Seen) as seen:
        runner.edit([job], Steering.of({"steps": 1}))
    assert seen.value.args[0] == canvas


@pytest.mark.parametrize(
    "method",
    ["qwen-image-edit", "qwen-image-edit-plus", "qwen-image-edit-inpaint", "longcat-image-edit"],
)
def test_image_tokens_get_the_places_that_the_model_has_for_them(
    method: str, tiny_loading: Callable[[str], Loading]
) -> None:
    """Positions that reach the language model, against `get_rope_index` of transformers; without the hook: none."""
    runner = runner_for(tiny_loading(method), "cpu")
    encoder, pipe = runner.pipe.text_encoder, runner.pipe
    asked: list[dict[str, torch.Tensor]] = []
    placed: list[torch.Tensor | None] = []
    encoder.register_forward_pre_hook(lambda _, args, said: asked.append(dict(said)), with_kwargs=True)
    encoder.model.language_model.register_forward_pre_hook(
        lambda _, args, said: placed.append(said.get("position_ids")), with_kwargs=True
    )
    image = Image.new("RGB", (112, 84), "grey")
    where = {} if method.startswith("longcat") else {"device": "cpu"}
    pipe.encode_prompt(image=[image] if method.endswith("plus") else image, prompt="brighter", **where)
    (said,) = asked
    patches = said["input_ids"] == encoder.config.image_token_id
    assert patches.sum() == said["image_grid_thw"].prod() // 4
    expected, _ = encoder.model.get_rope_index(
        said["input_ids"],
        mm_token_type_ids=patches.int(),
        image_grid_thw=said["image_grid_thw"],
        attention_mask=said["attention_mask"],
    )
    assert placed[0] is not None
    assert torch.equal(placed[0][-3:], expected)
    height, width = expected[1, 0][patches[0]], expected[2, 0][patches[0]]
    assert len(set(height.tolist())) > 1
    assert not torch.equal(height, width)
