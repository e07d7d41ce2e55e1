"""Checks of the arguments of public metrics: dtype, shape and range, or one clear error."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Floats, Image, Mask

ROUNDING = 1e-6
"""Largest distance of a score from its range that rounding explains."""


def check_image(image: npt.NDArray[np.generic], name: str) -> Image:
    """Return an image of grey levels 0 to 255.

    Args:
        image: uint8 (H, W) or (H, W, C), at least one pixel.
        name: of the argument, for the error.

    Raises:
        ValueError: another dtype or shape.
    """
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        got = image.dtype if isinstance(image, np.ndarray) else type(image).__name__
        hint = "; of values in [0, 1]: (x * 255).round().astype('uint8')" if "float" in str(got) else ""
        raise ValueError(f"{name}: images are uint8 arrays of grey levels 0 to 255, not {got}{hint}")
    if image.ndim not in (2, 3) or not image.size:
        raise ValueError(f"{name}: images are of shape (H, W) or (H, W, C), not {image.shape}")
    return np.asarray(image, np.uint8)


def check_rgb(image: npt.NDArray[np.generic], name: str) -> Image:
    """Return an image of three channels, uint8 (H, W, 3). Raise ValueError otherwise."""
    checked = check_image(image, name)
    if checked.ndim != 3 or checked.shape[2] != 3:
        raise ValueError(f"{name}: RGB of shape (H, W, 3) is needed, not {checked.shape}")
    return checked


def check_images(before: npt.NDArray[np.generic], after: npt.NDArray[np.generic]) -> tuple[Image, Image]:
    """Return two images of grey levels 0 to 255 and of one shape. Raise ValueError otherwise."""
    first, second = check_image(before, "before"), check_image(after, "after")
    if first.shape != second.shape:
        raise ValueError(f"images differ in shape: {first.shape} and {second.shape}")
    return first, second


def check_mask(mask: npt.NDArray[np.generic], shape: tuple[int, ...], name: str = "roi") -> Mask:
    """Return a region as bool (H, W), from bool or from uint8 of two levels (0 and 1, or 0 and 255).

    Args:
        mask: the region.
        shape: of the images; its first two numbers count.
        name: of the argument, for the error.

    Raises:
        ValueError: another dtype or shape, or grey levels between.
    """
    if not isinstance(mask, np.ndarray) or mask.dtype not in (np.bool_, np.uint8):
        got = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
        raise ValueError(f"{name}: a mask is bool, or uint8 of 0 and 255, not {got}")
    if mask.shape != tuple(shape[:2]):
        raise ValueError(f"{name}: a mask of shape {mask.shape} for images of {tuple(shape[:2])}")
    if mask.dtype == np.uint8:
        levels = np.flatnonzero(np.bincount(mask.ravel(), minlength=256))
        if levels.size > 2 or (levels.size == 2 and levels[0] != 0) or levels[-1] not in (0, 1, 255):
            raise ValueError(
                f"{name}: grey levels {levels[0]} to {levels[-1]}; a mask of uint8 has 0 and 1, or 0 and 255: "
                "threshold it first, e.g. mask > 127"
            )
    return np.asarray(mask, bool)


def check_finite(values: npt.ArrayLike, name: str) -> Floats:
    """Return numbers as float64. Raise ValueError where one is NaN or infinite."""
    numbers = np.asarray(values, np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name}: {np.count_nonzero(~np.isfinite(numbers))} values are NaN or infinite")
    return numbers


def within(value: float, low: float, high: float) -> float:
    """Return a score cut to its range. Raise ValueError farther outside than rounding explains."""
    if not low - ROUNDING <= value <= high + ROUNDING:
        raise ValueError(f"a score of {value:g} is outside [{low:g}, {high:g}]")
    return min(max(value, low), high)
