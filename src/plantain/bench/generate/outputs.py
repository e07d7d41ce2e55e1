"""Images in a run's journal: outputs at the sample's own size, and the samples' own images.

An output is a lossless PNG of the sample's size, or the reason why there is none. A PNG of that size without metadata
is kept as it came, so that it is decoded once, to check it, and not encoded again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import orjson

from plantain.bench.benchmark.benchmark import Benchmark, resized_bicubic
from plantain.bench.benchmark.native_format import encode_png
from plantain.bench.benchmark.samples import Sample
from plantain.journal import CallResult, Journal
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage, decode_output
from plantain.pixels.encode import holds_pixels_only
from plantain.pixels.likeness import sha256_of_pixels
from plantain.privacy.lineage import made_from
from plantain.records import OK, Attempt, InputError, Outcome, OutcomeKind
from plantain.roles import EditedImage, EncodedImage

PNG = "image/png"

ASPECT_TOLERANCE = 0.01
"""An output whose aspect ratio differs by more than this from the sample's is malformed."""

POLICY = "bicubic to the size of the previous image (antialiased, as Pillow does it)"
"""Treatment of an output of another size, as published; recorded with each."""


@dataclass(frozen=True, slots=True)
class SizedOutput:
    """An output at its sample's own size.

    Attributes:
        png: lossless, without metadata.
        pixels: the same, decoded: uint8 RGB (H, W, 3).
        note: one line on how it was resized; "" if it was not.
    """

    png: bytes
    pixels: Pixels
    note: str


def at_own_size(data: bytes, size: tuple[int, int]) -> SizedOutput:
    """Return an editor's file as the benchmark keeps it.

    Args:
        data: any image that we read.
        size: (width, height) of the sample's previous image.

    Raises:
        BadImage: it cannot be decoded, or has another aspect ratio.
    """
    pixels = decode_output(data)
    height, width = pixels.shape[:2]
    ratio = (width / height) / (size[0] / size[1])
    if abs(ratio - 1.0) > ASPECT_TOLERANCE:
        raise BadImage(
            f"the output is {width}x{height} pixels and the image {size[0]}x{size[1]}: another ratio of sides"
        )
    if (width, height) == size:
        return SizedOutput(data if holds_pixels_only(data) else encode_png(pixels), pixels, "")
    pixels = resized_bicubic(pixels, size)
    return SizedOutput(encode_png(pixels), pixels, f"resized from {width}x{height}: {POLICY}")


def keep_output(
    journal: Journal, attempt: Attempt, edited: EditedImage, draft: CallResult, size: tuple[int, int]
) -> CallResult:
    """Store an output as it came and at the sample's size, and complete the call's result. Run it in a thread."""
    raw = journal.put_blob(edited.image.data, edited.image.media_type)
    try:
        sized = at_own_size(edited.image.data, size)
    except BadImage as error:
        outcome = Outcome(OutcomeKind.MALFORMED, str(error))
        lost = replace(attempt, edit_outcome=outcome, raw=raw.sha256)
        return replace(draft, outcome=outcome, attempt=lost, blobs=(raw,))
    stored = raw if sized.png == edited.image.data else journal.put_blob(sized.png, PNG)
    image = replace(stored, pixel_sha256=sha256_of_pixels(sized.pixels))
    mask = None if edited.mask is None else journal.put_blob(edited.mask.data, edited.mask.media_type)
    kept = replace(
        attempt,
        edit_outcome=OK,
        edited=image.sha256,
        raw=raw.sha256,
        mask=mask.sha256 if mask else None,
        support=edited.support,
    )
    fields = {"edited": kept.edited, "raw": kept.raw, "mask": kept.mask, "support": kept.support}
    notes = "; ".join(filter(None, (edited.note, sized.note)))
    return replace(
        draft,
        answer=orjson.dumps({**fields, "note": notes}).decode(),
        raw=draft.raw or notes,
        attempt=kept,
        blobs=tuple(dict.fromkeys(blob for blob in (raw, image, mask) if blob is not None)),
    )


async def previous_of(benchmark: Benchmark, journal: Journal, sample: Sample) -> tuple[EncodedImage, str]:
    """Return the sample's previous image as models receive it, and its hash.

    It is recorded in the run when it is first needed, so that its licence is known wherever it goes.
    """
    try:
        sha256 = journal.reader.image(sample.id).prepared_sha256
        data = await asyncio.to_thread(journal.reader.read_blob, sha256)
    except InputError:
        data = await asyncio.to_thread(lambda: encode_png(benchmark.previous(sample)))
        blob = await asyncio.to_thread(journal.put_blob, data, PNG)
        await journal.add_images([(replace(sample.image, id=sample.id, prepared_sha256=blob.sha256), blob)])
        sha256 = blob.sha256
    return EncodedImage(data, PNG), sha256


async def changed_of(benchmark: Benchmark, sample: Sample, previous: EncodedImage) -> EncodedImage:
    """Return the real image after; its owner is that of the previous one."""
    data = await asyncio.to_thread(lambda: encode_png(benchmark.changed(sample)))
    return EncodedImage(made_from(data, previous.data), PNG)
