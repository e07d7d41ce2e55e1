"""The arms of every run: cheap tricks that a model has to beat, and the real image as a ceiling.

The truth of a benchmark is seldom aligned to the pixel, so that copying the input scores well on many metrics; a model
that does not beat `copy-input` has edited nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import cv2

from plantain.bench.benchmark.benchmark import resized_bicubic
from plantain.bench.benchmark.native_format import encode_png
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed

VERSION = "1"

COPY_INPUT, RESIZE_ONLY, JPEG_75, GROUND_TRUTH = "copy-input", "resize-only", "jpeg-75", "ground-truth"
BASELINES = (COPY_INPUT, RESIZE_ONLY, JPEG_75, GROUND_TRUTH)
"""Labels of the arms, in the order in which tables show them."""

PROVIDER = "baseline"

WORKING_SIDE = 512
"""Longest side at which the paper's open models work, in pixels."""

STEP = 8
"""Latent models work on sides that are multiples of this."""

NO_TRUTH = "the benchmark has no image after the procedure"


def _copied(pixels: Pixels) -> tuple[Pixels, str]:
    return pixels, "the input, unchanged"


def _resized(pixels: Pixels) -> tuple[Pixels, str]:
    """Resize to a model's working size and back, bicubic both ways: the cost of a model that edits nothing.

    The working size has a longest side of 512, or of half the image's if the image is no larger than that (else
    nothing would happen), both sides floored to multiples of 8.
    """
    height, width = pixels.shape[:2]
    longest = max(width, height)
    side = WORKING_SIDE if longest > WORKING_SIDE else longest // 2
    small = tuple(max(STEP, round(n * side / longest) // STEP * STEP) for n in (width, height))
    through = resized_bicubic(pixels, (small[0], small[1]))
    return resized_bicubic(through, (width, height)), f"through {small[0]}x{small[1]} and back, bicubic"


def _compressed(pixels: Pixels) -> tuple[Pixels, str]:
    """Encode as a JPEG of quality 75 with halved colour, the usual default of tools."""
    done, data = cv2.imencode(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 75])
    if not done:
        raise ValueError(f"cannot encode an image of shape {pixels.shape}")
    return decode(data.tobytes()), "JPEG of quality 75, 4:2:0"


TRICKS: dict[str, Callable[[Pixels], tuple[Pixels, str]]] = {
    COPY_INPUT: _copied,
    RESIZE_ONLY: _resized,
    JPEG_75: _compressed,
}


class Trick:
    """One of the cheap baselines as an editor; it ignores its instruction."""

    def __init__(self, label: str) -> None:
        self.name = f"{PROVIDER}/{label}"
        self.fingerprint = f"{label}@{VERSION}"
        self._trick = TRICKS[label]

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        return Reply(await asyncio.to_thread(self._edited, request.original), usage=Usage(images=1))

    def _edited(self, original: EncodedImage) -> EditedImage:
        pixels, note = self._trick(decode(original.data))
        return EditedImage(EncodedImage(encode_png(pixels), "image/png"), note=note)


class Truth:
    """The real image after the procedure as an editor: the metrics of a perfect edit.

    Args:
        read: the sample's truth by its id, uint8 (H, W, 3) of the previous image's size; None without one.
    """

    name = f"{PROVIDER}/{GROUND_TRUTH}"
    fingerprint = f"{GROUND_TRUTH}@{VERSION}"

    def __init__(self, read: Callable[[str], Pixels | None]) -> None:
        self._read = read

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """Return the truth; `not_applicable` without one."""
        pixels = await asyncio.to_thread(self._read, request.image.id)
        if pixels is None:
            return failed(Outcome(OutcomeKind.NOT_APPLICABLE, NO_TRUTH))
        image = EncodedImage(await asyncio.to_thread(encode_png, pixels), "image/png")
        return Reply(EditedImage(image, note="the real image after"), usage=Usage(images=1))
