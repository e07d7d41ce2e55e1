"""How a picture enters a probe: cut to what it shows, one size, its tones by rank of its own content."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Pixels

SIDE = 112
"""Side of a frame in pixels."""

_DARK = 0.12
"""Of the 99th percentile: what is darker all around lies outside."""

Frame = npt.NDArray[np.uint8]
Inside = npt.NDArray[np.bool_]


def framed(pixels: Pixels) -> Frame:
    """The picture's content, stretched to a square of `SIDE` pixels.

    Black borders, watermarks beside the content and the picture's own aspect are gone, so that none of them can tell
    where a picture came from. A picture without a dark surrounding is taken whole.

    Args:
        pixels: uint8 (H, W) or (H, W, 3).

    Returns:
        uint8 (SIDE, SIDE), one channel.
    """
    gray = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    step = max(1, max(gray.shape) // 256)
    small = cv2.GaussianBlur(np.ascontiguousarray(gray[::step, ::step]), (0, 0), 1.0)
    lit = (small > max(6.0, _DARK * float(np.percentile(small, 99)))).astype(np.uint8)
    lit = cv2.morphologyEx(lit, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    _, _, stats, _ = cv2.connectedComponentsWithStats(lit, connectivity=4)
    if len(stats) < 2:
        return np.asarray(cv2.resize(gray, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)
    largest = 1 + int(np.argmax(stats[1:, 4]))
    x, y, width, height = (int(stats[largest, k]) * step for k in range(4))
    if stats[largest, 4] < 0.05 * lit.size:
        x, y, height, width = 0, 0, gray.shape[0], gray.shape[1]
    cut = np.ascontiguousarray(gray[y : y + height, x : x + width])
    return np.asarray(cv2.resize(cut, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)


def inside_of(frame: Frame) -> Inside:
    """Where a frame shows something: its lit part with its holes filled, bool (SIDE, SIDE)."""
    lit = (frame > max(6.0, _DARK * float(np.percentile(frame, 99)))).astype(np.uint8)
    lit = cv2.morphologyEx(lit, cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    outlines, _ = cv2.findContours(lit, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = np.zeros_like(lit)
    if outlines:
        cv2.drawContours(filled, [max(outlines, key=cv2.contourArea)], -1, 1, cv2.FILLED)
    return np.asarray(filled > 0)


def levelled(frame: Frame) -> npt.NDArray[np.float32]:
    """The frame by the tones of its own content: its median at 0, its middle half about 1 wide, cut off at -3 and 5.

    Gain and offset of the whole picture are gone; beyond the content it is flat.

    Returns:
        float32 (SIDE, SIDE).
    """
    inside = inside_of(frame)
    values = frame[inside] if inside.any() else frame.ravel()
    low, middle, high = np.percentile(values, (25, 50, 75))
    levels = (frame.astype(np.float32) - middle) / max(float(high - low), 8.0)
    return np.where(inside, np.clip(levels, -3.0, 5.0), -3.0).astype(np.float32)
