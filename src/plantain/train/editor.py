"""The folder that a training produces: a complete editor, which shares unchanged files with its base."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from plantain.files.opening import files_like
from plantain.journal.blobs import sync_folder
from plantain.models.diffusers.weights import LORA, TRAINED
from plantain.records import InputError
from plantain.train.base import InstructionPipeline, TrainingBase

CARD = "README.md"


def save_editor(
    pipe: InstructionPipeline,
    start: Path,
    folder: Path,
    base: TrainingBase,
    *,
    title: str,
    text: str,
    side: int,
    lora: bool,
) -> None:
    """Write the trained editor to a folder, atomically.

    Args:
        pipe: the trained pipeline.
        start: folder of the pipeline that it was loaded from; unchanged files are hard-linked if possible.
        folder: the folder, replaced if it exists.
        base: the weights that training started from; the model card in README.md has their name and licence.
        title: what was trained, for the card's heading.
        text: how it was trained, as Markdown, for the card.
        side: side of the canvas in training, in pixels; the editor uses it by default.
        lora: True if adapters were trained, not the whole UNet.

    Raises:
        InputError: it cannot be written, e.g. the disk is full.
    """
    from safetensors import SafetensorError

    unfinished = folder.with_name(folder.name + ".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        _write_weights(pipe, start, unfinished, lora=lora)
        head = f"---\nlicense: {base.licence}\n---\n\n" if base.licence else ""
        (unfinished / CARD).write_text(
            f"{head}# {base.name}, {title}\n\nTrained with plantain from `{base.name}`.\n\n{text.strip()}\n\n"
            "For research only. These weights make synthetic images: mark their output as synthetic; it must not "
            "be used for diagnosis or treatment, and must not be passed off as a patient's.\n",
            encoding="utf-8",
        )
        (unfinished / TRAINED).write_text(json.dumps({"side": side}), encoding="utf-8")
        sync_folder(unfinished)
    except (OSError, RuntimeError, SafetensorError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise cannot_write(folder.parent, f"the editor {folder.name}", error) from error
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
    sync_folder(folder.parent)


def save_lora(pipe: InstructionPipeline, folder: Path) -> None:
    """Write the UNet's adapters to `pytorch_lora_weights.safetensors`, which diffusers can load."""
    from diffusers.utils import convert_state_dict_to_diffusers
    from peft.utils import get_peft_model_state_dict

    layers = convert_state_dict_to_diffusers(get_peft_model_state_dict(pipe.unet))
    pipe.save_lora_weights(folder, unet_lora_layers=layers, safe_serialization=True)


def cannot_write(folder: Path, what: str, error: Exception) -> InputError:
    """Make the error to raise if `what` cannot be written to a folder; it states the free space."""
    free = shutil.disk_usage(folder).free / 1e6
    return InputError(
        f"{folder}: {what} cannot be written ({free:.1f} MB free): {' '.join(str(error).split())[:200]}; previous "
        "files are unchanged: make room and run the same command again"
    )


def _write_weights(pipe: InstructionPipeline, start: Path, unfinished: Path, *, lora: bool) -> None:
    merge = lora and (start / LORA).is_file()  # adapters on top of adapters: both are merged into the UNet
    for path in files_like(start, "**/*"):
        place = path.relative_to(start)
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


def _link(source: Path, target: Path) -> None:
    """Hard-link a file, or copy it where the file system cannot."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)
