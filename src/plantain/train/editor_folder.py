"""What a training leaves behind: a folder that is an editor by itself, sharing with its base what did not change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plantain.journal.disk.blobs import sync_folder
from plantain.models.diffusers.weights import LORA, TRAINED
from plantain.train.weights import save_lora
from plantain.train.written import CARD, link_file, written_whole

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline


@dataclass(frozen=True, slots=True)
class Card:
    """What a person must know of trained weights.

    Attributes:
        title: their name.
        base: what they were trained from.
        licence: of the base; "" when unknown.
        text: how they were made, as Markdown.
        side: of the canvas that they learned on, in pixels; the editor works at it unless told otherwise.
    """

    title: str
    base: str
    licence: str
    text: str
    side: int


def save_editor(pipe: DiffusionPipeline, base: Path, folder: Path, card: Card, *, lora: bool) -> None:
    """Writes the trained editor, at once or not at all.

    Args:
        pipe: trained.
        base: folder of the pipeline that it was loaded from; unchanged files are linked, not copied, where the file
            system allows.
        folder: to be made; one that exists is replaced.
        card: for its README.
        lora: adapters were trained, else the whole UNet.

    Raises:
        InputError: it cannot be written, as on a full disk.
    """
    with written_whole(folder, f"the editor {folder.name}") as unfinished:
        _write(pipe, base, unfinished, card, lora=lora)


def _write(pipe: DiffusionPipeline, base: Path, unfinished: Path, card: Card, *, lora: bool) -> None:
    unet = "unet" in pipe.components
    merge = (
        unet and lora and (base / LORA).is_file()
    )  # adapters on top of adapters: the UNet takes both; a transformer goes on with the same ones
    for path in sorted(base.rglob("*")):
        place = path.relative_to(base)
        changed = place.parts[0] == "unet" and (merge or not lora)
        if path.is_file() and not changed and str(place) not in (CARD, LORA, TRAINED):
            link_file(path, unfinished / place)
    if lora and not merge:
        save_lora(pipe, unfinished)
    else:
        if lora:
            pipe.fuse_lora()
            pipe.unload_lora_weights()
        pipe.unet.save_pretrained(unfinished / "unet")
    (unfinished / CARD).write_text(_readme(card), encoding="utf-8")
    (unfinished / TRAINED).write_text(json.dumps({"side": card.side}), encoding="utf-8")
    sync_folder(unfinished)


def _readme(card: Card) -> str:
    head = f"---\nlicense: {card.licence}\n---\n\n" if card.licence else ""
    return (
        f"{head}# {card.title}\n\nTrained with plantain from `{card.base}`.\n\n{card.text.strip()}\n\n"
        "For research only. These weights make synthetic images: what they make must be marked as synthetic, must not "
        "be used for diagnosis or treatment, and must not be passed off as a patient's.\n"
    )
