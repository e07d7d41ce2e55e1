from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines import imagic

STEERING = Steering(steps=2, guidance=3.0, text_steps=3, model_steps=3)


@pytest.fixture(scope="module")
def runner(tiny_loading: Callable[[str], Loading]) -> imagic.ImagicRunner:
    return imagic.ImagicRunner(tiny_loading("imagic"), "cpu")


def canvas(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (64, 64, 3), dtype=np.uint8)


def edit(runner: imagic.ImagicRunner, seed: int, steering: Steering = STEERING) -> np.ndarray:
    (drawn,) = runner.edit([Job(canvas(seed), "Remove the mole", seed)], steering)
    assert isinstance(drawn, np.ndarray)
    return drawn


def weights(runner: imagic.ImagicRunner) -> dict[str, torch.Tensor]:
    return {name: weight.clone() for name, weight in runner.pipe.unet.state_dict().items()}


def test_weights_are_put_back_so_that_no_image_teaches_the_next(runner: imagic.ImagicRunner) -> None:
    before = weights(runner)
    first = edit(runner, 1)
    edit(runner, 2)
    for name, weight in weights(runner).items():
        assert torch.equal(weight, before[name]), name
    assert not any(weight.requires_grad for weight in runner.pipe.unet.parameters())
    assert np.array_equal(edit(runner, 1), first)


def test_weights_are_put_back_after_a_fault_too(
    runner: imagic.ImagicRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights(runner)
    monkeypatch.setattr(
        type(runner.pipe), "__call__", lambda *args, **kwargs: (_ for _ in ()).throw(RuntimeError("gone"))
    )
    with pytest.raises(RuntimeError, match="gone"):
        edit(runner, 1)
    assert all(torch.equal(weight, before[name]) for name, weight in weights(runner).items())


def test_both_stages_learn_the_image(runner: imagic.ImagicRunner) -> None:
    """Held-out noise: after learning, the model reconstructs the image better than before, from its own embedding."""
    pipe = runner.pipe
    pictures = [imagic.Image.fromarray(canvas(3))]
    with torch.no_grad():
        wanted, _ = pipe.encode_prompt("Remove the mole", "cpu", 1, True)
        latents = runner._latents(pictures[0])

    def loss(embedding: torch.Tensor) -> float:
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            return float(np.mean([float(runner._loss(embedding, latents, generator)) for _ in range(16)]))

    long = replace(STEERING, text_steps=30, model_steps=30)
    start = loss(wanted)
    own = runner._learn_embedding(wanted, latents, long, torch.Generator().manual_seed(0))
    assert not torch.equal(own, wanted.float())
    with runner._weights_restored():
        runner._learn_image(own, latents, long, torch.Generator().manual_seed(1))
        assert loss(own) < start
    assert loss(wanted) == start


def test_alpha_and_the_learned_embedding_shape_the_drawing(runner: imagic.ImagicRunner) -> None:
    assert not np.array_equal(edit(runner, 1, replace(STEERING, alpha=0.0)), edit(runner, 1))
    unlearned = replace(STEERING, text_steps=0, model_steps=0)
    with_any_alpha = [edit(runner, 1, replace(unlearned, alpha=alpha)) for alpha in (0.0, 1.0)]
    assert (
        np.abs(with_any_alpha[0].astype(int) - with_any_alpha[1]).max() <= 1
    )  # nothing learned: one embedding
