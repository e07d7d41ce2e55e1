"""The procedural editor: reads an instruction, finds the anatomy and renders the finding, or takes it away."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module

import cv2
import numpy as np

from plantain.findings import load_taxonomy
from plantain.offline.language import asks_for_nothing, read_instruction
from plantain.offline.rendering import CannotShow, FindingRenderer, Rendering, Scene
from plantain.offline.workers import compute
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_mask, normalise
from plantain.pixels.fingerprint import pixel_sha256
from plantain.records import Direction, Outcome, OutcomeKind, SourceImage, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, NormalForm, Reply, failed

VERSION = "3"

PACKAGES = {
    "chest_xray": "plantain.offline.chest",
    "brain_mri": "plantain.offline.brain",
    "fundus": "plantain.offline.fundus",
}


class ProceduralEditor:
    """`offline/procedural`: text-guided, classical image processing, no learned weights."""

    name = "offline/procedural"
    fingerprint = VERSION

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """Edits as the instruction says; `not_applicable` when the finding cannot be shown or found here."""
        edited = await compute(
            "editor",
            edit_encoded,
            request.original.data,
            request.instruction,
            request.image,
            request.seed,
            request.round,
            request.direction is not None,
        )
        usage = Usage(served_model=f"{self.name}@{VERSION}", images=1)
        if isinstance(edited, Outcome):
            return failed(edited, usage)
        return Reply(edited, usage=usage)


def edit_encoded(
    data: bytes, instruction: str, image: SourceImage, seed: int, round: int = 1, normal: bool = False
) -> EditedImage | Outcome:
    """`render_instruction` from file bytes to file bytes; what cannot be done comes back as an outcome.

    Args:
        normal: bring what comes out into normal form too, as a build judges it.
    """
    try:
        rendering = render_instruction(decode(data), instruction, image, seed, round)
    except CannotShow as reason:
        return Outcome(OutcomeKind.NOT_APPLICABLE, str(reason))
    except (ArithmeticError, ValueError, IndexError, cv2.error, np.linalg.LinAlgError) as error:
        return Outcome(OutcomeKind.MALFORMED, f"{type(error).__name__}: {error}")
    drawn = encode_jpeg(rendering.pixels)
    return EditedImage(
        image=EncodedImage(drawn, "image/jpeg"),
        mask=EncodedImage(encode_mask(rendering.mask), "image/png"),
        support=rendering.support,
        note=rendering.note,
        normal=_normal_form(drawn)
        if normal and rendering.pixels.shape[0] == rendering.pixels.shape[1]
        else None,
    )


def _normal_form(data: bytes) -> NormalForm:
    normal = normalise(data)
    return NormalForm(normal, pixel_sha256(normal))


def render_instruction(
    pixels: Pixels, instruction: str, image: SourceImage, seed: int, round: int = 1
) -> Rendering:
    """Reads the instruction and renders it.

    Args:
        pixels: uint8 (H, W, 3), the prepared original.
        instruction: plain English.
        image: what is known of the image.
        seed: the only source of randomness.
        round: of the loop, from 1: removals, which measure and draw little by chance, go another length in each.

    Raises:
        CannotShow: no known finding or direction in the words, or it cannot be shown or found here.
    """
    if image.modality not in PACKAGES:
        raise CannotShow(f"the procedural editor does not know {image.modality} images")
    taxonomy = load_taxonomy()
    intent = read_instruction(instruction, taxonomy.of(image.modality))
    renderers = _renderers(image.modality)
    if intent.finding is None and intent.direction is None and asks_for_nothing(instruction):
        return Rendering(pixels, np.zeros(pixels.shape[:2], bool), "local", "nothing was asked for")
    if intent.finding is None or intent.direction is None:
        raise CannotShow("the instruction names no finding and direction that the procedural editor knows")
    if intent.finding not in renderers:
        raise CannotShow(f"the procedural editor cannot render {intent.finding}")
    finding = taxonomy.get(image.modality, intent.finding)
    scene = Scene(pixels, image, finding, intent, np.random.default_rng(seed))
    renderer = renderers[intent.finding]
    if intent.direction is Direction.ADD:
        return renderer.add(scene)
    return _to_another_length(pixels, renderer.remove(scene), round)


def _to_another_length(original: Pixels, removal: Rendering, round: int) -> Rendering:
    """A removal taken further than was measured in even rounds (1.1, 1.2), less far in odd ones (0.92, 0.84).

    Edges that were moved are never taken further: they would ring.
    """
    if round == 1:
        return removal
    if removal.support == "warp":
        length = 1 - 0.05 * (round - 1)
    else:
        length = 1 + 0.1 * (round // 2) if round % 2 == 0 else 1 - 0.08 * (round // 2)
    before = original.astype(np.float32)
    drawn = before + max(length, 0.5) * (removal.pixels - before)
    changed = np.rint(np.clip(drawn, 0, 255)).astype(np.uint8)
    return replace(removal, pixels=changed, note=f"{removal.note}; in round {round} to {length:.2f} of that")


@cache
def _renderers(modality: str) -> dict[str, FindingRenderer]:
    renderers: dict[str, FindingRenderer] = import_module(PACKAGES[modality]).RENDERERS
    return renderers
