"""What an arm produced, as it is kept: a lossless PNG of the sample's own size, or the reason why there is none.

A PNG of that size with nothing in it but pixels is kept as it came: what an open editor's device encoded is decoded
once, to check it, and not encoded again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson

from plantain.bench.benchmark.benchmark import resized_bicubic
from plantain.bench.benchmark.native_format import encode_png
from plantain.journal import CallResult, Journal
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, decode_untrusted
from plantain.pixels.encode import holds_pixels_only
from plantain.pixels.fingerprint import sha256_of_pixels
from plantain.records import OK, Attempt, Outcome, OutcomeKind
from plantain.roles import EditedImage

ASPECT_TOLERANCE = 0.01
"""An output whose ratio of sides differs by more than this from the sample's shows something else."""

POLICY = "bicubic to the size of the previous image (antialiased, as Pillow does it)"
"""What is done with an output of another size, as published; recorded with each."""


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """An output at its sample's own size.

    Attributes:
        png: lossless, without metadata.
        pixels: the same, decoded: uint8 RGB (H, W, 3).
        note: one line on what was done to its size; "" for nothing.
    """

    png: bytes
    pixels: Pixels
    note: str


def at_own_size(data: bytes, size: tuple[int, int]) -> KeptOutput:
    """An editor's file as the benchmark keeps it.

    Args:
        data: any picture that we read.
        size: (width, height) of the sample's previous image.

    Raises:
        BadImage: it cannot be decoded, or its sides are in another ratio.
    """
    pixels = decode_untrusted(data, "edited image")
    height, width = pixels.shape[:2]
    ratio = (width / height) / (size[0] / size[1])
    if abs(ratio - 1.0) > ASPECT_TOLERANCE:
        raise BadImage(
            f"the output is {width}x{height} pixels and the image {size[0]}x{size[1]}: another ratio of sides"
        )
    if (width, height) == size:
        return KeptOutput(data if holds_pixels_only(data) else encode_png(pixels), pixels, "")
    pixels = resized_bicubic(pixels, size)
    return KeptOutput(encode_png(pixels), pixels, f"resized from {width}x{height}: {POLICY}")


def keep_output(
    journal: Journal, attempt: Attempt, edited: EditedImage, draft: CallResult, size: tuple[int, int]
) -> CallResult:
    """Stores an output as it came and as it is kept, and completes the settlement. Decodes: run it in a thread."""
    raw = journal.put_blob(edited.image.data, edited.image.media_type)
    try:
        own = at_own_size(edited.image.data, size)
    except BadImage as error:
        outcome = Outcome(OutcomeKind.MALFORMED, str(error))
        kept = replace(attempt, edit_outcome=outcome, raw=raw.sha256)
        return replace(draft, outcome=outcome, attempt=kept, blobs=(raw,))
    stored = raw if own.png == edited.image.data else journal.put_blob(own.png, "image/png")
    image = replace(stored, pixel_sha256=sha256_of_pixels(own.pixels))
    blobs = [raw, image]
    mask = None
    if edited.mask is not None:
        mask = journal.put_blob(edited.mask.data, edited.mask.media_type)
        blobs.append(mask)
    kept = replace(
        attempt,
        edit_outcome=OK,
        edited=image.sha256,
        raw=raw.sha256,
        mask=mask.sha256 if mask else None,
        support=edited.support,
    )
    fields = {"edited": kept.edited, "raw": kept.raw, "mask": kept.mask, "support": kept.support}
    notes = "; ".join(filter(None, (edited.note, own.note)))
    return replace(
        draft,
        answer=orjson.dumps({**fields, "note": notes}).decode(),
        raw=draft.raw or notes,
        attempt=kept,
        blobs=tuple(dict.fromkeys(blobs)),
    )
