"""The model that a training starts from: found, licence checked, loaded fresh as often as needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plantain.files.installing import install_line
from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.quiet import quiet_libraries
from plantain.records import InputError
from plantain.roles.options import ProviderOptions
from plantain.train.editor_folder import LORA
from plantain.train.latents import METHOD, InstructionPipeline


@dataclass(frozen=True, slots=True)
class TrainingBase:
    """What a training starts from.

    Attributes:
        name: as the user wrote it, "diffusers/…".
        folder: of the pipeline.
        digest: of its weights.
        licence: "unknown" where nobody says.
        device: of torch.
    """

    name: str
    folder: Path
    digest: str
    licence: str
    device: str

    def load(self) -> InstructionPipeline:
        """A fresh pipeline in float32 on the device; adapters that lie in its folder are merged into it.

        Raises:
            InputError: the weights cannot be loaded.
        """
        quiet_libraries()
        from diffusers import StableDiffusionInstructPix2PixPipeline

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
        except (OSError, ValueError, RuntimeError, TypeError, KeyError) as error:
            first = str(error).strip().splitlines()[0]
            raise InputError(f"{self.name}: {self.folder} cannot be loaded: {first}") from error
        pipe.set_progress_bar_config(disable=True)
        return pipe.to(self.device)


def open_base(name: str, options: ProviderOptions) -> TrainingBase:
    """Finds a model to start from.

    Args:
        name: "diffusers/<preset, hub id or folder>".
        options: of the provider: device, cache, accepted licences.

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
    if found.method.name != METHOD:
        raise InputError(
            f"--model {name}: is run by {found.method.name}; only InstructPix2Pix and what was trained from it can be "
            "trained here"
        )
    if found.lora is not None and found.lora.folder.parent != found.weights.folder:
        raise InputError(
            f"--model {name}: LoRA weights from elsewhere cannot be trained on; merge them first"
        )
    usual = "cuda" if torch.cuda.is_available() else "cpu"
    return TrainingBase(
        name, found.weights.folder, found.weights.digest, found.terms.licence, options.device or usual
    )
