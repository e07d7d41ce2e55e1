from __future__ import annotations

from collections.abc import Callable

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
