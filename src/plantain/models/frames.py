"""The canvas of an open editor, the resizing of an image to it and exactly back, and an edit on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Literal

import cv2
import numpy as np

from plantain.findings import sides_to_name
from plantain.models.registry import Preset
from plantain.pixels.arrays import Mask, Pixels
from plantain.pixels.decode import declared_size, decode_mask, decode_untrusted
from plantain.pixels.encode import encode_png, resize
from plantain.records import Outcome, OutcomeKind
from plantain.roles import NO_REGION, EditRequest

STRETCH = 0.03
"""Sides may be scaled this much apart ("fit"); where a model's sizes ask for more, the image is padded ("pad")."""

_TALL = (
    (672, 1568),
    (688, 1504),
    (720, 1456),
    (752, 1392),
    (800, 1328),
    (832, 1248),
    (880, 1184),
    (944, 1104),
)
KONTEXT_SIZES = (*_TALL, (1024, 1024), *((high, wide) for wide, high in reversed(_TALL)))
"""Widths and heights that FLUX.1 Kontext was trained on (diffusers 0.42)."""


@dataclass(frozen=True, slots=True)
class FramePolicy:
    """The canvas sizes that a model accepts.

    Attributes:
        rule: "own": the image's size; "longest": the longer side is `side`; "area": width times height is about
            `side` squared; "width": the width is `side`, and the height at most twice that.
        side: the size at which the model was trained, in pixels.
        multiple: both sides of the canvas are multiples of this.
        sizes: the only allowed canvases, for a `side` of 1024; others are scaled from them.
        least: minimum side of the canvas in pixels, however narrow the image.
        reference: how the pipeline resizes the reference image, if it does: "shrunk": to 1024 x 1024 pixels at most
            (FLUX.2), so canvases stay below; "derived": to the canvas's proportions at `side` squared pixels
            (Qwen-Image-Edit), so only canvases that this leaves unchanged are used. If canvas and reference differed in
            size, the output would be shifted.
    """

    rule: Literal["own", "longest", "area", "width"] = "own"
    side: int = 0
    multiple: int = 1
    sizes: tuple[tuple[int, int], ...] = ()
    least: int = 64
    reference: Literal["canvas", "shrunk", "derived"] = "canvas"

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> FramePolicy:
        """Make the policy from the `frame` fields of a preset."""
        return cls(**{**fields, "sizes": tuple(map(tuple, fields.get("sizes", ())))})

    def frame(self, width: int, height: int, side: int | None = None) -> Frame:
        """Return the canvas for an image of this size, and the image's place on it.

        Args:
            width, height: size of the image in pixels.
            side: side in pixels instead of the policy's `side`.
        """
        if self.rule == "own":
            return Frame(width, height, "fit", width, height, 0, 0, width, height)
        canvas = self._canvas(width, height, side or self.side)
        scales = canvas[0] / width, canvas[1] / height
        if max(scales) / min(scales) <= 1.0 + STRETCH:
            return Frame(width, height, "fit", *canvas, 0, 0, *canvas)
        scale = min(scales)
        inner = (
            min(canvas[0], max(1, round(width * scale))),
            min(canvas[1], max(1, round(height * scale))),
        )
        left, top = (canvas[0] - inner[0]) // 2, (canvas[1] - inner[1]) // 2
        return Frame(width, height, "pad", *canvas, left, top, *inner)

    def _canvas(self, width: int, height: int, side: int) -> tuple[int, int]:
        ratio = width / height
        if self.sizes:
            chosen = _nearest(self.sizes, ratio)
            return self._whole(chosen[0] * side / 1024), self._whole(chosen[1] * side / 1024)
        if self.reference == "shrunk":
            return _nearest(below(min(side, 1024) ** 2, self.multiple, self.least), ratio)
        if self.reference == "derived":
            return _nearest(derived_from_themselves(side, self.multiple, self.least), ratio)
        if self.rule == "width":
            return self._whole(side), min(self._whole(side / ratio), self._whole(2 * side))
        if self.rule == "area":
            return self._whole(side * ratio**0.5), self._whole(side / ratio**0.5)
        scale = side / max(width, height)
        return self._whole(width * scale), self._whole(height * scale)

    def _whole(self, length: float) -> int:
        least = -(-self.least // self.multiple)
        return max(least, round(length / self.multiple)) * self.multiple


def _nearest(sizes: tuple[tuple[int, int], ...], ratio: float) -> tuple[int, int]:
    wanted = math.log(ratio)
    apart = [abs(logarithm - wanted) for logarithm in _log_ratios(sizes)]
    return sizes[apart.index(min(apart))]


@cache
def _log_ratios(sizes: tuple[tuple[int, int], ...]) -> tuple[float, ...]:
    return tuple(math.log(width / height) for width, height in sizes)


@cache
def below(area: int, multiple: int, least: int) -> tuple[tuple[int, int], ...]:
    """List the (width, height) of at most `area` pixels that are largest for one side.

    Both sides are multiples of `multiple` and at least `least`.
    """
    sides = range(-(-least // multiple) * multiple, area // least + 1, multiple)
    wide = [(side, area // side // multiple * multiple) for side in sides]
    found = [size for size in wide if size[1] >= least]
    return tuple(sorted({*found, *((height, width) for width, height in found)}))


@cache
def derived_from_themselves(side: int, multiple: int, least: int) -> tuple[tuple[int, int], ...]:
    """List the (width, height) of about `side` squared pixels that the pipeline's rounding leaves unchanged.

    The rule is `calculate_dimensions` of diffusers' Qwen-Image-Edit pipelines (diffusers 0.42).
    """
    sides = range(-(-least // multiple) * multiple, side * side // least + multiple, multiple)
    return tuple(
        (width, height)
        for width in sides
        for height in _near(side * side / width, multiple)
        if height >= least and _derived(side * side, width / height, multiple) == (width, height)
    )


def _near(length: float, multiple: int) -> tuple[int, ...]:
    below = int(length // multiple) * multiple
    return tuple(
        side for side in (below - multiple, below, below + multiple, below + 2 * multiple) if side > 0
    )


def _derived(area: float, ratio: float, multiple: int) -> tuple[int, int]:
    width = math.sqrt(area * ratio)
    return round(width / multiple) * multiple, round(width / ratio / multiple) * multiple


@dataclass(frozen=True, slots=True)
class Frame:
    """The geometry of an image on a model's canvas, from which it can be restored exactly.

    Attributes:
        width, height: of the image.
        mode: "fit": it fills the canvas; "pad": its edges are repeated around it.
        canvas_width, canvas_height: size of the canvas.
        left, top, inner_width, inner_height: rectangle of the resized image on the canvas.
    """

    width: int
    height: int
    mode: str
    canvas_width: int
    canvas_height: int
    left: int
    top: int
    inner_width: int
    inner_height: int

    @property
    def canvas(self) -> tuple[int, int]:
        """(width, height) of the canvas in pixels."""
        return self.canvas_width, self.canvas_height

    def enter(self, pixels: Pixels) -> Pixels:
        """Resize and pad an image, uint8 (height, width, 3), to the canvas: (canvas_height, canvas_width, 3)."""
        inner = resize(pixels, self.inner_width, self.inner_height)
        right = self.canvas_width - self.left - self.inner_width
        bottom = self.canvas_height - self.top - self.inner_height
        if not (self.left or self.top or right or bottom):
            return inner
        bordered: Pixels = cv2.copyMakeBorder(inner, self.top, bottom, self.left, right, cv2.BORDER_REPLICATE)
        return bordered

    def enter_region(self, region: Mask) -> Mask:
        """Resize a region, bool (height, width), to the canvas: True for pixels at least half inside it."""
        planes = np.repeat(region[:, :, None].astype(np.uint8) * 255, 3, 2)
        entered: Mask = self.enter(planes)[:, :, 0] >= 128
        return entered

    def leave(self, canvas: Pixels) -> Pixels:
        """Crop and resize a canvas back to the image's size, uint8 (height, width, 3), inverting `enter`.

        Raises:
            ValueError: `canvas` is not of shape (canvas_height, canvas_width, 3).
        """
        if canvas.shape != (self.canvas_height, self.canvas_width, 3):
            raise ValueError(
                f"the model returned {canvas.shape[1]}x{canvas.shape[0]} pixels for {self.canvas_width}x"
                f"{self.canvas_height}"
            )
        rows = slice(self.top, self.top + self.inner_height)
        inner = canvas[rows, self.left : self.left + self.inner_width]
        return np.ascontiguousarray(resize(inner, self.width, self.height))

    def as_json(self) -> dict[str, str | int]:
        """Return all fields by name, for the journal's record of a call."""
        return asdict(self)


NO_EXAMPLES = Outcome(OutcomeKind.NOT_APPLICABLE, "open editors do not use demonstrations")
UNREADABLE = Outcome(OutcomeKind.MALFORMED, "the original is not a readable image")


@dataclass(frozen=True, slots=True)
class FramedRequest:
    """One edit request for a model that works on a canvas of its own size.

    Attributes:
        original: bytes of the original's file.
        frame: the geometry of the canvas.
        instruction: the text for the model.
        seed: seed of this edit.
        region: PNG mask of the original's size, for models that require one; None for others.
        side: side of the canvas in pixels; None for the method's default.
        parameters: settings of this edit only.
    """

    original: bytes = field(repr=False)
    frame: Frame
    instruction: str
    seed: int
    region: bytes | None = field(default=None, repr=False)
    side: int | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)

    def canvas(self) -> Pixels:
        """Return the original on the canvas, uint8 (H, W, 3). Raise BadImage if it cannot be decoded."""
        return self.frame.enter(decode_untrusted(self.original, "original"))

    def canvas_region(self) -> Mask | None:
        """Return the region on the canvas, bool (H, W); None if the request has none."""
        return None if self.region is None else self.frame.enter_region(decode_mask(self.region))

    def leave(self, canvas: Pixels) -> bytes | Outcome:
        """Convert a canvas, uint8 (H, W, 3), to PNG bytes of the original's size; `malformed` if its size is wrong."""
        try:
            return encode_png(self.frame.leave(canvas))
        except ValueError as error:
            return Outcome(OutcomeKind.MALFORMED, str(error))


def framed_request(
    request: EditRequest,
    preset: Preset,
    policy: FramePolicy,
    side: int | None,
    *,
    names_sides: bool,
    takes_region: bool,
) -> FramedRequest | Outcome:
    """Fit an edit request to a model's canvas; return an outcome if the model cannot serve it.

    Args:
        request: the request to the editor.
        preset: preset of the model; the instruction is filled into its prompt.
        policy: the model's canvas sizes.
        side: side of the canvas in pixels; None for the policy's `side`.
        names_sides: True to state where the patient's left and right are, if the instruction names a side.
        takes_region: True if the model requires a region.
    """
    if request.demonstrations:
        return NO_EXAMPLES
    if takes_region and request.region is None:
        return NO_REGION
    width, height = declared_size(request.original.data)
    if not (width and height):
        return UNREADABLE
    sides = sides_to_name(request.instruction, request.image) if names_sides else ""
    return FramedRequest(
        request.original.data,
        policy.frame(width, height, side),
        preset.words(request.instruction, sides),
        request.seed,
        request.region.data if takes_region and request.region else None,
        side,
        request.parameters,
    )
