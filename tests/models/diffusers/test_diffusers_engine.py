"""Every class of editor, tiny and with random weights, through the code that real weights take; and lost memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution
from PIL import Image

from models.diffusers.engine_jobs import SEED, Cramped, Edit, job, run
from plantain.models.diffusers.engine import Engine
from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.pipelines import imagic
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
def test_every_class_edits_and_a_batch_is_as_good_as_single_runs(
    method: str, engine: Engine, tiny_loading: Callable[[str], Loading]
) -> None:
    loading = tiny_loading(method)
    together = run(engine, loading, [job(0), job(1)])
    alone = run(engine, loading, [job(1)])
    for done in (*together, *alone):
        assert pixels_of(done).shape == (101, 65, 3)
    assert together[0].record["together"] == (2 if METHODS[method].batches else 1)
    apart = np.abs(pixels_of(together[1]).astype(int) - pixels_of(alone[0]).astype(int))
    assert apart.max() <= 2  # a level in the drawn image; enlarging it can make that two
    again = run(engine, loading, [job(1)])
    assert again[0].image == alone[0].image
    other = run(engine, loading, [job(1, seed=99)])
    assert other[0].image != alone[0].image  # the seed is used


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
        (done,) = run(engine, loading, [job(0, seed=seed, side=128)])
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
    done = run(engine, tiny_loading("instruct-pix2pix"), [job(5, image=file) for file in files])
    drawn = [pixels_of(one) for one in done]
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
    (refused,) = run(engine, loading, [job()])
    assert refused.image is None
    assert refused.outcome.kind is OutcomeKind.REFUSED
    assert "safety checker" in refused.outcome.reason
    (free,) = run(engine, replace(loading, safety_checker=False), [job()])
    assert free.image is not None


def test_too_little_memory_halves_the_batch_and_is_reported() -> None:
    engine, runner, loading = Engine("cpu"), Cramped(room=2), Loading(Path("x"), "instruct-pix2pix")
    engine._runners[loading] = runner
    done = run(engine, loading, [job(number) for number in range(7)])
    assert all(one.outcome.ok for one in done)
    assert runner.sizes == [7, 4, 2, 2, 2, 1]
    assert "did not fit into memory" in str(done[-1].record["said"])
    runner.sizes.clear()
    run(engine, loading, [job(number) for number in range(3)])
    assert runner.sizes == [2, 1]  # the learned batch size is kept


class Picky(Cramped):
    """Cannot draw one seed, and loses its device at another."""

    def edit(self, jobs: Sequence[Job], steering: Steering) -> list[Pixels | Outcome]:
        if any(job.seed == 1 for job in jobs):
            raise ValueError("prompt is too long")
        if any(job.seed == 2 for job in jobs):
            raise RuntimeError("CUDA error: device-side assert triggered")
        return super().edit(jobs, steering)


def test_edit_that_cannot_be_drawn_spoils_no_other_and_a_lost_device_ends_the_process() -> None:
    engine, loading = Engine("cpu"), Loading(Path("x"), "instruct-pix2pix")
    engine._runners[loading] = Picky(room=9)
    done = run(engine, loading, [job(0), job(1), job(3)])
    assert [one.outcome.kind for one in done] == [OutcomeKind.OK, OutcomeKind.MALFORMED, OutcomeKind.OK]
    assert "prompt is too long" in done[1].outcome.reason
    with pytest.raises(RuntimeError, match="device-side"):
        run(engine, loading, [job(2)])


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


def test_weights_are_restored_after_each_image(runner: imagic.ImagicRunner) -> None:
    before = weights(runner)
    first = edit(runner, 1)
    edit(runner, 2)
    for name, weight in weights(runner).items():
        assert torch.equal(weight, before[name]), name
    assert not any(weight.requires_grad for weight in runner.pipe.unet.parameters())
    assert np.array_equal(edit(runner, 1), first)
