"""Fewer bits, backends and several LoRAs: applied to loaded weights, or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.diffusers.engine_jobs import Edit, image, job, run
from plantain.models.diffusers.engine import Engine
from plantain.models.diffusers.jobs import RUNNING, Loading, Steering
from plantain.models.diffusers.methods import METHODS
from plantain.models.diffusers.pipelines.runner import denoiser_name
from plantain.models.diffusers.plan import EditorPlan, plan_editor
from plantain.models.diffusers.provider import Settings
from plantain.pixels.encode import encode_mask
from plantain.records import InputError

REGION = encode_mask(np.eye(64, dtype=bool))


def edit(loading: Loading, engine: Engine | None = None, steps: int = 4) -> Edit:
    spec = job(1, image=image(64, 64), region=REGION)
    steering = Steering(steps=steps, guidance=2.0, strength=1.0)
    return run(engine or Engine("cpu"), loading, spec, steering)


def plan(folder: Path, **settings: object) -> EditorPlan:
    return plan_editor(f"diffusers/{folder}", Settings(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"imagic"}))
def test_eight_bits_take_a_quarter_of_the_denoisers_linear_weights(
    tiny_loading: Callable[[str], Loading], method: str
) -> None:
    """int8 in place of float32, by torchao's own tensors, in every linear layer; the record states it."""
    torchao = pytest.importorskip("torchao.quantization")
    engine, plain = Engine("cpu"), tiny_loading(method)
    eight = replace(plain, bits=8)
    done = edit(eight, engine, steps=2)
    assert done.image is not None, done.outcome
    assert done.record["running"] == {"bits": 8}
    pipe = engine.pipeline(eight)
    denoiser = getattr(pipe, denoiser_name(type(pipe)))
    weights = [layer.weight for layer in denoiser.modules() if isinstance(layer, torch.nn.Linear)]
    assert weights
    assert all(isinstance(each, torchao.Int8Tensor) and each.qdata.dtype is torch.int8 for each in weights)


def test_a_method_that_trains_on_each_image_is_refused_fewer_bits(tiny_folder: Callable[[str], Path]) -> None:
    """torchao's int8 weights get no gradient, without a warning: Imagic would train its biases only."""
    with pytest.raises(InputError, match="bits: imagic trains the denoiser"):
        plan_editor(f"diffusers/medebench-imagic@{tiny_folder('imagic')}", Settings(bits=8))


def test_settings_that_need_a_gpu_are_refused_on_a_processor(tiny_loading: Callable[[str], Loading]) -> None:
    for method, running, message in (
        ("flux-kontext", {"bits": 4}, "4 bits run on NVIDIA's GPUs only"),
        ("flux-kontext", {"tf32": True}, "tf32: needs an NVIDIA GPU"),
    ):
        done = edit(replace(tiny_loading(method), **running))
        assert done.outcome.fatal
        assert message in done.outcome.reason


def test_lora_weights_change_an_edit_and_its_fingerprint_and_fit_or_are_refused(
    tiny_loading: Callable[[str], Loading], tmp_path: Path
) -> None:
    from diffusers import FluxKontextPipeline
    from peft import LoraConfig
    from peft.utils import get_peft_model_state_dict

    loading = tiny_loading("flux-kontext")
    pipe = FluxKontextPipeline.from_pretrained(loading.folder)
    pipe.transformer.add_adapter(LoraConfig(r=2, target_modules=["to_q", "to_k"]))
    torch.manual_seed(5)
    for name, weight in pipe.transformer.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight)
    layers = get_peft_model_state_dict(pipe.transformer)
    for file in ("one.safetensors", "other.safetensors"):
        FluxKontextPipeline.save_lora_weights(tmp_path, transformer_lora_layers=layers, weight_name=file)

    def drawn(lora: str = "") -> tuple[bytes, EditorPlan]:
        made = plan(loading.folder, lora=lora, accept_licence=("flux-1-dev-non-commercial-license",))
        done = edit(made.loading)
        assert done.image is not None, done.outcome
        return done.image, made

    with_lora, made = drawn(str(tmp_path / "one.safetensors"))
    plain, without = drawn()
    assert with_lora != plain and made.fingerprint != without.fingerprint
    assert "one.safetensors" in made.fingerprint
    with pytest.raises(InputError, match=r"several files; name one of one.safetensors, other.safetensors"):
        drawn(str(tmp_path))
    # diffusers warns and edits with what fits, or as if there were none
    done = edit(replace(tiny_loading("flux2-klein"), lora=tmp_path / "one.safetensors"))
    assert done.outcome.fatal
    assert "2 of its 4 layers have no place in this Flux2KleinPipeline" in done.outcome.reason


def test_settings_are_frozen_in_a_run_and_defaults_leave_old_fingerprints(
    tiny_folder: Callable[[str], Path],
) -> None:
    folder = tiny_folder("qwen-image-edit")
    with pytest.raises(InputError, match="image_guidance: qwen-image-edit has no such setting"):
        plan(folder, image_guidance=1.5)
    usual = plan(folder)
    assert not any(name in usual.fingerprint for name in RUNNING)
    seen = {usual.fingerprint}
    for name, value in (("bits", 8), ("compile", True), ("tf32", True)):
        section = Settings(**{name: value})  # type: ignore[arg-type]
        assert section.frozen_part() == {name: value}
        seen.add(plan(folder, **{name: value}).fingerprint)
    assert len(seen) == 1 + len(RUNNING)
