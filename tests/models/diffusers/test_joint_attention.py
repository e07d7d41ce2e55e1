"""Recording joint attention: it changes nothing, equals the softmax written out, and keeps to what was chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the torch extra")
pytest.importorskip("diffusers", reason="needs the torch extra")

from diffusers.models.transformers import (  # noqa: E402
    transformer_flux,
    transformer_flux2,
    transformer_qwenimage,
)

from plantain.models.diffusers.attention import watching  # noqa: E402
from plantain.models.diffusers.attention.attender import Attender  # noqa: E402
from plantain.models.diffusers.jobs import Job, Steering  # noqa: E402
from plantain.models.diffusers.methods import FLUX_DEV  # noqa: E402
from plantain.models.diffusers.plan import plan_editor  # noqa: E402
from plantain.models.diffusers.provider import Settings  # noqa: E402

MODULES = {
    "flux-kontext": transformer_flux,
    "flux2-klein": transformer_flux2,
    "qwen-image-edit": transformer_qwenimage,
    "qwen-image-edit-plus": transformer_qwenimage,
}
PICTURE = np.random.default_rng(0).integers(0, 255, (64, 96, 3), np.uint8)
STEPS = 3


def plain_edit(attender: Attender, words: str) -> np.ndarray:
    frame = attender.plan.method.frame.frame(96, 64, 64)
    steering = Steering.of(attender.plan.steering.settings)
    (drawn,) = attender._runner.edit([Job(frame.enter(PICTURE), words, 3, side=64)], steering)
    return frame.leave(drawn)


@pytest.mark.parametrize("method", MODULES)
def test_it_equals_the_softmax_written_out_and_changes_no_pixel(
    method: str, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer sees the queries and keys that the model multiplies, where it multiplies them."""
    monkeypatch.setattr(watching, "SHARE", 1)  # every step
    options = Settings(device="cpu", side=64, steps=STEPS, accept_licence=(FLUX_DEV,))
    attender = Attender(plan_editor(f"diffusers/{tiny_folder(method)}", options), "cpu")
    words = "remove the mole from the skin"
    plain = plain_edit(attender, words)
    tokens = attender._tokens(words, "mole")
    assert tokens
    seen: list[torch.Tensor] = []
    usual = MODULES[method].dispatch_attention_fn

    def spy(query, key, value, **said):
        scores = torch.einsum("nqhd,nkhd->nhqk", query.double(), key.double()) / query.shape[-1] ** 0.5
        seen.append(scores.softmax(-1).mean(1)[0])
        return usual(query, key, value, **said)

    monkeypatch.setattr(MODULES[method], "dispatch_attention_fn", spy)
    look = attender.look(PICTURE, words, 3, "mole", {})
    transformer = attender._runner.pipe.transformer
    layers = sum(hasattr(part, "norm_q") for part in transformer.modules())
    calls = len(seen) // STEPS
    first = [map_ for at, map_ in enumerate(seen) if at % calls < layers]  # without words come after
    mean = torch.stack(first).mean(0)
    height, width = look.attention.shape
    places = height * width
    text = mean.shape[0] - 2 * places
    wanted = mean[text : text + places][:, tokens[-1] % text].reshape(height, width)
    assert np.abs(look.attention - wanted.numpy()).max() < 1e-6
    assert look.what == f"joint attention, text to output ({layers} layers, 3 of 3 steps)"
    assert np.array_equal(look.edited, plain)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in transformer.modules())
