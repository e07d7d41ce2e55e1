"""Classifier input: an image cropped to its content, at one size, with tones normalised by its own quartiles.

Borders, aspect ratio, gain and offset are removed so that none of them can reveal where an image came from.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from plantain.pixels.arrays import Pixels

SIDE = 112
"""Side of a frame in pixels."""

DARK = 0.12
"""Share of the 99th percentile below which a pixel is background."""

Frame = npt.NDArray[np.uint8]


def crop_frame(pixels: Pixels) -> Frame:
    """Return the largest lit region, resized to uint8 (SIDE, SIDE); the whole image if it has no dark background.

    Args:
        pixels: uint8 (H, W) or (H, W, 3).
    """
    gray = pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    step = max(1, max(gray.shape) // 256)
    small = cv2.GaussianBlur(np.ascontiguousarray(gray[::step, ::step]), (0, 0), 1.0)
    lit = cv2.morphologyEx(_lit(small), cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    _, _, stats, _ = cv2.connectedComponentsWithStats(lit, connectivity=4)
    cut = gray
    if len(stats) > 1:
        largest = 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
        x, y, width, height = (int(stats[largest, k]) * step for k in range(4))
        if stats[largest, cv2.CC_STAT_AREA] >= 0.05 * lit.size:
            cut = gray[y : y + height, x : x + width]
    return np.asarray(
        cv2.resize(np.ascontiguousarray(cut), (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8
    )


def normalise_tones(frame: Frame) -> npt.NDArray[np.float32]:
    """Return float32 (SIDE, SIDE): content with median 0 and interquartile range 1, clipped to [-3, 5]; outside -3."""
    inside = _content(frame)
    values = frame[inside] if inside.any() else frame.ravel()
    low, middle, high = np.percentile(values, (25, 50, 75))
    levels = (frame.astype(np.float32) - middle) / max(float(high - low), 8.0)
    return np.where(inside, np.clip(levels, -3.0, 5.0), -3.0).astype(np.float32)


def augment(frame: Frame, rng: np.random.Generator) -> Frame:
    """Move the frame a little and change its tones; at random blur, add noise, resample or re-encode it."""
    out = _tone_curve(_move(frame, rng), rng)
    draws = rng.random(4)
    if draws[0] < 0.35:
        out = np.asarray(cv2.GaussianBlur(out, (0, 0), float(rng.uniform(0.4, 1.2))), np.uint8)
    if draws[1] < 0.3:
        out = np.clip(out + rng.normal(0, rng.uniform(1, 6), out.shape), 0, 255).astype(np.uint8)
    if draws[2] < 0.25:
        side = int(rng.integers(56, 100))
        out = cv2.resize(cv2.resize(out, (side, side), interpolation=cv2.INTER_AREA), (SIDE, SIDE))
    if draws[3] < 0.5:
        quality = [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(25, 95))]
        _, data = cv2.imencode(".jpg", np.ascontiguousarray(out), quality)
        out = np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), np.uint8)
    return out


def _lit(gray: Frame) -> Frame:
    return (gray > max(6.0, DARK * float(np.percentile(gray, 99)))).astype(np.uint8)


def _content(frame: Frame) -> npt.NDArray[np.bool_]:
    """The lit part of a frame with its holes filled."""
    lit = cv2.morphologyEx(_lit(frame), cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    outlines, _ = cv2.findContours(lit, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = np.zeros_like(lit)
    if outlines:
        cv2.drawContours(filled, [max(outlines, key=cv2.contourArea)], -1, 1, cv2.FILLED)
    return np.asarray(filled > 0)


def _move(frame: Frame, rng: np.random.Generator) -> Frame:
    turn, scale = rng.uniform(-12, 12), rng.uniform(0.9, 1.1, 2)
    matrix = cv2.getRotationMatrix2D((SIDE / 2, SIDE / 2), turn, 1.0)
    matrix[:, :2] *= scale
    matrix[:, 2] += rng.uniform(-6, 6, 2) + (1 - scale) * SIDE / 2
    out = cv2.warpAffine(frame, matrix, (SIDE, SIDE), flags=cv2.INTER_LINEAR)
    return np.asarray(out[:, ::-1] if rng.random() < 0.5 else out, np.uint8)


def _tone_curve(frame: Frame, rng: np.random.Generator) -> Frame:
    at = np.arange(256) / 255.0
    curve = at ** float(np.exp(rng.normal(0, 0.35)))
    curve += rng.normal(0, 0.06) * np.sin(2 * np.pi * at)
    curve = rng.uniform(0.6, 1.1) * np.maximum.accumulate(np.clip(curve, 0, 1))
    return np.asarray(np.clip(curve * 255, 0, 255).astype(np.uint8)[frame])
