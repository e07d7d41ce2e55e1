"""Every class of editor, tiny and with random weights, through the code that real weights take; and lost memory."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution
from PIL import Image

from models.diffusers.engine_jobs import SEED, Edit, job, run
from plantain.models.diffusers.engine import Engine
from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.pipelines import imagic
from plantain.models.diffusers.pipelines.runner import Drawing, Runner
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Outcome, OutcomeKind


def pixels_of(done: Edit) -> np.ndarray:
    assert done.image is not None, done.outcome
    return decode(done.image)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine("cpu")


@pytest.mark.parametrize("method", METHODS)
def test_every_class_edits_at_the_originals_size_and_repeats_itself_by_the_seed(
    method: str, engine: Engine, tiny_loading: Callable[[str], Loading]
) -> None:
    loading = tiny_loading(method)
    done = run(engine, loading, job(1))
    assert pixels_of(done).shape == (101, 65, 3)
    assert run(engine, loading, job(0)).image != done.image
    assert run(engine, loading, job(1)).image == done.image
    assert run(engine, loading, job(1, seed=99)).image != done.image  # the seed is used


def test_only_the_region_is_redrawn(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs of the VAE's decoder for two seeds: outside the region they equal the original's.

    Stable Diffusion of four channels was not trained for this. Its pipeline samples the original's latents, and gets
    their mean here: those of random weights differ greatly.
    """
    monkeypatch.setattr(DiagonalGaussianDistribution, "sample", lambda self, generator=None: self.mode())
    engine, loading = Engine("cpu"), Loading(tiny_folder("imagic"), "sd-inpaint")
    assert engine.load(loading) is None
    vae, drawn = engine.pipeline(loading).vae, []
    decode_latents = vae.decode

    def decode_and_keep(latents: torch.Tensor, *args: object, **more: object) -> object:
        drawn.append(latents.detach().squeeze())
        return decode_latents(latents, *args, **more)

    monkeypatch.setattr(vae, "decode", decode_and_keep)
    for seed in (1, 2):
        done = run(engine, loading, job(0, seed=seed, side=128))
        assert done.record["region"] == "given"
    apart = (drawn[0] - drawn[1]).abs().mean(dim=0)
    rows, columns = apart.shape
    inside = apart[rows * 4 // 10 : rows // 2, columns * 4 // 10 : columns * 6 // 10].mean()
    assert inside > 0.1
    assert apart[rows * 8 // 10 :].max() == 0


def test_transparent_and_grey_files_reach_the_model_as_three_channels(
    engine: Engine, tiny_loading: Callable[[str], Loading]
) -> None:
    """Four channels would be taken for latents, in silence, and come back at another size."""
    rng = np.random.default_rng(SEED)
    grey = rng.integers(0, 256, (64, 64), dtype=np.uint8)
    files = []
    for image in (
        Image.fromarray(np.dstack([grey, grey, grey, np.full_like(grey, 255)]), "RGBA"),
        Image.fromarray(grey, "L"),
        Image.fromarray(np.dstack([grey] * 3), "RGB"),
    ):
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        files.append(buffer.getvalue())
    drawn = [pixels_of(run(engine, tiny_loading("instruct-pix2pix"), job(5, image=file))) for file in files]
    assert {one.shape for one in drawn} == {(64, 64, 3)}
    for other in drawn[1:]:
        assert np.abs(drawn[0].astype(int) - other).max() <= 1


def test_an_image_blocked_by_a_safety_checker_is_refused(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    from diffusers import StableDiffusionInstructPix2PixPipeline
    from transformers import CLIPImageProcessorPil

    from fakes.tiny.stable_diffusion import tiny_instruct_pix2pix, tiny_safety_checker

    parts = tiny_instruct_pix2pix().components
    strict = StableDiffusionInstructPix2PixPipeline(
        **{**parts, "safety_checker": tiny_safety_checker(), "feature_extractor": CLIPImageProcessorPil()}
    )
    strict.save_pretrained(tmp_path / "strict")
    engine = Engine("cpu")
    loading = Loading(tmp_path / "strict", "instruct-pix2pix")
    refused = run(engine, loading, job())
    assert refused.image is None
    assert refused.outcome.kind is OutcomeKind.REFUSED
    assert "safety checker" in refused.outcome.reason
    free = run(engine, replace(loading, safety_checker=False), job())
    assert free.image is not None


class Cramped(Runner):
    """A pipeline that fits into memory if no other is there; it cannot draw what some seeds say."""

    def __init__(self, engine: Engine) -> None:
        self.method, self.precision = METHODS["instruct-pix2pix"], torch.float32
        self._engine = engine

    def edit(self, job: Job) -> Pixels | Outcome:
        if len(self._engine._runners) > 1 or job.seed == 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        if job.seed == 1:
            raise ValueError("prompt is too long")
        if job.seed == 2:
            raise RuntimeError("CUDA error: device-side assert triggered")
        return job.canvas

    def draw(self, *arguments: object) -> Drawing:
        raise NotImplementedError

    def close(self) -> None:
        pass


def test_short_memory_closes_idle_pipelines_and_a_lost_device_ends_the_process() -> None:
    engine, loading = Engine("cpu"), Loading(Path("x"), "instruct-pix2pix")
    engine._runners = {each: Cramped(engine) for each in (Loading(Path("idle"), "imagic"), loading)}
    assert run(engine, loading, job(0)).outcome.ok
    assert list(engine._runners) == [loading]
    refused = run(engine, loading, job(1)).outcome
    assert refused.kind is OutcomeKind.MALFORMED and "prompt is too long" in refused.reason
    too_large = run(engine, loading, job(3)).outcome
    assert too_large.fatal and "one edit does not fit into the memory of cpu" in too_large.reason
    with pytest.raises(RuntimeError, match="device-side"):
        run(engine, loading, job(2))


STEERING = Steering(steps=2, guidance=3.0, text_steps=3, model_steps=3)


@pytest.fixture(scope="module")
def runner(tiny_loading: Callable[[str], Loading]) -> imagic.ImagicRunner:
    return imagic.ImagicRunner(tiny_loading("imagic"), "cpu")


def canvas(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (64, 64, 3), dtype=np.uint8)


def edit(runner: imagic.ImagicRunner, seed: int, steering: Steering = STEERING) -> np.ndarray:
    drawn = runner.edit(Job(Loading(Path(), "imagic"), steering, canvas(seed), "Remove the mole", seed))
    assert isinstance(drawn, np.ndarray)
    return drawn


def weights(runner: imagic.ImagicRunner) -> dict[str, torch.Tensor]:
    return {name: weight.clone() for name, weight in runner.pipe.unet.state_dict().items()}


def test_weights_are_restored_after_each_image(runner: imagic.ImagicRunner) -> None:
    before = weights(runner)
    first = edit(runner, 1)
    edit(runner, 2)
    for name, weight in weights(runner).items():
        assert torch.equal(weight, before[name]), name
    assert not any(weight.requires_grad for weight in runner.pipe.unet.parameters())
    assert np.array_equal(edit(runner, 1), first)
