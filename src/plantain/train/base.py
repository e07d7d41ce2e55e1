"""The model that a training starts from: found, licence checked, loaded fresh as often as needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plantain.files.installing import install_line
from plantain.models.diffusers.jobs import Loading, Running
from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.quiet import quiet_libraries
from plantain.models.diffusers.weights import LORA
from plantain.records import InputError
from plantain.roles.options import ProviderOptions
from plantain.train.flow.methods import FLOW_METHODS
from plantain.train.latents import METHOD, InstructionPipeline

if TYPE_CHECKING:
    from plantain.models.diffusers.pipelines.runner import Runner


@dataclass(frozen=True, slots=True)
class TrainingBase:
    """What a training starts from.

    Attributes:
        name: as the user wrote it, "diffusers/…".
        folder: of the pipeline.
        digest: of its weights.
        licence: "unknown" where nobody says.
        device: of torch.
        method: in which it edits.
        loading: how an editor of a flow-matching method is loaded, without what a training left beside it.
        adapters: file of LoRA weights that a training left in the folder of a flow-matching editor.
    """

    name: str
    folder: Path
    digest: str
    licence: str
    device: str
    method: str = METHOD
    loading: Loading | None = None
    adapters: Path | None = None

    def runner(self) -> Runner:
        """The editor itself, fresh, in its own precision; for flow-matching methods.

        Raises:
            InputError: the weights cannot be loaded.
        """
        quiet_libraries()
        from safetensors import SafetensorError

        from plantain.models.diffusers.pipelines.runner import runner_for

        assert self.loading is not None
        try:
            return runner_for(self.loading, self.device)
        except (OSError, ValueError, RuntimeError, TypeError, KeyError, SafetensorError) as error:
            first = str(error).strip().splitlines()[0]
            raise InputError(f"{self.name}: {self.folder} cannot be loaded: {first}") from error

    def load(self) -> InstructionPipeline:
        """A fresh pipeline in float32 on the device; adapters that lie in its folder are merged into it.

        Raises:
            InputError: the weights cannot be loaded.
        """
        quiet_libraries()
        from diffusers import StableDiffusionInstructPix2PixPipeline
        from safetensors import SafetensorError

        try:
            pipe = StableDiffusionInstructPix2PixPipeline.from_pretrained(
                self.folder,
                local_files_only=True,
                safety_checker=None,
                requires_safety_checker=False,
            )
            if (self.folder / LORA).is_file():
                pipe.load_lora_weights(self.folder)
                pipe.fuse_lora()
                pipe.unload_lora_weights()
        except (OSError, ValueError, RuntimeError, TypeError, KeyError, SafetensorError) as error:
            first = str(error).strip().splitlines()[0]
            raise InputError(f"{self.name}: {self.folder} cannot be loaded: {first}") from error
        pipe.set_progress_bar_config(disable=True)
        return pipe.to(self.device)


def _learning(running: Running) -> Running:
    """How an editor is run while it learns: without what leaves blocks out or fixes them before adapters hang there."""
    return replace(running, step_cache=0.0, compile=False)


def open_base(name: str, options: ProviderOptions, *, adapters: bool = False) -> TrainingBase:
    """Finds a model to start from.

    Args:
        name: "diffusers/<preset, hub id or folder>".
        options: of the provider: device, cache, accepted licences.
        adapters: editors of which only adapters can be trained will do too.

    Raises:
        InputError: no such weights, no torch, a licence that was not accepted, or a model of another class.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError(f"training needs torch: {install_line('torch')}") from error
    provider, _, where = name.partition("/")
    if provider != "diffusers" or not where:
        raise InputError(f"--model {name!r}: name an InstructPix2Pix as diffusers/FOLDER or diffusers/HUB-ID")
    found = plan_editor(name, options)
    flow = found.method.name in FLOW_METHODS
    if found.method.name not in (METHOD, *(FLOW_METHODS if adapters else ())):
        able = f"InstructPix2Pix{', Kontext, FLUX.2 klein, Qwen-Image-Edit' if adapters else ''}"
        raise InputError(
            f"--model {name}: is run by {found.method.name}; only {able} and what was trained from it can be "
            "trained here"
        )
    if found.lora is not None and found.lora.folder.parent != found.weights.folder:
        raise InputError(
            f"--model {name}: LoRA weights from elsewhere cannot be trained on; merge them first"
        )
    usual = "cuda" if torch.cuda.is_available() else "cpu"
    return TrainingBase(
        name,
        found.weights.folder,
        found.weights.digest,
        found.terms.licence,
        options.device or usual,
        found.method.name,
        replace(found.loading, lora=None, running=_learning(found.loading.running)) if flow else None,
        found.weights.folder / LORA if flow and found.lora is not None else None,
    )
