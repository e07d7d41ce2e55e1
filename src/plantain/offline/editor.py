"""The procedural editor: reads an instruction, maps the anatomy and draws the finding, or removes it."""

from __future__ import annotations

import cv2
import numpy as np

from plantain.findings import load_taxonomy
from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.drawing.adding import Rendering, add
from plantain.offline.drawing.removing import remove
from plantain.offline.language import read_instruction
from plantain.offline.workers import workers
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg, encode_mask
from plantain.records import Direction, Outcome, OutcomeKind, SourceImage, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, NormalForm, Reply, failed, on_worker

VERSION = "1"


class ProceduralEditor:
    """The editor `offline/procedural`: draws or removes findings without learned weights."""

    name = "offline/procedural"
    fingerprint = VERSION

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """Return the edit and its mask; the outcome is `not_applicable` if the finding cannot be drawn or found."""
        edited = await on_worker(
            workers(),
            "editor",
            edit_encoded,
            request.original.data,
            request.instruction,
            request.image,
            request.seed,
            request.direction is not None,
            request.task_seed,
        )
        usage = Usage(served_model=f"{self.name}@{VERSION}", images=1)
        if isinstance(edited, Outcome):
            return failed(edited, usage)
        return Reply(edited, usage=usage)


def edit_encoded(
    data: bytes,
    instruction: str,
    image: SourceImage,
    seed: int,
    normal: bool = False,
    task_seed: int | None = None,
) -> EditedImage | Outcome:
    """Edit an encoded image by an instruction; return the edit (JPEG) and mask (PNG), or an outcome with the reason.

    Args:
        normal: True to also return the edit in normal form, in which a build judges it.
        seed, task_seed: as in `EditRequest`.
    """
    try:
        rendering = render_instruction(decode(data), instruction, image, seed, task_seed)
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
        normal=NormalForm.of(drawn) if normal else None,
    )


def render_instruction(
    pixels: Pixels, instruction: str, image: SourceImage, seed: int, task_seed: int | None = None
) -> Rendering:
    """Edit an image by an instruction; return edited pixels, mask, kind of support and a note.

    Args:
        pixels: uint8 (H, W, 3), the prepared original.
        instruction: an instruction in plain English.
        image: record of the image.
        seed: seed of all random choices.
        task_seed: seed of the place instead, so that all rounds of a task draw at the same place.

    Raises:
        CannotShow: the instruction names no known finding and direction, or it cannot be drawn or found.
    """
    taxonomy = load_taxonomy()
    if image.modality not in taxonomy.modalities:
        raise CannotShow(f"the procedural editor does not know {image.modality} images")
    intent = read_instruction(instruction, taxonomy.of(image.modality))
    if intent.finding is None or intent.direction is None:
        raise CannotShow("the instruction names no finding and direction that the procedural editor knows")
    finding = taxonomy.get(image.modality, intent.finding)
    rng = np.random.default_rng(seed)
    if intent.direction is Direction.ADD:
        return add(
            pixels,
            image,
            finding,
            intent,
            rng,
            rng if task_seed is None else np.random.default_rng(task_seed),
        )
    return remove(pixels, image, finding, intent, rng)
