"""Random fields and displaced images that renderers share: smooth noise, backward warps, the last composite."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from plantain.offline.rendering import Rendering
from plantain.pixels.arrays import Field, Mask, Pixels
from plantain.pixels.blend import dilate, feather

Real = npt.NDArray[np.float32] | npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FieldWindow:
    """A rectangle of the full image in which all drawing happens."""

    rows: slice
    columns: slice

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.stop - self.rows.start, self.columns.stop - self.columns.start

    def cut(self, plane: Field) -> Field:
        return plane[self.rows, self.columns]

    def cut_mask(self, mask: Mask) -> Mask:
        return mask[self.rows, self.columns]

    def grid(self) -> tuple[Field, Field]:
        """(x, y) of every pixel in full-image coordinates, float32."""
        y, x = np.mgrid[self.rows, self.columns]
        return x.astype(np.float32), y.astype(np.float32)


def window_around(x: float, y: float, reach: float, shape: tuple[int, ...]) -> FieldWindow:
    """The square of half side `reach` around a point, cut at the image's border."""
    return FieldWindow(
        slice(max(int(y - reach), 0), min(int(y + reach) + 1, shape[0])),
        slice(max(int(x - reach), 0), min(int(x + reach) + 1, shape[1])),
    )


def smooth_noise(shape: tuple[int, int], scale: float, rng: np.random.Generator) -> Field:
    """Gaussian noise of unit variance whose features are about `scale` pixels wide: float32, `shape`."""
    rows, columns = (max(int(np.ceil(side / scale)) + 3, 4) for side in shape)
    coarse = rng.standard_normal((rows, columns)).astype(np.float32)
    size = (int(columns * scale) + 1, int(rows * scale) + 1)
    fine = cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC)
    top, left = (int(scale * float(rng.uniform(0.5, 1.0))) for _ in range(2))
    noise = fine[top : top + shape[0], left : left + shape[1]]
    field: Field = ((noise - noise.mean()) / max(float(noise.std()), 1e-6)).astype(np.float32)
    return field


def fractal_noise(
    shape: tuple[int, int], scale: float, rng: np.random.Generator, *, octaves: int = 3, gain: float = 0.55
) -> Field:
    """A sum of `smooth_noise` at halving scales, unit variance."""
    total = np.zeros(shape, np.float32)
    for octave in range(octaves):
        total += np.float32(gain**octave) * smooth_noise(shape, max(scale / 2**octave, 2.0), rng)
    field: Field = (total / max(float(total.std()), 1e-6)).astype(np.float32)
    return field


def displaced(gray: Field, x: Field, y: Field) -> Field:
    """The image read at (x, y): a backward warp, bicubic, clipped to grey levels."""
    moved: Field = cv2.remap(gray, x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.clip(moved, 0, 255).astype(np.float32)


def ramp(value: Real, centre: float | np.float32 | Real, width: float | np.float32) -> Field:
    """1 well below `centre`, 0 well above, smooth over `width`: float32."""
    step = np.clip((centre - value) / np.float32(max(float(width), 1e-3)) + 0.5, 0, 1)
    field: Field = (step * step * (3 - 2 * step)).astype(np.float32)
    return field


def finish(
    original: Pixels, window: FieldWindow, drawn: Field, touched: Mask, note: str, support: str = "local"
) -> Rendering:
    """Lays the drawn window over the original, fading out within 18 pixels of what was touched.

    Args:
        original: uint8 (H, W, 3).
        window: where `drawn` and `touched` lie.
        drawn: float32, the window's new grey levels.
        touched: bool, what was meant to change in the window, secondary signs included.
        note: one line on what was drawn.
        support: as `Rendering.support`.
    """
    mask = np.zeros(original.shape[:2], np.bool_)
    calm = cv2.morphologyEx(touched.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    mask[window.rows, window.columns] = np.asarray(calm, np.bool_)
    inner = window.cut_mask(mask)
    weight = feather(dilate(inner, 9), 8)
    before = original[window.rows, window.columns, 1].astype(np.float32)
    mixed = np.clip(np.rint(before + weight * (drawn - before)), 0, 255).astype(np.uint8)
    pixels = original.copy()
    changed = np.where((weight > 0)[..., None], mixed[..., None], original[window.rows, window.columns])
    pixels[window.rows, window.columns] = changed
    return Rendering(pixels=pixels, mask=mask, support=support, note=note)
