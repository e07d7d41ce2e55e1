"""The InstructPix2Pix that a training starts from: found, licence checked, loaded fresh for every training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from plantain.files.installed import install_line
from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.provider import Settings
from plantain.models.diffusers.quiet import quiet_libraries
from plantain.models.diffusers.weights import LORA
from plantain.records import InputError

if TYPE_CHECKING:
    from diffusers import StableDiffusionInstructPix2PixPipeline

InstructionPipeline: TypeAlias = "StableDiffusionInstructPix2PixPipeline"

METHOD = "instruct-pix2pix"
"""The only editing method whose UNet is conditioned as these trainings assume."""


@dataclass(frozen=True, slots=True)
class TrainingBase:
    """The weights that a training starts from.

    Attributes:
        name: name given by the user, "diffusers/…".
        folder: folder of the pipeline.
        digest: hash of its weights.
        licence: licence of the weights; "unknown" if not stated.
        device: name of the torch device.
    """

    name: str
    folder: Path
    digest: str
    licence: str
    device: str

    def load(self, folder: Path | None = None) -> InstructionPipeline:
        """Load a fresh pipeline in float32 onto the device, with LoRA weights in its folder merged.

        Args:
            folder: a pipeline trained from this one; None for the base itself.

        Raises:
            InputError: the weights cannot be loaded.
        """
        quiet_libraries()
        from diffusers import StableDiffusionInstructPix2PixPipeline
        from safetensors import SafetensorError

        folder = folder or self.folder
        try:
            pipe = StableDiffusionInstructPix2PixPipeline.from_pretrained(
                folder, local_files_only=True, safety_checker=None, requires_safety_checker=False
            )
            if (folder / LORA).is_file():
                pipe.load_lora_weights(folder)
                pipe.fuse_lora()
                pipe.unload_lora_weights()
        except (OSError, ValueError, RuntimeError, TypeError, KeyError, SafetensorError) as error:
            first = str(error).strip().splitlines()[0]
            raise InputError(f"{self.name}: {folder} cannot be loaded: {first}") from error
        pipe.set_progress_bar_config(disable=True)
        return pipe.to(self.device)


def open_base(name: str, options: Settings) -> TrainingBase:
    """Locate the weights of a model to train, without loading them.

    Args:
        name: "diffusers/<preset, hub id or folder>".
        options: settings of the provider: device, cache, accepted licences.

    Raises:
        InputError: weights or torch are missing, a licence was not accepted, or the model is of another class.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError(f"training needs torch: {install_line('torch')}") from error
    provider, _, where = name.partition("/")
    if provider != "diffusers" or not where:
        raise InputError(f"--model {name!r}: name an InstructPix2Pix as diffusers/FOLDER or diffusers/HUB-ID")
    found = plan_editor(name, options)
    if found.method.name != METHOD:
        raise InputError(
            f"--model {name}: runs as {found.method.name}; only InstructPix2Pix and weights trained from it can be "
            "trained here"
        )
    if found.lora is not None and found.lora.folder.parent != found.weights.folder:
        raise InputError(
            f"--model {name}: LoRA weights of another folder cannot be trained; merge them first"
        )
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    return TrainingBase(name, found.weights.folder, found.weights.digest, found.terms.licence, device)
