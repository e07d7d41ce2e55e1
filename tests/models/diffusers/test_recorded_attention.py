"""Recording cross-attention: edits are unchanged, maps sum to one, and planted attention is found."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")
pytest.importorskip("diffusers", reason="needs the torch extra")

from PIL import Image  # noqa: E402

from fakes.tiny.stable_diffusion import tiny_instruct_pix2pix  # noqa: E402
from plantain.metrics.grounding import grounding  # noqa: E402
from plantain.models.diffusers.attention.attender import concept_tokens  # noqa: E402
from plantain.models.diffusers.attention.cross import CrossAttentionRecorder  # noqa: E402

WORDS = ("remove", "the", "mole", "from", "skin")


@pytest.fixture(scope="module")
def pipe():
    pipeline = tiny_instruct_pix2pix(seed=3, words=WORDS)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def noise_image(width: int, height: int) -> Image.Image:
    rng = np.random.default_rng(width * 1000 + height)
    return Image.fromarray(rng.integers(0, 255, (height, width, 3), np.uint8).astype(np.uint8))


def edit(pipe, image, steps: int = 3, **settings: float) -> np.ndarray:
    result = pipe(
        ["remove the mole"] * len(image) if isinstance(image, list) else "remove the mole",
        image=image,
        num_inference_steps=steps,
        generator=torch.Generator().manual_seed(1),
        output_type="np",
        **settings,
    )
    return result.images


@pytest.mark.parametrize("size", [(64, 64), (128, 96), (72, 104)])
def test_the_image_is_identical_and_the_tokens_sum_to_one(pipe, size: tuple[int, int]) -> None:
    image = noise_image(*size)
    plain = edit(pipe, image)
    with CrossAttentionRecorder(pipe.unet, (size[1] // 8, size[0] // 8)) as recorder:
        recorded = edit(pipe, image)
    assert np.array_equal(plain, recorded)
    maps = recorder.maps()
    assert maps.shape == (1, 77, size[1] // 8, size[0] // 8)
    assert torch.allclose(maps.sum(1), torch.ones_like(maps[:, 0]), atol=1e-5)
    assert recorder.recorded == 3 * len(recorder.layers)
    assert not any(module._forward_hooks for module in pipe.unet.modules())


def test_recorded_attention_equals_that_of_a_processor(pipe) -> None:
    """The peer: an attention processor that computes the same probabilities itself, at the same steps."""
    seen: list = []

    class Processor:
        def __call__(self, attn, hidden_states, encoder_hidden_states=None, attention_mask=None, **_):
            states = hidden_states if encoder_hidden_states is None else encoder_hidden_states
            q, k, v = attn.to_q(hidden_states), attn.to_k(states), attn.to_v(states)
            q, k, v = (attn.head_to_batch_dim(part) for part in (q, k, v))
            weights = attn.get_attention_scores(q, k, attention_mask)
            if encoder_hidden_states is not None:
                first = weights.unflatten(0, (-1, attn.heads))[0].mean(0)
                side = round(first.shape[0] ** 0.5)
                grid = first.T.reshape(1, -1, side, side)
                seen.append(torch.nn.functional.interpolate(grid, size=(8, 8), mode="bilinear"))
            out = attn.batch_to_head_dim(torch.bmm(weights, v))
            return attn.to_out[1](attn.to_out[0](out))

    image = noise_image(64, 64)
    with CrossAttentionRecorder(pipe.unet, (8, 8)) as recorder:
        edit(pipe, image)
    before = pipe.unet.attn_processors
    pipe.unet.set_attn_processor(Processor())
    try:
        edit(pipe, image)
    finally:
        pipe.unet.set_attn_processor(before)
    assert torch.allclose(recorder.maps(), torch.stack(seen).mean(0), atol=1e-5)


def test_planted_attention_gives_the_overlap_of_geometry(pipe) -> None:
    """Keys and queries are replaced so that one token is looked at from the left half of every level only."""
    planted, token = tiny_instruct_pix2pix(seed=3, words=WORDS), 3
    planted.set_progress_bar_config(disable=True)
    for name, attention in planted.unet.named_modules():
        if name.endswith("attn2"):
            attention.to_q.register_forward_hook(_left_half)
            attention.to_k.register_forward_hook(_one_token(token))
    with CrossAttentionRecorder(planted.unet, (16, 16)) as recorder:
        edit(planted, noise_image(128, 128))
    attention = recorder.maps()[0, token].numpy()
    roi = np.zeros((16, 16), bool)
    roi[4:12, 4:12] = True  # 8 x 8; the map covers columns 0-7: 8 x 4 of it, in a union of 128 + 32
    found = grounding(attention, roi)
    assert found.iou.value == pytest.approx(32 / (128 + 64 - 32), abs=0.02)


def _left_half(_module, _inputs, out):
    side = round(out.shape[1] ** 0.5)
    row = torch.zeros(side, side, 1)
    row[:, : side // 2] = 30.0
    planted = torch.zeros_like(out)
    planted += row.reshape(1, -1, 1)
    return planted


def _one_token(token: int):
    def hook(_module, _inputs, out):
        planted = torch.zeros_like(out)
        planted[:, token] = 1.0
        return planted

    return hook


def test_concepts_are_found_by_whole_words(pipe) -> None:
    find = lambda prompt, concept: concept_tokens(pipe.tokenizer, prompt, concept)  # noqa: E731
    assert find("remove the mole", "mole") == (3,)
    assert find("remove the mole", "Mole") == (3,)
    assert find("remove the mole from the mole", "mole") == (6,)
    assert find("a tear", "ear") == ()
    assert find("remove the mole", "polyp") == ()
    assert find("remove the mole", "") == ()
    assert len(find("remove the polyp", "polyp")) == 5  # a byte each: the last of them is the paper's choice
    assert find("x" * 300 + " mole", "mole") == ()
    assert find("mole " + "x" * 300 + " mole", "mole") == (1,)
