"""The InstructPix2Pix that a training starts from, and the folder of the trained one.

The base is found, its licence checked, and it is loaded fresh for every training. The folder is an editor by itself
and shares unchanged files with its base.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from plantain.files.installed import install_line
from plantain.files.opening import files_like
from plantain.journal.blobs import sync_folder
from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.provider import Settings
from plantain.models.diffusers.quiet import quiet_libraries
from plantain.models.diffusers.weights import LORA, TRAINED
from plantain.records import InputError

if TYPE_CHECKING:
    from diffusers import StableDiffusionInstructPix2PixPipeline

InstructionPipeline: TypeAlias = "StableDiffusionInstructPix2PixPipeline"

METHOD = "instruct-pix2pix"
"""The only editing method whose UNet is conditioned as these trainings assume."""


@dataclass(frozen=True, slots=True)
class TrainingBase:
    """Weights that a training starts from.

    Attributes:
        name: as the user wrote it, "diffusers/…".
        folder: of the pipeline.
        digest: of its weights.
        licence: "unknown" if not stated.
        device: of torch.
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
    """Find a model to train.

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
            f"--model {name}: runs as {found.method.name}; only InstructPix2Pix and weights trained from it can be "
            "trained here"
        )
    if any(lora.folder.parent != found.weights.folder for lora, _ in found.loras):
        raise InputError(
            f"--model {name}: LoRA weights of another folder cannot be trained; merge them first"
        )
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    return TrainingBase(name, found.weights.folder, found.weights.digest, found.terms.licence, device)


CARD = "README.md"


@dataclass(frozen=True, slots=True)
class Card:
    """The card of trained weights.

    Attributes:
        title: their name.
        base: the weights that training started from.
        licence: of the base; "" if unknown.
        text: how they were trained, as Markdown.
        side: of the canvas in training, in pixels; the editor uses it by default.
    """

    title: str
    base: str
    licence: str
    text: str
    side: int


def save_editor(pipe: InstructionPipeline, base: Path, folder: Path, card: Card, *, lora: bool) -> None:
    """Write the trained editor, completely or not at all.

    Args:
        pipe: trained.
        base: folder of the pipeline that it was loaded from; unchanged files are hard-linked if possible.
        folder: replaced if it exists.
        card: for its README.
        lora: adapters were trained, not the whole UNet.

    Raises:
        InputError: it cannot be written, e.g. the disk is full.
    """
    from safetensors import SafetensorError

    unfinished = folder.with_name(folder.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        _write(pipe, base, unfinished, card, lora=lora)
    except (OSError, RuntimeError, SafetensorError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise cannot_write(folder.parent, f"the editor {folder.name}", error) from error
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    sync_folder(folder.parent)


def save_lora(pipe: InstructionPipeline, folder: Path) -> None:
    """Write the UNet's adapters as diffusers loads them: `pytorch_lora_weights.safetensors`."""
    from diffusers.utils import convert_state_dict_to_diffusers
    from peft.utils import get_peft_model_state_dict

    layers = convert_state_dict_to_diffusers(get_peft_model_state_dict(pipe.unet))
    pipe.save_lora_weights(folder, unet_lora_layers=layers, safe_serialization=True)


def cannot_write(folder: Path, what: str, error: Exception) -> InputError:
    """Return the error for a file that could not be written to a folder; previous files are unchanged."""
    free = shutil.disk_usage(folder).free / 1e6
    return InputError(
        f"{folder}: {what} cannot be written ({free:.1f} MB free): {' '.join(str(error).split())[:200]}; previous "
        "files are unchanged: make room and run the same command again"
    )


def _write(pipe: InstructionPipeline, base: Path, unfinished: Path, card: Card, *, lora: bool) -> None:
    merge = lora and (base / LORA).is_file()  # adapters on top of adapters: both are merged into the UNet
    for path in files_like(base, "**/*"):
        place = path.relative_to(base)
        changed = place.parts[0] == "unet" and (merge or not lora)
        if path.is_file() and not changed and str(place) not in (CARD, LORA, TRAINED):
            _link(path, unfinished / place)
    if lora and not merge:
        save_lora(pipe, unfinished)
    else:
        if lora:
            pipe.fuse_lora()
            pipe.unload_lora_weights()
        pipe.unet.save_pretrained(unfinished / "unet")
    head = f"---\nlicense: {card.licence}\n---\n\n" if card.licence else ""
    (unfinished / CARD).write_text(
        f"{head}# {card.title}\n\nTrained with plantain from `{card.base}`.\n\n{card.text.strip()}\n\n"
        "For research only. These weights make synthetic images: mark their output as synthetic; it must not "
        "be used for diagnosis or treatment, and must not be passed off as a patient's.\n",
        encoding="utf-8",
    )
    (unfinished / TRAINED).write_text(json.dumps({"side": card.side}), encoding="utf-8")
    sync_folder(unfinished)


def _link(source: Path, target: Path) -> None:
    """Hard-link a file, or copy it where the file system cannot."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)
