"""Every class of editor, tiny and with random weights, through the code that real weights take."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution
from PIL import Image

from fakes.grid import displacement, dots
from models.diffusers.engine_jobs import SEED, Cramped, Edit, job, run
from plantain.models.diffusers.engine import Engine
from plantain.models.diffusers.jobs import Loading
from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.pipelines.runner import read_drawn, runner_for
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_mask, encode_png
from plantain.records import Outcome, OutcomeKind


def pixels_of(done: Edit) -> np.ndarray:
    assert done.picture is not None, done.outcome
    return decode(done.picture)


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
    assert apart.max() <= 2  # a level in what the model drew; enlarging it can make that two
    again = run(engine, loading, [job(1)])
    assert again[0].picture == alone[0].picture
    other = run(engine, loading, [job(1, seed=99)])
    assert other[0].picture != alone[0].picture  # the seed is heard


@pytest.mark.parametrize("method", ["sd-inpaint", "flux-kontext-inpaint", "qwen-image-edit-inpaint"])
def test_only_the_region_is_drawn_anew(
    method: str, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two seeds, what is handed to the VAE's decoder: around the region it is the original, whichever the seed.

    Stable Diffusion of four channels, which was not made for this, too. Where a pipeline samples the original's
    latents (Stable Diffusion, Qwen), it gets their mean here: those of random weights lie far apart.
    """
    monkeypatch.setattr(DiagonalGaussianDistribution, "sample", lambda self, generator=None: self.mode())
    engine, loading = (
        Engine("cpu"),
        Loading(tiny_folder("imagic" if method == "sd-inpaint" else method), method),
    )
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
    done = run(engine, tiny_loading("instruct-pix2pix"), [job(5, picture=file) for file in files])
    drawn = [pixels_of(one) for one in done]
    assert {one.shape for one in drawn} == {(64, 64, 3)}
    for other in drawn[1:]:
        assert np.abs(drawn[0].astype(int) - other).max() <= 1


def test_what_a_safety_checker_blacks_out_is_a_refusal(
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
    assert refused.picture is None
    assert refused.outcome.kind is OutcomeKind.REFUSED
    assert "safety checker" in refused.outcome.reason
    (free,) = run(engine, replace(loading, safety_checker=False), [job()])
    assert free.picture is not None


def test_black_and_broken_drawings_are_no_images() -> None:
    canvas = np.full((4, 4, 3), 9, np.uint8)
    for drawn in (np.zeros((4, 4, 3)), np.full((4, 4, 3), np.nan)):
        refused = read_drawn(drawn, False, canvas)
        assert isinstance(refused, Outcome) and refused.kind is OutcomeKind.MALFORMED
    black = np.zeros((4, 4, 3), np.uint8)
    assert np.array_equal(read_drawn(np.zeros((4, 4, 3)), False, black), black)  # of a black original
    halves = read_drawn(np.full((4, 4, 3), 0.5), False, canvas)
    assert int(halves[0, 0, 0]) == 128  # type: ignore[index]  # 127.5, rounded to even


def test_folder_that_cannot_be_loaded_halts_with_its_name(
    engine: Engine, tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    empty, cut = tmp_path / "empty", tmp_path / "cut"
    empty.mkdir()
    (empty / "model_index.json").write_text('{"_class_name": "StableDiffusionInstructPix2PixPipeline"}')
    shutil.copytree(tiny_folder("instruct-pix2pix"), cut)
    (text,) = (cut / "text_encoder").glob("*.safetensors")
    text.write_bytes(
        text.read_bytes()[:-1]
    )  # transformers has safetensors' own error for it, diffusers an OSError
    for folder in (empty, cut):
        (done,) = run(engine, Loading(folder, "instruct-pix2pix"), [job()])
        assert done.outcome.fatal
        assert str(folder) in done.outcome.reason


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_weights_in_their_files_own_precision_are_no_copy_of_them(
    tiny_loading: Callable[[str], Loading],
) -> None:
    """They are pages of the file, which several processes share; in another precision they are copied."""
    for precision, mapped in (("float32", True), ("bfloat16", False)):
        pipe = runner_for(replace(tiny_loading("flux-kontext"), dtype=precision), "cpu").pipe
        maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
        files = [
            range(*(int(end, 16) for end in line[0].split("-")))
            for line in maps
            if line[-1].endswith(".safetensors")
        ]
        for part in (pipe.transformer, pipe.vae, pipe.text_encoder, pipe.text_encoder_2):
            places = [weight.data_ptr() for weight in part.parameters()]
            assert all(any(place in pages for pages in files) is mapped for place in places)


def test_offloading_from_a_processor_is_refused(
    engine: Engine, tiny_loading: Callable[[str], Loading]
) -> None:
    (done,) = run(engine, replace(tiny_loading("instruct-pix2pix"), offload="model"), [job()])
    assert done.outcome.fatal
    assert "providers.diffusers.offload" in done.outcome.reason


def test_record_names_the_concept_that_was_steered_by(
    engine: Engine, tiny_loading: Callable[[str], Loading]
) -> None:
    done, without = run(
        engine,
        tiny_loading("ledits"),
        [job(concept="Glioma", removes=False), job(instruction="Better, please")],
    )
    assert (done.record["concept"], done.record["removes"]) == ("glioma", False)
    assert without.outcome.kind is OutcomeKind.NOT_APPLICABLE


def test_half_precision_weights_are_loaded_as_such(
    engine: Engine, tiny_loading: Callable[[str], Loading]
) -> None:
    (done,) = run(engine, replace(tiny_loading("instruct-pix2pix"), dtype="bfloat16"), [job()])
    assert done.outcome.ok
    assert done.record["precision"] == "bfloat16"


def test_another_side_holds_for_qwens_reference_too_and_for_one_edit_only() -> None:
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit as edit
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as plus

    from plantain.models.diffusers.pipelines.qwen import reference_area

    with reference_area(512):
        assert edit.calculate_dimensions(1024 * 1024, 1.0)[:2] == (512, 512)
        assert (plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE) == (512**2, 192**2)
    with reference_area(None):
        assert edit.calculate_dimensions(1024 * 1024, 1.0)[:2] == (1024, 1024)
    assert (plus.VAE_IMAGE_SIZE, plus.CONDITION_IMAGE_SIZE) == (1024**2, 384**2)


def test_lora_weights_are_put_on(tiny_loading: Callable[[str], Loading], tmp_path: Path) -> None:
    """ICEdit is a LoRA on FLUX Fill: saved as such files are, it changes what is drawn; without it nothing is left."""
    from diffusers import FluxFillPipeline
    from peft import LoraConfig, get_peft_model_state_dict

    loading = tiny_loading("icedit")
    pipe = FluxFillPipeline.from_pretrained(loading.folder, local_files_only=True)
    torch.manual_seed(SEED)
    pipe.transformer.add_adapter(
        LoraConfig(r=4, target_modules=["to_q", "to_k", "to_v"], init_lora_weights="gaussian")
    )
    with torch.no_grad():
        for name, weight in pipe.transformer.named_parameters():
            if "lora_B" in name:
                weight.normal_()
    layers = get_peft_model_state_dict(pipe.transformer)
    FluxFillPipeline.save_lora_weights(tmp_path, transformer_lora_layers=layers)
    (file,) = tmp_path.glob("*.safetensors")
    engine = Engine("cpu")
    (plain,) = run(engine, loading, [job()])
    with_lora = [run(engine, replace(loading, loras=((path, 1.0),)), [job()])[0] for path in (tmp_path, file)]
    assert with_lora[0].picture == with_lora[1].picture
    assert with_lora[0].picture != plain.picture
    assert run(engine, loading, [job()])[0].picture == plain.picture


def test_half_precision_files_are_loaded_where_there_are_no_others(
    tiny_loading: Callable[[str], Loading], tmp_path: Path
) -> None:
    from diffusers import StableDiffusionInstructPix2PixPipeline

    from plantain.models.diffusers.weights import Weights, missing_part, variant_of

    loading = tiny_loading("instruct-pix2pix")
    pipe = StableDiffusionInstructPix2PixPipeline.from_pretrained(loading.folder, local_files_only=True)
    pipe.save_pretrained(tmp_path, variant="fp16")
    half = Weights("x", tmp_path, "")
    assert (variant_of(half), missing_part(half)) == ("fp16", "")
    assert variant_of(Weights("x", loading.folder, "")) == ""
    engine = Engine("cpu")
    (done,) = run(engine, replace(loading, folder=tmp_path, variant=variant_of(half)), [job()])
    (plain,) = run(engine, loading, [job()])
    assert done.outcome.ok
    assert done.picture == plain.picture


class Identity(Cramped):
    """Edits nothing."""

    def __init__(self, method: str) -> None:
        super().__init__(room=99)
        self.method = METHODS[method]


@pytest.mark.parametrize("method", METHODS)
def test_images_of_any_size_come_back_at_their_own_in_place(method: str) -> None:
    """Through the whole adapter, at the canvas of the real model: decoded, brought there, back, and encoded."""
    engine, loading = Engine("cpu"), Loading(Path("x"), method)
    engine._runners[loading] = Identity(method)
    rng = np.random.default_rng(SEED)
    sizes = [(65, 101), (1500, 900), *((int(w), int(h)) for w, h in rng.integers(65, 1500, (2, 2)))]
    drawn = [dots(width, height) for width, height in sizes]
    regions = [encode_mask(image[..., 0] > 0) for image, _ in drawn]
    done = [
        run(engine, loading, [job(picture=encode_png(image), side=None, region=region)])[0]
        for (image, _), region in zip(drawn, regions, strict=True)
    ]
    for (image, centres), one, size in zip(drawn, done, sizes, strict=True):
        back = pixels_of(one)
        assert back.shape == image.shape
        assert displacement(image, back, centres) < 0.5, f"{method} {size}, seed {SEED}"
